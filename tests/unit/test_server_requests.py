"""Facts about what clients may send."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.api.forms import CHUNK_BYTES, MAX_PARTS, Part, parts_of
from imageedit_server.api.requests import MAX_PROMPT_CHARACTERS, MAX_SEED, from_form, from_json
from imageedit_server.errors import ApiError, InvalidInput, NotFound

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


def problem(error: ApiError) -> tuple[str, str | None]:
    return error.code, error.param


def test_json_with_all_fields_is_taken() -> None:
    wanted = from_json(body(seed=7))

    assert (wanted.picture, wanted.prompt, wanted.seed) == (PICTURE, "make it blue", 7)


def test_without_a_seed_one_is_drawn() -> None:
    seeds = {from_json(body()).seed for _ in range(5)}

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
        from_json(sent)

    assert problem(raised.value) == expected


def test_a_refusal_does_not_repeat_the_prompt() -> None:
    with pytest.raises(InvalidInput) as raised:
        from_json(body(prompt="private " * 1000))

    assert "private" not in raised.value.message


@pytest.mark.parametrize("length", [1, MAX_PROMPT_CHARACTERS])
def test_the_longest_and_the_shortest_prompt_are_taken(length: int) -> None:
    assert len(from_json(body(prompt="x" * length)).prompt) == length


@pytest.mark.parametrize("name", ["image", "image[]"])
def test_a_form_with_one_picture_is_taken(name: str) -> None:
    parts = [*form(("seed", "7"), without="image"), Part(name=name, data=PICTURE)]
    wanted = from_form(parts, model_name="qwen")

    assert (wanted.picture, wanted.prompt, wanted.seed) == (PICTURE, "make it blue", 7)


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
    ],
)
def test_fields_that_change_nothing_untrue_are_taken(field: tuple[str, str]) -> None:
    assert from_form(form(field), model_name="qwen").picture == PICTURE


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
        (form(("n", "2")), ("unsupported_value", "n")),
        (form(("size", "1024x1024")), ("unsupported_value", "size")),
        (form(("response_format", "url")), ("unsupported_value", "response_format")),
        (form(("output_format", "webp")), ("unsupported_value", "output_format")),
        *(
            (form((name, "x")), ("unknown_parameter", name))
            for name in ("mask", "quality", "stream", "background", "x[y]")
        ),
    ],
)
def test_a_wrong_form_is_refused_with_code_and_field(parts: list[Part], expected: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidInput) as raised:
        from_form(parts, model_name="qwen")

    assert problem(raised.value) == expected


def test_another_model_is_not_found() -> None:
    with pytest.raises(NotFound, match="Model 'dall-e-2' is not served here; 'qwen' is") as raised:
        from_form(form(("model", "dall-e-2")), model_name="qwen")

    assert problem(raised.value) == ("model_not_found", "model")


def encoded_form(parts: list[tuple[str, bytes]], boundary: bytes = b"b0und") -> bytes:
    lines = b""
    for name, data in parts:
        disposition = f'Content-Disposition: form-data; name="{name}"; filename="../../etc/passwd"\r\n\r\n'
        lines += b"--" + boundary + b"\r\n" + disposition.encode() + data + b"\r\n"
    return lines + b"--" + boundary + b"--\r\n"


KIND = "multipart/form-data; boundary=b0und"


@given(
    st.lists(st.tuples(st.sampled_from(["image[]", "prompt", "é"]), st.binary(max_size=200)), min_size=1, max_size=5)
)
def test_a_form_comes_back_as_it_was_sent(sent: list[tuple[str, bytes]]) -> None:
    parts = parts_of(encoded_form(sent), KIND)

    assert [(part.name, part.data) for part in parts] == sent


def test_a_part_longer_than_a_chunk_comes_back_whole() -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 100)

    assert parts_of(encoded_form([("image", data)]), KIND)[0].data == data


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", KIND),
        (b"{}", KIND),
        (b"{}", "application/json"),
        (b"{}", ""),
        (encoded_form([("a", b"b")]), "multipart/form-data"),
        (encoded_form([("a", b"b")])[:-12], KIND),
        (encoded_form([("", b"b")]), KIND),
        (encoded_form([("a", b"b")] * (MAX_PARTS + 1)), KIND),
        (encoded_form([("a", b"b")]), "multipart/form-data; boundary=" + "x" * 5000),
    ],
)
def test_a_malformed_form_is_refused(sent: bytes, kind: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parts_of(sent, kind)

    assert raised.value.code == "invalid_form"


@given(st.binary(max_size=300))
def test_rubbish_in_a_form_is_refused_or_read_but_never_crashes(rubbish: bytes) -> None:
    try:
        parts_of(b"--b0und\r\n" + rubbish + b"\r\n--b0und--\r\n", KIND)
    except InvalidInput as error:
        assert error.code == "invalid_form"  # noqa: PT017 - either outcome is right
