"""What clients may send as a form."""

from __future__ import annotations

import pytest

from imageedit_server.api.fields import REFUSED_FIELDS
from imageedit_server.api.forms import Part
from imageedit_server.errors import InvalidInput, NotFound
from support.edit_requests import ALL, PICTURE, form, form_request, problem


@pytest.mark.parametrize("name", ["image", "image[]"])
def test_a_form_with_one_picture_is_taken(name: str) -> None:
    parts = [*form(("seed", "7"), without="image"), Part(name=name, data=PICTURE)]
    wanted = form_request(parts)

    assert (wanted.pictures, wanted.wish.prompt, wanted.wish.seed) == ((PICTURE,), "make it blue", 7)


@pytest.mark.parametrize(
    "field",
    [
        ("model", "qwen"),
        ("n", "1"),
        ("size", "auto"),
        ("response_format", "b64_json"),
        ("output_format", "png"),
        ("user", "somebody"),
        ("safety_identifier", "abc"),
        ("background", "opaque"),
        ("background", "auto"),
        ("quality", "auto"),
        ("partial_images", "0"),
        ("stream", "false"),
        ("true_cfg_scale", "1.0"),
    ],
)
def test_fields_that_change_nothing_untrue_are_taken(field: tuple[str, str]) -> None:
    assert form_request(form(field)).pictures == (PICTURE,)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], ("missing_parameter", "prompt")),
        (form(without="prompt"), ("missing_parameter", "prompt")),
        (form(without="image"), ("missing_parameter", "image")),
        (form(("image", PICTURE)), ("too_many_images", "image")),
        (form(("image[]", PICTURE)), ("too_many_images", "image")),
        (form(("prompt", "another")), ("invalid_parameter", "prompt")),
        ([*form(without="prompt"), Part(name="prompt", data=b" ")], ("empty_prompt", "prompt")),
        (form(("seed", "x")), ("invalid_parameter", "seed")),
        (form(("seed", "-1")), ("invalid_parameter", "seed")),
        (form(("seed", "4294967296")), ("invalid_parameter", "seed")),
        (form(("user", b"\xff\xfe")), ("invalid_parameter", "user")),
        (form(("n", "0")), ("invalid_parameter", "n")),
        (form(("n", "5")), ("invalid_parameter", "n")),
        (form(("n", "two")), ("invalid_parameter", "n")),
        (form(("n", "1.0")), ("invalid_parameter", "n")),
        (form(("n", "")), ("invalid_parameter", "n")),
        (form(("size", "large")), ("invalid_parameter", "size")),
        (form(("size", "")), ("invalid_parameter", "size")),
        (form(("size", "15x100")), ("invalid_parameter", "size")),
        (form(("size", "100x4097")), ("invalid_parameter", "size")),
        (form(("size", "100x801")), ("invalid_parameter", "size")),
        (form(("quality", "low")), ("unsupported_value", "quality")),
        (form(("quality", "xhigh")), ("unsupported_value", "quality")),
        (form(("response_format", "url")), ("unsupported_value", "response_format")),
        (form(("response_format", "file")), ("unsupported_value", "response_format")),
        (form(("output_format", "gif")), ("unsupported_value", "output_format")),
        (form(("output_compression", "80")), ("invalid_parameter", "output_compression")),
        (form(("output_format", "jpeg"), ("output_compression", "101")), ("invalid_parameter", "output_compression")),
        (form(("background", "transparent")), ("unsupported_value", "background")),
        (form(("partial_images", "1")), ("unsupported_value", "partial_images")),
        (form(("stream", "yes")), ("invalid_parameter", "stream")),
        (form(("mask_feather", "3")), ("invalid_parameter", "mask_feather")),
        (form(("mask", b"a"), ("mask", b"b")), ("invalid_parameter", "mask")),
        (form(("guidance_scale", "3")), ("unsupported_value", "guidance_scale")),
        (form(("true_cfg_scale", "nan")), ("invalid_parameter", "true_cfg_scale")),
        (form(("true_cfg_scale", "0.5")), ("invalid_parameter", "true_cfg_scale")),
        (form(("true_cfg_scale", "21")), ("invalid_parameter", "true_cfg_scale")),
        (form(("user", "x" * 513)), ("invalid_parameter", "user")),
        (
            [*form(without="image"), Part(name="image", data=b"https://example.org/a.png")],
            ("image_address", "image"),
        ),
        *((form((name, "x")), ("unknown_parameter", name)) for name in ("x[y]", *REFUSED_FIELDS)),
    ],
)
def test_a_wrong_form_is_refused_with_code_and_field(parts: list[Part], expected: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidInput) as raised:
        form_request(parts)

    assert problem(raised.value) == expected


def test_another_model_is_not_found() -> None:
    with pytest.raises(NotFound, match="Model 'dall-e-2' is not served here; 'qwen' is") as raised:
        form_request(form(("model", "dall-e-2")))

    assert problem(raised.value) == ("model_not_found", "model")


def test_the_pictures_keep_their_order_whatever_their_field_is_called() -> None:
    parts = [Part(name=name, data=name.encode()) for name in ("image[]", "image", "image[]")]

    assert form_request([*parts, Part(name="prompt", data=b"a")], ALL).pictures == (b"image[]", b"image", b"image[]")


def test_more_pictures_than_the_model_takes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="4 pictures were sent; send at most 3"):
        form_request(form(*[("image[]", PICTURE)] * 3), ALL)
