"""What clients may send as JSON."""

from __future__ import annotations

import base64
import json
import random

import pytest

from imageedit_server.api.fields import MAX_PROMPT_CHARACTERS, MAX_SEED
from imageedit_server.errors import InvalidInput
from support.edit_requests import ALL, PICTURE, body, json_request, problem


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


def test_null_in_json_is_a_field_left_out() -> None:
    assert json_request(body(seed=None, size=None, mask=None, quality=None)).wish.size == "auto"


def test_several_pictures_come_by_json_too() -> None:
    assert json_request(body(image=["YQ==", "Yg=="]), ALL).pictures == (b"a", b"b")
