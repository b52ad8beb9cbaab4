"""Facts about answers that carry files: the same JSON, never made or sent in one piece."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.api.pieces import File, PiecesResponse, json_pieces
from imageedit_server.api.slices import SLICE_BYTES

LARGE = bytes(range(256)) * (3 * SLICE_BYTES // 256) + b"and some"


def read(body: dict[str, object]) -> Any:
    return json.loads(b"".join(json_pieces(body)))


@given(st.lists(st.binary(max_size=50), max_size=4))
def test_files_come_back_from_where_they_stood(files: list[bytes]) -> None:
    found = read({"data": [{"b64_json": File(data=data), "seed": 1} for data in files], "size": "a"})

    assert [base64.b64decode(one["b64_json"]) for one in found["data"]] == files
    assert found["size"] == "a"


def test_a_file_longer_than_a_slice_comes_back_whole() -> None:
    assert base64.b64decode(read({"output": File(data=LARGE)})["output"]) == LARGE


def test_no_piece_is_as_long_as_the_answer() -> None:
    assert max(len(piece) for piece in json_pieces({"output": File(data=LARGE)})) <= 4 * SLICE_BYTES // 3


def test_what_is_neither_json_nor_a_file_is_a_mistake() -> None:
    with pytest.raises(TypeError):
        json_pieces({"output": object()})


async def sent_by(call: Callable[[Any, Any, Any], Awaitable[None]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await call({"type": "http"}, None, send)
    return messages


async def test_an_answer_in_pieces_states_its_length() -> None:
    start, *bodies = await sent_by(PiecesResponse([b"abc", b"de"], media_type="application/json"))

    assert dict(start["headers"])[b"content-length"] == b"5"
    assert b"".join(message["body"] for message in bodies) == b"abcde"
    assert [message["more_body"] for message in bodies] == [True, True, False]


async def test_others_have_their_turn_between_two_pieces() -> None:
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await sent_by(PiecesResponse([b"a"] * 5, media_type="image/png"))
    task.cancel()

    assert len(turns) >= 5
