"""Facts about what clients may send."""

from __future__ import annotations

import base64
import json
import random
from functools import partial

import pytest

from imageedit_server.api.fields import MAX_PROMPT_CHARACTERS, MAX_SEED, REFUSED_FIELDS
from imageedit_server.api.forms import Part
from imageedit_server.api.limits import Limits
from imageedit_server.api.requests import from_form, from_generation, from_json
from imageedit_server.api.wishes import EditRequest, Wish
from imageedit_server.errors import ApiError, InvalidInput, NotFound
from imageedit_server.worker.shapes import Size

PICTURE = b"\x89PNG and so on"


def body(**fields: object) -> bytes:
    return json.dumps({"image": base64.b64encode(PICTURE).decode(), "prompt": "make it blue"} | fields).encode()


def form(*more: tuple[str, str | bytes], without: str = "") -> list[Part]:
    given: list[tuple[str, str | bytes]] = [("image", PICTURE), ("prompt", "make it blue"), *more]
    return [
        Part(name=name, data=value if isinstance(value, bytes) else value.encode())
        for name, value in given
        if name != without
    ]


def limits(
    *,
    max_references: int = 1,
    guidance: bool = False,
    negative_prompt: bool = False,
    generate: bool = False,
    files: bool = False,
    edit: bool = True,
    mask_required: bool = False,
) -> Limits:
    return Limits(
        model_name="qwen",
        steps=16,
        steps_high=24,
        max_references=max_references,
        guidance=guidance,
        negative_prompt=negative_prompt,
        generate=generate,
        files=files,
        edit=edit,
        mask_required=mask_required,
    )


ALL = limits(max_references=3, guidance=True, negative_prompt=True, generate=True, files=True)


def json_request(sent: bytes, taken: Limits | None = None) -> EditRequest:
    return from_json(sent, taken or limits())


def form_request(parts: list[Part], taken: Limits | None = None) -> EditRequest:
    return from_form(parts, taken or limits())


def wish(*more: tuple[str, str | bytes], taken: Limits = ALL) -> Wish:
    return form_request(form(*more), taken).wish


def problem(error: ApiError) -> tuple[str, str | None]:
    return error.code, error.param


def test_json_with_all_fields_is_taken() -> None:
    wanted = json_request(body(seed=7))

    assert (wanted.pictures, wanted.wish.prompt, wanted.wish.seed) == ((PICTURE,), "make it blue", 7)


def test_without_a_seed_one_is_drawn() -> None:
    seeds = {json_request(body()).wish.seed for _ in range(5)}

    assert len(seeds) > 1
    assert all(0 <= seed <= MAX_SEED for seed in seeds)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", ("invalid_json", None)),
        (b"{", ("invalid_json", None)),
        (b"\xff\xfe", ("invalid_json", None)),
        (b"[]", ("invalid_json", None)),
        (b"null", ("invalid_json", None)),
        (b"{}", ("missing_parameter", "image")),
        (b'{"image": "YQ=="}', ("missing_parameter", "prompt")),
        (body(prompt=""), ("empty_prompt", "prompt")),
        (body(prompt=" \n\t "), ("empty_prompt", "prompt")),
        (body(prompt=None), ("invalid_parameter", "prompt")),
        (body(prompt="x" * (MAX_PROMPT_CHARACTERS + 1)), ("prompt_too_long", "prompt")),
        (body(image=5), ("invalid_parameter", "image")),
        (body(image=""), ("invalid_base64", "image")),
        (body(image=[]), ("invalid_parameter", "image")),
        (body(image=["YQ==", 5]), ("invalid_parameter", "image")),
        (body(image=["YQ==", "YQ=="]), ("too_many_images", "image")),
        (body(image="https://example.org/a.png"), ("image_address", "image")),
        (body(mask=5), ("invalid_parameter", "mask")),
        (body(mask="%"), ("invalid_base64", "mask")),
        (body(prompt="\ud800"), ("invalid_parameter", "prompt")),
        (body(**{"\ud800": 1}), ("unknown_parameter", "?")),
        (b"[" * 10_000, ("invalid_json", None)),
        (b"[" * 100_000, ("invalid_json", None)),
        (b'{"image": [' + b"1," * 60_000 + b"1]}", ("invalid_json", None)),
        (b'{"image": "' + b"\\n" * 100_000 + b'"}', ("invalid_json", None)),
        (b'{"image": NaN}', ("invalid_json", None)),
        (body(seed=10**30), ("invalid_parameter", "seed")),
        (body(true_cfg_scale=True), ("invalid_parameter", "true_cfg_scale")),
        *((body(**{name: 1}), ("unknown_parameter", name)) for name in ("n", "stream", "response_format")),
        (body(seed="7"), ("invalid_parameter", "seed")),
        (body(seed=-1), ("invalid_parameter", "seed")),
        (body(seed=1.5), ("invalid_parameter", "seed")),
        (body(seed=True), ("invalid_parameter", "seed")),
        (body(seed=MAX_SEED + 1), ("invalid_parameter", "seed")),
        (body(strength=0.5), ("unknown_parameter", "strength")),
    ],
)
def test_wrong_json_is_refused_with_code_and_field(sent: bytes, expected: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidInput) as raised:
        json_request(sent)

    assert problem(raised.value) == expected


