"""What the worker gets ahead of its turn, and what happens to it then."""

from __future__ import annotations

import asyncio

import pytest

from imageedit_server.api.queue import OnStep
from imageedit_server.api.ticket import TooLate
from imageedit_server.gate.estimate import Load
from imageedit_server.worker.failures import NotStarted, WorkerError, WorkerFailure, lost
from imageedit_server.worker.protocol import EditJob, EditResult
from support.edit_queues import running
from support.hand_worker import LOST, job, settle

STEPS = 4


class PairWorker:
    """Takes one edit and one more; their steps and ends come when the test says so."""

    def __init__(self) -> None:
        self.sent: list[EditJob] = []
        self.cancelled: list[str] = []
        self._ends: dict[str, asyncio.Future[EditResult]] = {}
        self._on_steps: dict[str, OnStep] = {}

    @property
    def names(self) -> list[str]:
        return [one.job_id for one in self.sent]

    async def edit(self, wanted: EditJob, on_step: OnStep) -> EditResult:
        self.sent.append(wanted)
        self._on_steps[wanted.job_id] = on_step
        self._ends[wanted.job_id] = asyncio.get_running_loop().create_future()
        return await self._ends[wanted.job_id]

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)

    async def step(self, name: str, number: int) -> None:
        self._on_steps[name](number, STEPS)
        await settle()

    async def finish(self, name: str) -> None:
        self._ends[name].set_result(EditResult(job_id=name, picture=name.encode(), seconds=1.0, steps=STEPS))
        await settle()

    async def fail(self, name: str, error: Exception) -> None:
        self._ends[name].set_exception(error)
        await settle()


@pytest.mark.parametrize(("step", "names"), [(1, ["a"]), (2, ["a", "b"]), (4, ["a", "b"])])
async def test_the_next_edit_is_sent_from_the_middle_of_the_one_that_runs(step: int, names: list[str]) -> None:
    worker = PairWorker()
    async with running(worker) as queue:
        for name in "abc":
            queue.submit(job(name))
        await settle()
        await worker.step("a", step)
        assert worker.names == names


async def test_what_comes_after_the_middle_is_sent_at_once() -> None:
    worker = PairWorker()
    async with running(worker) as queue:
        queue.submit(job("a"))
        await settle()
        await worker.step("a", 3)
        queue.submit(job("b"))
        await settle()
        assert worker.names == ["a", "b"]


async def test_what_was_sent_ahead_counts_as_waiting_until_its_turn() -> None:
    worker = PairWorker()
    waits: list[float] = []
    async with running(worker, on_start=waits.append) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"))
        await settle()
        await worker.step("a", 2)
        assert queue.line.load == Load(running=1, waiting=1)
        assert queue.line.place(ticket) == 1
        assert len(waits) == 1
        await worker.finish("a")
        assert queue.line.load == Load(running=1, waiting=0)
        assert len(waits) == 2


async def test_each_edit_is_sent_once_and_gets_its_own_result() -> None:
    worker = PairWorker()
    async with running(worker) as queue:
        tickets = {name: queue.submit(job(name)) for name in "abcd"}
        await settle()
        for name, ticket in tickets.items():
            await worker.step(name, 2)
            await worker.finish(name)
            assert (await ticket.answer).picture == name.encode()
    assert worker.names == ["a", "b", "c", "d"]


async def test_a_result_that_comes_before_its_turn_is_not_lost() -> None:
    worker = PairWorker()
    async with running(worker) as queue:
        first, second = queue.submit(job("a")), queue.submit(job("b"))
        await settle()
        await worker.step("a", 2)
        await worker.finish("b")
        assert not second.answer.done()
        await worker.finish("a")
        assert (await first.answer).job_id == "a"
        assert (await second.answer).job_id == "b"


