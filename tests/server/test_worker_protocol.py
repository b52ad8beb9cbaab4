"""Sizes, messages and the restart budget."""

import asyncio
import io
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.framing import pack, read_message, read_message_blocking
from imageedit_server.worker.restarts import may_restart
from imageedit_server.worker.shapes import Size
from server.workers import edit_job

sides = st.integers(min_value=1, max_value=99999)
times = st.lists(st.floats(min_value=0, max_value=1000), max_size=12)


@given(sides, sides)
def test_a_size_reads_back_what_it_writes(width_px: int, height_px: int) -> None:
    size = Size(width_px, height_px)
    assert Size.parse(str(size)) == size


@pytest.mark.parametrize(
    "text", ["", "768", "768x", "x768", "768X768", "0x64", "-1x64", "768x768x3", "7 68x768", "٣x٣"]
)
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        Size.parse(text)


async def test_a_message_survives_both_ways_of_reading() -> None:
    job = edit_job(picture=bytes(range(256)) * 4)
    assert read_message_blocking(io.BytesIO(pack(job))) == job
    stream = asyncio.StreamReader()
    stream.feed_data(pack(job) + pack("next"))
    assert await read_message(stream) == job
    assert await read_message(stream) == "next"


@pytest.mark.parametrize("kept_bytes", [0, 3, 8, 20])
async def test_a_message_that_is_cut_off_is_an_end_of_file(kept_bytes: int) -> None:
    data = pack(edit_job())[:kept_bytes]
    with pytest.raises(EOFError):
        read_message_blocking(io.BytesIO(data))
    stream = asyncio.StreamReader()
    stream.feed_data(data)
    stream.feed_eof()
    with pytest.raises(EOFError):
        await read_message(stream)


def test_a_failure_can_be_pickled_and_its_error_says_the_message() -> None:
    failure = WorkerFailure(reason="DeviceFault", message="the card is gone", sticky=True)
    assert pickle.loads(pickle.dumps(failure)) == failure
    assert str(WorkerError(failure)) == "the card is gone"


@pytest.mark.parametrize(
    ("losses_at_s", "allowed"),
    [
        ([100.0], True),
        ([98.0, 99.0, 100.0], True),
        ([97.0, 98.0, 99.0, 100.0], False),
        ([1.0, 98.0, 99.0, 100.0], True),  # the first one has left the window
    ],
)
def test_a_worker_is_restarted_within_its_budget(losses_at_s: list[float], allowed: bool) -> None:
    assert may_restart(losses_at_s, now_s=100.0, max_restarts=3, window_s=50.0) is allowed


@given(times, st.integers(min_value=0, max_value=10))
def test_a_larger_budget_never_allows_less(losses_at_s: list[float], max_restarts: int) -> None:
    if may_restart(losses_at_s, now_s=1000.0, max_restarts=max_restarts, window_s=300.0):
        assert may_restart(losses_at_s, now_s=1000.0, max_restarts=max_restarts + 1, window_s=300.0)
