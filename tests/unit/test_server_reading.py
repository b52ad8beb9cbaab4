"""How much of a message has come, whatever the pieces that it comes in."""

from __future__ import annotations

import pytest

from imageedit_server.api.doors import Bounds
from imageedit_server.api.reading import Reading

BOUNDS = Bounds(connections=1, head_bytes=100, headers=3, tiny_chunks=2, chunk_bytes=10)


def begun() -> Reading:
    reading = Reading(BOUNDS)
    with reading.segment(4):
        reading.begin()
    return reading


def with_body() -> Reading:
    reading = begun()
    reading.end_head(b"/")
    reading.begin_body()
    return reading


@pytest.mark.parametrize(("size_bytes", "too_large"), [(98, False), (99, True)])
def test_a_line_that_comes_in_pieces_counts_before_it_has_ended_and_not_again_after_it(
    size_bytes: int, too_large: bool
) -> None:
    reading = begun()
    for _ in range(2):
        with reading.segment(size_bytes // 2):
            pass
    before_its_end = reading.head_is_too_large
    with reading.segment(1 + size_bytes % 2):
        reading.header(b"x", bytes(size_bytes))
    reading.end_head(b"/")

    assert before_its_end is False
    assert reading.head_is_too_large is too_large


def test_a_line_without_an_end_is_too_large_a_head() -> None:
    reading = begun()
    with reading.segment(101):
        pass

    assert reading.head_is_too_large


@pytest.mark.parametrize(("headers", "too_large"), [(3, False), (4, True)])
def test_headers_are_counted(headers: int, too_large: bool) -> None:
    reading = begun()
    for _ in range(headers):
        reading.header(b"x", b"y")

    assert reading.head_is_too_large is too_large


def test_nothing_of_one_head_counts_for_the_next() -> None:
    reading = begun()
    for _ in range(4):
        reading.header(b"x", bytes(50))
    reading.begin()

    assert not reading.head_is_too_large


@pytest.mark.parametrize(("size_bytes", "silent"), [(100, False), (101, True)])
def test_a_body_is_silent_when_too_much_comes_that_is_none_of_it(size_bytes: int, silent: bool) -> None:
    reading = with_body()
    with reading.segment(50):
        reading.body(50)
    with reading.segment(size_bytes):
        pass

    assert reading.body_is_silent is silent


@pytest.mark.parametrize(("body_bytes", "tiny"), [(9, True), (10, False)])
def test_chunks_are_tiny_by_their_mean(body_bytes: int, tiny: bool) -> None:
    reading = with_body()
    reading.body(body_bytes)
    for _ in range(3):
        reading.chunk()

    assert reading.chunks_are_tiny is tiny
