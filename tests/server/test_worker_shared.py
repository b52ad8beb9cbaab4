"""Messages whose pictures go through shared memory beside the pipe."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from imageedit_server.worker.framing import pack, read_message
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import CancelJob, EditResult
from imageedit_server.worker.shapes import Size
from imageedit_server.worker.shared import LARGE_BYTES, Area, Areas, make_descriptors, opened
from server.workers import SMALL, edit_job, kill, running_worker, stub_settings

PICTURE_BYTES = 3 * SMALL.area_px


@pytest.fixture
def sides() -> Iterator[tuple[Areas, Areas]]:
    """The API process's side and the worker's, for pictures of SMALL and up to two of them."""
    settings = stub_settings(max_references=2)
    to_worker, from_worker = make_descriptors(settings)
    worker = opened(outgoing=os.dup(from_worker), incoming=os.dup(to_worker))
    api = opened(outgoing=to_worker, incoming=from_worker)
    yield api, worker
    api.close()
    worker.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def picture(value: int) -> bytes:
    return bytes([value]) * PICTURE_BYTES


def test_pictures_arrive_and_the_message_stays_small(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    job = edit_job(picture=picture(1), references=(picture(2),))
    message = api.outgoing.pickled(job)
    assert len(message) < 2000
    assert worker.incoming.unpickled(message) == job


def test_both_directions_are_apart(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    job, result = edit_job(picture=picture(1)), EditResult(job_id="j", picture=picture(2), seconds=0.1, steps=4)
    there, back = api.outgoing.pickled(job), worker.outgoing.pickled(result)
    assert worker.incoming.unpickled(there) == job
    assert api.incoming.unpickled(back) == result


def test_what_was_read_is_not_changed_by_later_messages(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    first = worker.incoming.unpickled(api.outgoing.pickled(edit_job(picture=picture(1))))
    for value in (7, 8, 9):
        api.outgoing.pickled(edit_job(picture=picture(value)))
    assert first.picture == picture(1)


def test_two_pictures_may_be_under_way_whatever_is_said_between_them(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    for value in range(5):
        one, other = edit_job(picture=picture(value)), edit_job(picture=picture(value + 100))
        first = api.outgoing.pickled(one)
        between = api.outgoing.pickled(CancelJob(job_id="another"))
        second = api.outgoing.pickled(other)
        assert worker.incoming.unpickled(first) == one
        assert worker.incoming.unpickled(between) == CancelJob(job_id="another")
        assert worker.incoming.unpickled(second) == other


def test_a_picture_that_does_not_fit_stays_in_the_message(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    job = edit_job(picture=picture(1), references=(picture(2), picture(3)))
    message = api.outgoing.pickled(job)
    assert len(message) > PICTURE_BYTES
    assert worker.incoming.unpickled(message) == job


def test_small_bytes_stay_in_the_message(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    message = api.outgoing.pickled(bytes(LARGE_BYTES - 1))
    assert len(message) >= LARGE_BYTES - 1
    assert worker.incoming.unpickled(message) == bytes(LARGE_BYTES - 1)


async def test_a_frame_with_an_area_is_read_with_it(sides: tuple[Areas, Areas]) -> None:
    api, worker = sides
    job = edit_job(picture=picture(5))
    stream = asyncio.StreamReader()
    stream.feed_data(pack(job, api.outgoing))
    assert await read_message(stream, worker.incoming) == job


def test_no_descriptor_stays_open() -> None:
    before = open_descriptors()
    to_worker, from_worker = make_descriptors(stub_settings())
    areas = opened(outgoing=to_worker, incoming=from_worker)
    areas.close()
    assert open_descriptors() == before


def test_an_area_has_room_for_two_messages_of_the_largest_size() -> None:
    to_worker, from_worker = make_descriptors(stub_settings(sizes=(SMALL, Size(256, 128)), max_references=3))
    assert os.fstat(to_worker).st_size == 2 * (3 * 3 + 1) * 256 * 128  # three pictures and a mask
    assert os.fstat(from_worker).st_size == 2 * 3 * 256 * 128
    for descriptor in (to_worker, from_worker):
        area = Area(descriptor)
        area.close()
        os.close(descriptor)


async def test_workers_that_come_and_go_leave_no_descriptor_open() -> None:
    async with running_worker(stub_settings(), max_restarts=3) as worker:
        await worker.until(WorkerPhase.READY)
        before = open_descriptors()
        for _ in range(3):
            result = await worker.edit(edit_job(picture=picture(7)))
            assert result.picture == picture(248)
            kill(worker.pid, signal.SIGKILL)
            await worker.until(WorkerPhase.RESTARTING)
            await worker.until(WorkerPhase.READY)
        assert open_descriptors() == before