async def test_an_edit_whose_client_leaves_is_taken_back() -> None:
    worker = PairWorker()
    drops: list[str] = []
    async with running(worker, on_drop=drops.append) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"))
        third = queue.submit(job("c"))
        await settle()
        await worker.step("a", 2)
        queue.withdraw(ticket)
        assert (worker.cancelled, drops) == (["b"], ["client_gone"])
        await worker.step("a", 3)
        assert worker.names == ["a", "b", "c"]
        await worker.finish("a")
        await worker.finish("c")
        assert (await third.answer).job_id == "c"


async def test_an_edit_that_its_worker_did_not_begin_is_done_by_the_next_worker() -> None:
    worker = PairWorker()
    async with running(worker) as queue:
        first, second = queue.submit(job("a")), queue.submit(job("b"))
        await settle()
        await worker.step("a", 2)
        queue.hold()
        await worker.fail("a", WorkerError(LOST))
        await worker.fail("b", NotStarted(lost("gone")))
        assert isinstance(first.answer.exception(), WorkerError)
        assert not second.answer.done()
        queue.release()
        await settle()
        assert worker.names == ["a", "b", "b"]
        await worker.finish("b")
        assert (await second.answer).job_id == "b"


async def test_an_edit_that_failed_on_the_card_is_not_done_again() -> None:
    worker = PairWorker()
    broken = WorkerFailure(reason="EditFailed", message="bad shape", sticky=False)
    async with running(worker) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"))
        await settle()
        await worker.step("a", 2)
        await worker.finish("a")
        await worker.fail("b", WorkerError(broken))
        with pytest.raises(WorkerError, match="bad shape"):
            await ticket.answer
    assert worker.names == ["a", "b"]


async def test_an_edit_that_notes_its_start_on_disk_is_not_sent_ahead() -> None:
    worker = PairWorker()
    noted: list[str] = []

    async def note() -> None:
        noted.append("b")

    async with running(worker) as queue:
        queue.submit(job("a"))
        queue.submit(job("b"), before_start=note)
        await settle()
        await worker.step("a", 3)
        assert (worker.names, noted) == (["a"], [])
        await worker.finish("a")
        assert (worker.names, noted) == (["a", "b"], ["b"])


async def test_an_edit_that_would_come_too_late_is_not_sent_ahead() -> None:
    worker, clock = PairWorker(), [0.0]
    async with running(worker, now_s=lambda: clock[0], expected_s=lambda _: 10.0) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"), deadline_s=15.0)
        await settle()
        clock[0] = 6.0
        await worker.step("a", 3)
        assert worker.names == ["a"]
        clock[0] = 16.0
        await worker.finish("a")
        with pytest.raises(TooLate):
            await ticket.answer
    assert worker.names == ["a"]


async def test_an_edit_that_became_too_late_in_the_worker_s_hand_ends_at_its_first_step() -> None:
    worker, clock = PairWorker(), [0.0]
    async with running(worker, now_s=lambda: clock[0], expected_s=lambda _: 10.0) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"), deadline_s=25.0)
        await settle()
        clock[0] = 6.0
        await worker.step("a", 3)
        assert worker.names == ["a", "b"]
        clock[0] = 26.0
        await worker.finish("a")
        with pytest.raises(TooLate):
            await ticket.answer
    assert worker.cancelled == ["b"]


async def test_open_steps_are_chosen_once_when_the_edit_is_sent() -> None:
    worker = PairWorker()
    asked: list[int] = []

    def steps(_: EditJob, waiting: int) -> int:
        asked.append(waiting)
        return 10 - waiting

    async with running(worker, steps=steps) as queue:
        queue.submit(job("a", steps=STEPS))
        for name in "bc":
            queue.submit(job(name), steps_open=True)
        await settle()
        await worker.step("a", 2)
        await worker.finish("a")
    assert (asked, worker.sent[1].steps) == ([1], 9)


async def test_when_no_worker_comes_back_the_edit_in_hand_is_answered_too() -> None:
    worker = PairWorker()
    async with running(worker) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"))
        await settle()
        await worker.step("a", 2)
        queue.fail_all(LOST)
        with pytest.raises(WorkerError, match="gone"):
            await ticket.answer
