"""Facts about the queue in front of the worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from imageedit_server.api.queue import EditQueue, Ticket
from imageedit_server.gate.estimate import Load
from imageedit_server.worker.protocol import EditJob, EditResult, Size, WorkerError, WorkerFailure

LOST = WorkerFailure(reason="WorkerLost", message="gone", sticky=True)


def job(name: str) -> EditJob:
    return EditJob(job_id=name, picture=b"", size=Size(32, 32), prompt="p", steps=1, seed=0)


class HandWorker:
    """Edits end when the test says so."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self._ends: dict[str, asyncio.Future[EditResult]] = {}

    async def edit(self, wanted: EditJob) -> EditResult:
        self.started.append(wanted.job_id)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self._ends[wanted.job_id] = asyncio.get_running_loop().create_future()
        try:
            return await self._ends[wanted.job_id]
        finally:
            self.at_once -= 1

    def finish(self, name: str) -> None:
        self._ends[name].set_result(EditResult(job_id=name, picture=b"", seconds=1.0))

    def fail(self, name: str, error: Exception) -> None:
        self._ends[name].set_exception(error)


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def running(worker: HandWorker, clock: list[float] | None = None) -> AsyncIterator[EditQueue]:
    times = clock or [0.0]
    queue = EditQueue(edit=worker.edit, now_s=lambda: times[0])
    queue.release()
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_edits_run_one_at_a_time_in_the_order_of_arrival() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        tickets = [queue.submit(job(name)) for name in "abc"]
        for name, ticket in zip("abc", tickets, strict=True):
            await settle()
            worker.finish(name)
            assert (await ticket.answer).job_id == name

    assert worker.started == ["a", "b", "c"]
    assert worker.most_at_once == 1


async def test_the_load_tells_running_from_waiting() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        assert queue.load == Load(running=0, waiting=0)
        for name in "abc":
            queue.submit(job(name))
        await settle()

        assert queue.load == Load(running=1, waiting=2)


async def test_every_change_of_the_load_is_told() -> None:
    worker = HandWorker()
    told: list[Load] = []
    queue = EditQueue(edit=worker.edit, now_s=lambda: 0.0, on_change=told.append)
    queue.release()
    task = asyncio.create_task(queue.run())
    queue.submit(job("a"))
    await settle()
    worker.finish("a")
    await settle()
    task.cancel()

    assert told == [Load(waiting=1), Load(running=1), Load()]


async def test_the_wait_of_an_edit_is_told_when_it_starts() -> None:
    worker = HandWorker()
    clock = [10.0]
    waits: list[float] = []
    queue = EditQueue(edit=worker.edit, now_s=lambda: clock[0], on_start=waits.append)
    queue.submit(job("a"))
    clock[0] = 13.5
    queue.release()
    task = asyncio.create_task(queue.run())
    await settle()
    task.cancel()

    assert waits == [3.5]


async def test_a_withdrawn_edit_never_starts() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        tickets = [queue.submit(job(name)) for name in "abc"]
        await settle()
        queue.withdraw(tickets[1])
        worker.finish("a")
        await settle()

        assert worker.started == ["a", "c"]
        assert tickets[1].answer.cancelled()


async def test_withdrawing_an_edit_that_runs_leaves_it_to_finish() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        first, second = queue.submit(job("a")), queue.submit(job("b"))
        await settle()
        queue.withdraw(first)
        await settle()
        assert worker.started == ["a"]
        worker.finish("a")
        await settle()
        worker.finish("b")

        assert (await second.answer).job_id == "b"


@pytest.mark.parametrize("error", [WorkerError(LOST), RuntimeError("a bug")])
async def test_an_edit_that_fails_fails_alone(error: Exception) -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        first, second = queue.submit(job("a")), queue.submit(job("b"))
        await settle()
        worker.fail("a", error)
        await settle()
        worker.finish("b")

        with pytest.raises(type(error)):
            await first.answer
        assert (await second.answer).job_id == "b"


async def test_nothing_starts_while_the_queue_is_held() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        queue.hold()
        queue.submit(job("a"))
        await settle()
        assert worker.started == []
        queue.release()
        await settle()

        assert worker.started == ["a"]


async def test_all_that_wait_are_answered_when_the_worker_does_not_come_back() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        queue.hold()
        tickets = [queue.submit(job(name)) for name in "ab"]
        queue.fail_all(LOST)

        for ticket in tickets:
            with pytest.raises(WorkerError, match="gone"):
                await ticket.answer
        assert queue.load == Load()


async def test_idle_means_nothing_runs_and_nothing_waits() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        await queue.wait_idle()
        ticket: Ticket = queue.submit(job("a"))
        idle = asyncio.create_task(queue.wait_idle())
        await settle()
        assert not idle.done()
        worker.finish("a")
        await ticket.answer
        await settle()

        assert idle.done()
