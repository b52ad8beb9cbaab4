"""What of a request its idempotency key stands for."""

from __future__ import annotations

import pytest

from support.edit_requests import ALL, form, form_request


def digest(*more: tuple[str, str | bytes], without: str = "") -> str:
    return form_request(form(*more, without=without), ALL).digests().request


def pictures(*more: tuple[str, str | bytes]) -> str:
    return form_request(form(*more), ALL).digests().pictures


@pytest.mark.parametrize(
    "more",
    [
        [("mask", b"a mask")],
        [("mask", b"a mask"), ("mask_feather", "3")],
        [("image[]", b"a second picture")],
        [("output_format", "jpeg")],
        [("output_format", "jpeg"), ("output_compression", "50")],
        [("size", "original")],
        [("size", "64x64")],
        [("n", "2")],
        [("quality", "high")],
        [("steps", "16")],
        [("seed", "7")],
        [("negative_prompt", "dull"), ("true_cfg_scale", "4")],
        [("negative_prompt", "dull"), ("true_cfg_scale", "5")],
        [("guidance_scale", "2")],
        [("response_format", "url")],
        [("stream", "true")],
    ],
)
def test_every_field_and_file_is_part_of_what_a_key_stands_for(more: list[tuple[str, str | bytes]]) -> None:
    assert digest(*more) != digest()
    assert digest(*more) == digest(*more)


def test_mask_and_picture_are_not_each_other() -> None:
    assert digest(("mask", b"a"), ("image[]", b"b")) != digest(("mask", b"b"), ("image[]", b"a"))


def test_what_is_asked_for_with_the_pictures_is_no_part_of_them() -> None:
    assert pictures(("steps", "16"), ("mask", b"a mask")) == pictures() != pictures(("image[]", b"a second picture"))


@pytest.mark.parametrize("name", ["user", "safety_identifier", "request_id"])
def test_who_asks_and_under_which_name_is_not(name: str) -> None:
    assert digest((name, "somebody")) == digest()
