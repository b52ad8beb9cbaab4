"""What the fields of a request ask for."""

from __future__ import annotations

import pytest

from imageedit_server.api.fields import MAX_SEED
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size
from support.edit_requests import form, form_request, limits, wish


def test_without_more_the_defaults_are_those_of_the_page() -> None:
    made = wish()

    assert (made.n, made.size, made.steps, made.quality) == (1, "auto", 16, "standard")
    assert (made.format, made.compression, made.as_url, made.stream) == ("png", 100, False, False)
    assert (made.true_cfg_scale, made.negative_prompt, made.guidance_scale) == (1.0, None, None)
    assert (made.seed_given, made.steps_given, made.mask_feather_px) == (False, False, 0)


@pytest.mark.parametrize(
    ("field", "attribute", "value"),
    [
        (("n", "4"), "n", 4),
        (("size", "original"), "size", "original"),
        (("size", "1024x768"), "size", Size(1024, 768)),
        (("output_format", "webp"), "format", "webp"),
        (("response_format", "url"), "as_url", True),
        (("stream", "true"), "stream", True),
        (("seed", "4294967295"), "seed", 4294967295),
        (("guidance_scale", "3.5"), "guidance_scale", 3.5),
        (("user", "somebody"), "asked_by", "somebody"),
        (("request_id", "a-1"), "request_id", "a-1"),
    ],
)
def test_each_field_has_its_effect(field: tuple[str, str], attribute: str, value: object) -> None:
    assert getattr(wish(field), attribute) == value


@pytest.mark.parametrize(
    ("negative", "scale", "can", "verdict"),
    [
        (None, None, True, (None, 1.0)),
        (None, "1", True, (None, 1.0)),
        (None, "1", False, (None, 1.0)),
        (None, "4", True, "true_cfg_scale"),
        (None, "4", False, "true_cfg_scale"),
        ("ugly", None, False, "negative_prompt"),
        ("ugly", "4", False, "negative_prompt"),
        ("ugly", None, True, "negative_prompt"),
        ("ugly", "1", True, "negative_prompt"),
        ("ugly", "4", True, ("ugly", 4.0)),
        (" ", "4", True, (" ", 4.0)),
    ],
)
def test_negative_prompt_and_its_scale_follow_the_table(
    negative: str | None, scale: str | None, can: bool, verdict: str | tuple[str | None, float]
) -> None:
    given = [("negative_prompt", negative), ("true_cfg_scale", scale)]
    parts = form(*[(name, value) for name, value in given if value is not None])
    if isinstance(verdict, str):
        with pytest.raises(InvalidInput) as raised:
            form_request(parts, limits(negative_prompt=can))
        assert raised.value.param == verdict
    else:
        made = form_request(parts, limits(negative_prompt=can)).wish
        assert (made.negative_prompt, made.true_cfg_scale) == verdict


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, (16, "standard", False)),
        ({"quality": "auto"}, (16, "standard", False)),
        ({"quality": "standard"}, (16, "standard", True)),
        ({"quality": "medium"}, (16, "standard", True)),
        ({"quality": "high"}, (24, "high", True)),
        ({"quality": "hd"}, (24, "high", True)),
        ({"steps": "2"}, (2, None, True)),
        ({"num_inference_steps": "24"}, (24, None, True)),
        ({"steps": "8", "quality": "auto"}, (8, None, True)),
        ({"steps": "8", "quality": "high"}, "steps"),
        ({"num_inference_steps": "8", "quality": "standard"}, "num_inference_steps"),
        ({"steps": "25"}, "steps"),
        ({"steps": "1"}, "steps"),
        ({"steps": "8", "num_inference_steps": "8"}, "num_inference_steps"),
    ],
)
def test_the_steps_follow_the_table(fields: dict[str, str], verdict: str | tuple[int, str | None, bool]) -> None:
    if isinstance(verdict, str):
        with pytest.raises(InvalidInput) as raised:
            wish(*fields.items())
        assert raised.value.param == verdict
    else:
        made = wish(*fields.items())
        assert (made.steps, made.quality, made.steps_given) == verdict


def test_each_picture_of_a_request_has_the_next_seed() -> None:
    made = wish(("seed", str(MAX_SEED)), ("n", "2"))

    assert [made.seed_of(number) for number in (0, 1)] == [MAX_SEED, 0]


def test_a_stream_of_addresses_is_refused() -> None:
    with pytest.raises(InvalidInput, match="A stream carries the picture itself"):
        wish(("stream", "true"), ("response_format", "url"))
