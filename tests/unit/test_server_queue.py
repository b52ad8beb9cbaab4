"""Facts about the queue in front of the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from imageedit_server.api.queue import EditQueue
from imageedit_server.api.ticket import Ticket, TooLate
from imageedit_server.gate.estimate import Load
from imageedit_server.worker.failures import WorkerError
from support.edit_queues import running
from support.hand_worker import LOST, HandWorker, job, settle
from unit.operator_shell.virtual_time import now, run_virtual


async def test_edits_run_one_at_a_time_in_the_order_of_arrival() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        tickets = [queue.submit(job(name)) for name in "abc"]
        for name, ticket in zip("abc", tickets, strict=True):
            await settle()
            worker.finish()
            assert (await ticket.answer).job_id == name

    assert worker.started == ["a", "b", "c"]
    assert worker.most_at_once == 1


async def test_the_load_tells_running_from_waiting() -> None:
    async with running(HandWorker()) as queue:
        assert queue.line.load == Load(running=0, waiting=0)
        for name in "abc":
            queue.submit(job(name))
        await settle()

        assert queue.line.load == Load(running=1, waiting=2)


async def test_every_change_of_the_load_is_told() -> None:
    worker = HandWorker()
    told: list[Load] = []
    async with running(worker, on_change=told.append) as queue:
        queue.submit(job("a"))
        await settle()
        worker.finish()
        await settle()

        assert told == [Load(waiting=1), Load(running=1), Load()]


async def test_the_wait_of_an_edit_is_told_when_it_starts() -> None:
    clock = [10.0]
    waits: list[float] = []
    async with running(HandWorker(), now_s=lambda: clock[0], on_start=waits.append) as queue:
        queue.hold()
        queue.submit(job("a"))
        clock[0] = 13.5
        queue.release()
        await settle()

        assert waits == [3.5]


async def test_a_withdrawn_edit_never_starts() -> None:
    worker = HandWorker()
    drops: list[str] = []
    async with running(worker, on_drop=drops.append) as queue:
        tickets = [queue.submit(job(name)) for name in "abc"]
        await settle()
        queue.withdraw(tickets[1])
        worker.finish()
        await settle()

        assert worker.started == ["a", "c"]
        assert tickets[1].answer.cancelled()
        assert drops == ["client_gone"]


async def test_an_edit_that_runs_for_nobody_ends_at_its_next_step_and_the_next_one_starts() -> None:
    worker = HandWorker()
    drops: list[str] = []
    async with running(worker, on_drop=drops.append) as queue:
        first, second = queue.submit(job("a")), queue.submit(job("b"))
        await settle()
        queue.withdraw(first)
        await settle()
        assert (worker.cancelled, worker.started) == (["a"], ["a"])
        worker.step()
        await settle()
        worker.finish()

        assert (await second.answer).job_id == "b"
        assert drops == ["cancelled"]


async def test_an_edit_goes_on_while_one_of_its_requests_is_left() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        ticket = queue.submit(job("a"))
        queue.attach(ticket)
        await settle()
        queue.withdraw(ticket)
        assert worker.cancelled == []
        worker.finish()
        assert (await ticket.answer).job_id == "a"


async def test_the_last_of_several_requests_gives_the_edit_up() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        ticket = queue.submit(job("a"), deadline_s=50.0)
        queue.attach(ticket, deadline_s=60.0)
        await settle()
        queue.withdraw(ticket, deadline_s=60.0)
        queue.withdraw(ticket, deadline_s=50.0)

        assert worker.cancelled == ["a"]


def virtually(main: Callable[[EditQueue, HandWorker], Awaitable[None]]) -> None:
    """Run with a clock that jumps: the queue's and the loop's."""
    worker = HandWorker()

    async def run() -> None:
        async with running(worker, now_s=now) as queue:
            await main(queue, worker)

    run_virtual(run)


def test_an_edit_that_lingers_is_there_for_a_retry_that_comes_in_time() -> None:
    async def main(queue: EditQueue, worker: HandWorker) -> None:
        ticket = queue.submit(job("a"), linger_s=3.0)
        await settle()
        queue.withdraw(ticket)
        await asyncio.sleep(2.9)
        queue.attach(ticket)
        await asyncio.sleep(10)
        worker.step()
        worker.finish()

        assert (await ticket.answer).job_id == "a"

    virtually(main)


def test_an_edit_that_lingers_is_given_up_when_its_time_is_over() -> None:
    async def main(queue: EditQueue, worker: HandWorker) -> None:
        runs, waits = queue.submit(job("a"), linger_s=3.0), queue.submit(job("b"), linger_s=3.0)
        await settle()
        queue.withdraw(runs)
        queue.withdraw(waits)
        await asyncio.sleep(2.9)
        assert (worker.cancelled, queue.line.load) == ([], Load(running=1, waiting=1))
        await asyncio.sleep(0.2)

        assert (worker.cancelled, queue.line.load) == (["a"], Load(running=1, waiting=0))
        assert waits.answer.cancelled()
        worker.step()

    virtually(main)


def test_an_edit_that_lingers_when_its_turn_comes_is_dropped() -> None:
    async def main(queue: EditQueue, worker: HandWorker) -> None:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"), linger_s=3.0)
        await settle()
        queue.withdraw(ticket)
        worker.finish()
        await settle()

        assert worker.started == ["a"]
        assert ticket.answer.cancelled()

    virtually(main)


async def test_an_edit_whose_turn_comes_too_late_is_answered_and_not_run() -> None:
    clock = [0.0]
    worker = HandWorker()
    drops: list[str] = []
    async with running(worker, now_s=lambda: clock[0], expected_s=lambda _: 2.0, on_drop=drops.append) as queue:
        queue.submit(job("a"))
        late = queue.submit(job("b"), deadline_s=10.0)
        in_time = queue.submit(job("c"), deadline_s=12.0)
        await settle()
        clock[0] = 9.0
        worker.finish()
        await settle()

        assert worker.started == ["a", "c"]
        with pytest.raises(TooLate):
            await late.answer
        assert not in_time.answer.done()
        assert drops == ["too_late"]


async def test_the_latest_of_several_deadlines_counts() -> None:
    clock = [0.0]
    worker = HandWorker()
    async with running(worker, now_s=lambda: clock[0], expected_s=lambda _: 2.0) as queue:
        queue.submit(job("a"))
        ticket = queue.submit(job("b"), deadline_s=10.0)
        queue.attach(ticket, deadline_s=20.0)
        await settle()
        clock[0] = 12.0
        worker.finish()
        await settle()

        assert worker.started == ["a", "b"]


async def test_steps_that_the_client_left_open_are_chosen_when_the_edit_starts() -> None:
    worker = HandWorker()
    async with running(worker, steps=lambda wanted, waiting: wanted.steps + 10 * waiting) as queue:
        first = queue.submit(job("a", steps=4), steps_open=True)
        queue.submit(job("b", steps=4))
        queue.submit(job("c", steps=4))
        await settle()
        worker.finish()
        await settle()

        assert worker.steps == [24, 4]
        assert first.job.steps == 24


async def test_what_must_be_noted_before_an_edit_is_noted_before_it() -> None:
    worker = HandWorker()
    noted: list[list[str]] = []

    async def note() -> None:
        await asyncio.sleep(0)
        noted.append(list(worker.started))

    async with running(worker) as queue:
        queue.submit(job("a"), before_start=note)
        await settle()

        assert noted == [[]]
        assert worker.started == ["a"]


async def test_an_edit_that_is_given_up_while_its_start_is_noted_never_runs() -> None:
    worker = HandWorker()
    may_go_on = asyncio.Event()

    async def note() -> None:
        await may_go_on.wait()

    async with running(worker) as queue:
        ticket = queue.submit(job("a"), before_start=note)
        await settle()
        queue.withdraw(ticket)
        may_go_on.set()
        await settle()

        assert worker.started == []
        assert queue.line.load == Load()


async def test_place_and_seconds_until_the_start_count_what_is_in_front() -> None:
    clock = [0.0]
    worker = HandWorker()
    async with running(worker, now_s=lambda: clock[0], expected_s=lambda one: float(one.steps)) as queue:
        first, second, third = (queue.submit(job(name, steps=10)) for name in "abc")
        await settle()
        clock[0] = 4.0

        assert [queue.line.place(ticket) for ticket in (first, second, third)] == [None, 1, 2]
        assert [queue.line.starts_in_s(ticket) for ticket in (first, second, third)] == [0.0, 6.0, 16.0]
        assert queue.line.ahead_s == 26.0


async def test_progress_is_told_by_step() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        ticket = queue.submit(job("a"))
        await settle()
        worker.step(3)

        assert ticket.step == 3


@pytest.mark.parametrize("error", [WorkerError(LOST), RuntimeError("a bug")])
async def test_an_edit_that_fails_fails_alone(error: Exception) -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        first, second = queue.submit(job("a")), queue.submit(job("b"))
        await settle()
        worker.fail(error)
        await settle()
        worker.finish()

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
    async with running(HandWorker()) as queue:
        queue.hold()
        tickets = [queue.submit(job(name)) for name in "ab"]
        queue.fail_all(LOST)

        for ticket in tickets:
            with pytest.raises(WorkerError, match="gone"):
                await ticket.answer
        assert queue.line.load == Load()


async def test_idle_means_nothing_runs_and_nothing_waits() -> None:
    worker = HandWorker()
    async with running(worker) as queue:
        await queue.wait_idle()
        ticket: Ticket = queue.submit(job("a"))
        idle = asyncio.create_task(queue.wait_idle())
        await settle()
        assert not idle.done()
        worker.finish()
        await ticket.answer
        await settle()

        assert idle.done()