def test_base64_with_line_ends_and_escaped_slashes_is_taken() -> None:
    picture = b"\x89PNG" + random.Random(7).randbytes(600_000)
    text = base64.encodebytes(picture).decode()
    sent = json.dumps({"image": text, "prompt": "p"}).replace("/", "\\/")

    assert json_request(sent.encode()).pictures == (picture,)


def test_a_refusal_does_not_repeat_the_prompt() -> None:
    with pytest.raises(InvalidInput) as raised:
        json_request(body(prompt="private " * 1000))

    assert "private" not in raised.value.message


@pytest.mark.parametrize("length", [1, MAX_PROMPT_CHARACTERS])
def test_the_longest_and_the_shortest_prompt_are_taken(length: int) -> None:
    assert len(json_request(body(prompt="x" * length)).wish.prompt) == length


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


def test_without_more_the_defaults_are_those_of_the_page() -> None:
    made = wish()

    assert (made.n, made.size, made.steps, made.quality) == (1, "auto", 16, "standard")
    assert (made.format, made.compression, made.as_url, made.stream) == ("png", 100, False, False)
    assert (made.true_cfg_scale, made.negative_prompt, made.guidance_scale) == (1.0, None, None)
    assert (made.seed_given, made.steps_given, made.mask_feather_px) == (False, False, 0)


def test_null_in_json_is_a_field_left_out() -> None:
    assert json_request(body(seed=None, size=None, mask=None, quality=None)).wish.size == "auto"


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


def test_the_pictures_keep_their_order_whatever_their_field_is_called() -> None:
    parts = [Part(name=name, data=name.encode()) for name in ("image[]", "image", "image[]")]

    assert form_request([*parts, Part(name="prompt", data=b"a")], ALL).pictures == (b"image[]", b"image", b"image[]")


def test_more_pictures_than_the_model_takes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="4 pictures were sent; send at most 3"):
        form_request(form(*[("image[]", PICTURE)] * 3), ALL)


def test_several_pictures_come_by_json_too() -> None:
    assert json_request(body(image=["YQ==", "Yg=="]), ALL).pictures == (b"a", b"b")


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


TEXT_ALONE = limits(edit=False, generate=True)


@pytest.mark.parametrize("read", [partial(json_request, b"{}", TEXT_ALONE), partial(form_request, [], TEXT_ALONE)])
def test_a_model_that_edits_nothing_says_where_to_send_the_prompt(read: partial[EditRequest]) -> None:
    with pytest.raises(InvalidInput, match="send the prompt to POST /v1/images/generations") as raised:
        read()

    assert problem(raised.value) == ("edit_unsupported", None)
    assert from_generation(b'{"prompt": "a mug"}', TEXT_ALONE).pictures == ()


def test_a_model_that_repaints_needs_a_mask() -> None:
    repaints = limits(mask_required=True)
    with pytest.raises(InvalidInput, match="send a mask") as raised:
        form_request(form(), repaints)

    assert problem(raised.value) == ("missing_parameter", "mask")
    assert form_request(form(("mask", b"a mask")), repaints).mask == b"a mask"


def test_a_picture_is_made_from_text_where_the_model_can() -> None:
    made = from_generation(b'{"prompt": "a mug", "size": "64x64"}', ALL)

    assert (made.pictures, made.mask, made.wish.size) == ((), None, Size(64, 64))


@pytest.mark.parametrize(
    ("sent", "taken", "expected"),
    [
        (b'{"prompt": "a mug"}', limits(), ("generation_unsupported", None)),
        (b'{"prompt": "a mug", "image": "YQ=="}', ALL, ("unknown_parameter", "image")),
        (b'{"prompt": "a mug", "size": "original"}', ALL, ("unsupported_value", "size")),
        (b'{"prompt": "a mug", "style": "vivid"}', ALL, ("unknown_parameter", "style")),
        (b"{}", ALL, ("missing_parameter", "prompt")),
    ],
)
def test_a_wrong_generation_is_refused(sent: bytes, taken: Limits, expected: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidInput) as raised:
        from_generation(sent, taken)

    assert problem(raised.value) == expected


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
