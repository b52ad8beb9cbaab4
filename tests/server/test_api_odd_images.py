"""Each bad or odd picture gets its answer, whole, and the server goes on."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import httpx
import pytest

from server.odd_images import MAX_PIXELS, Odd, odd_images
from server.running import RunningServer, decoded, stub_server

ODD = {odd.name: odd for odd in odd_images()}
# JPEG and WebP do not keep a colour exactly.
TOLERANCE = 6


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--max-pixels", str(MAX_PIXELS), edit_s=0.001) as running:
        yield running


def by_form(server: RunningServer, odd: Odd) -> httpx.Response:
    files = {"image": (odd.name, odd.data)}
    return httpx.post(server.api + "/v1/images/edits", data={"prompt": "a"}, files=files, timeout=20)


def test_there_are_at_least_sixty() -> None:
    assert len(ODD) >= 60


@pytest.mark.parametrize("name", ODD)
def test_an_odd_picture_gets_its_answer(server: RunningServer, name: str) -> None:
    odd = ODD[name]
    answer = by_form(server, odd)
    body = answer.json()

    if isinstance(odd.answer, str):
        error = body["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, odd.answer, "image")
        assert "object at 0x" not in error["message"]
    else:
        assert answer.status_code == 200, body
    if isinstance(odd.answer, tuple):
        # The engine inverts what it gets.
        picture = decoded(body["data"][0]["b64_json"])
        at = picture.getpixel((picture.width // 2, picture.height // 2))
        assert isinstance(at, tuple)
        read = tuple(255 - value for value in at)
        assert max(abs(one - other) for one, other in zip(read, odd.answer, strict=True)) <= TOLERANCE, read


@pytest.mark.parametrize("name", ["half.png", "cmyk.jpg", "animated.webp", "palette_missing.png"])
def test_the_json_call_gives_the_same_answers(server: RunningServer, name: str) -> None:
    odd = ODD[name]
    by_json = server.edit(image=base64.b64encode(odd.data).decode())

    assert by_json.status_code == by_form(server, odd).status_code


def test_what_is_transparent_lies_on_the_colour_that_is_set() -> None:
    with stub_server("--alpha-colour", "steelblue", edit_s=0.001) as blue:
        answer = by_form(blue, ODD["clear.png"])
    picture = decoded(answer.json()["data"][0]["b64_json"])

    # The engine inverts what it gets.
    assert picture.getpixel((5, 5)) == (255 - 70, 255 - 130, 255 - 180)


def test_afterwards_the_server_is_as_before(server: RunningServer) -> None:
    assert server.edit().status_code == 200
    assert "request_crashed" not in server.log()
