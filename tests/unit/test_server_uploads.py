"""Facts about the memory that uploads may take."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from imageedit_server.api.body import LARGEST_BODIES_AT_ONCE, Uploads, read_body
from imageedit_server.errors import BodyTooLarge, Overloaded, TooSlow

LIMIT_BYTES = 1000


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    with Uploads(LIMIT_BYTES).room() as room:
        room.grow_to(LIMIT_BYTES)
        with pytest.raises(BodyTooLarge):
            room.grow_to(LIMIT_BYTES + 1)


def test_all_bodies_together_have_a_limit() -> None:
    uploads = Uploads(LIMIT_BYTES)
    with uploads.room() as first, uploads.room() as second, uploads.room() as third, uploads.room() as fourth:
        for room in (first, second, third, fourth):
            room.grow_to(LIMIT_BYTES)
        with uploads.room() as fifth, pytest.raises(Overloaded) as raised:
            fifth.grow_to(1)

    assert LARGEST_BODIES_AT_ONCE == 4
    assert (raised.value.code, raised.value.retry_after_s) == ("too_many_uploads", 1)


def test_room_is_given_back_after_an_error() -> None:
    uploads = Uploads(LIMIT_BYTES)
    for _ in range(3 * LARGEST_BODIES_AT_ONCE):
        with uploads.room() as room:
            room.grow_to(LIMIT_BYTES)
            with pytest.raises(BodyTooLarge):
                room.grow_to(LIMIT_BYTES + 1)


def test_growing_in_steps_counts_each_byte_once() -> None:
    uploads = Uploads(LIMIT_BYTES)
    with uploads.room() as room:
        for size_bytes in (10, 400, 400, 1000):
            room.grow_to(size_bytes)

        assert room.held_bytes == LIMIT_BYTES


async def test_a_body_that_stands_still_gives_its_room_back() -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("never")

    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    uploads = Uploads(LIMIT_BYTES)

    with uploads.room() as room, pytest.raises(TooSlow) as raised:
        await read_body(request, room, stall_s=0.01)

    assert (raised.value.status, raised.value.code) == (408, "upload_too_slow")
