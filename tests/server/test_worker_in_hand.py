"""Two edits with one worker process: one runs, the other is in its hand."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator

import pytest

from imageedit_server.api.queue import EditQueue, OnStep
from imageedit_server.worker.failures import NotStarted, WorkerError
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob, EditResult
from server.workers import SMALL, WatchedWorker, edit_job, kill, running_worker, stub_settings

LONG_S = 30.0


@pytest.fixture
async def worker() -> AsyncIterator[WatchedWorker]:
    async with running_worker(stub_settings(edit_s=0.4)) as running:
        await running.until(WorkerPhase.READY)
        yield running


async def both(
    worker: WatchedWorker, first: dict[str, object], second: dict[str, object]
) -> tuple[asyncio.Task[EditResult], asyncio.Task[EditResult]]:
    """Both are sent, and the first has made a step."""
    stepped = asyncio.Event()
    fields = {"picture": bytes([1]) * (3 * SMALL.area_px)}
    one = asyncio.create_task(worker.edit(edit_job("one", **fields | first), on_step=lambda *_: stepped.set()))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    fields = {"picture": bytes([2]) * (3 * SMALL.area_px)}
    other = asyncio.create_task(worker.edit(edit_job("other", **fields | second)))  # type: ignore[arg-type]
    async with asyncio.timeout(LONG_S):
        await stepped.wait()
    return one, other


async def said(task: asyncio.Task[EditResult]) -> str:
    try:
        async with asyncio.timeout(LONG_S):
            await task
    except WorkerError as error:
        return f"{type(error).__name__} {error.failure.reason}"
    return "picture"


async def test_both_get_their_own_picture_in_their_order(worker: WatchedWorker) -> None:
    one, other = await both(worker, {}, {})
    assert (await one).picture == bytes([254]) * (3 * SMALL.area_px)
    assert not other.done()
    assert (await other).picture == bytes([253]) * (3 * SMALL.area_px)


async def test_a_third_waits_until_the_first_has_ended(worker: WatchedWorker) -> None:
    one, other = await both(worker, {}, {})
    third = asyncio.create_task(worker.edit(edit_job("third")))
    done, _ = await asyncio.wait((one, other, third), return_when=asyncio.FIRST_COMPLETED)
    assert done == {one}
    assert [await said(task) for task in (other, third)] == ["picture", "picture"]


async def test_a_worker_that_is_killed_has_not_started_what_is_in_its_hand(worker: WatchedWorker) -> None:
    one, other = await both(worker, {}, {})
    kill(worker.pid, signal.SIGKILL)
    assert (await said(one), await said(other)) == ("WorkerError WorkerLost", "NotStarted WorkerLost")


async def test_a_sticky_fault_does_not_touch_what_is_in_hand(worker: WatchedWorker) -> None:
    one, other = await both(worker, {"prompt": "fault: sticky"}, {})
    assert (await said(one), await said(other)) == ("WorkerError DeviceFault", "NotStarted WorkerLost")
    await worker.until(WorkerPhase.RESTARTING)
    await worker.until(WorkerPhase.READY)
    assert await said(asyncio.create_task(worker.edit(edit_job("next")))) == "picture"


async def test_an_edit_that_fails_is_followed_by_what_is_in_hand(worker: WatchedWorker) -> None:
    one, other = await both(worker, {"prompt": "fault: error"}, {})
    assert (await said(one), await said(other)) == ("WorkerError EditFailed", "picture")


async def test_what_is_in_hand_can_be_cancelled_and_the_one_that_runs_goes_on(worker: WatchedWorker) -> None:
    one, other = await both(worker, {}, {})
    worker.cancel("other")
    assert (await said(one), await said(other)) == ("picture", "WorkerError Cancelled")


async def test_an_edit_that_waits_for_the_worker_s_hand_can_be_cancelled(worker: WatchedWorker) -> None:
    one, other = await both(worker, {}, {})
    steps: list[int] = []
    third = asyncio.create_task(worker.edit(edit_job("third"), on_step=lambda step, _: steps.append(step)))
    await asyncio.sleep(0)
    worker.cancel("third")
    assert [await said(task) for task in (one, other, third)] == ["picture", "picture", "WorkerError Cancelled"]
    assert steps == []


async def test_both_can_be_cancelled_at_once(worker: WatchedWorker) -> None:
    one, other = await both(worker, {}, {})
    worker.cancel("one")
    worker.cancel("other")
    assert await said(other) == "WorkerError Cancelled"
    # Its last step may have been done already.
    assert await said(one) in ("WorkerError Cancelled", "picture")
    assert await said(asyncio.create_task(worker.edit(edit_job("next")))) == "picture"


async def test_the_watchdog_of_what_is_in_hand_starts_with_its_turn() -> None:
    async with running_worker(stub_settings(edit_s=0.1), hang_factor=1.0, hang_floor_s=3.0) as worker:
        await worker.until(WorkerPhase.READY)
        one, other = await both(worker, {}, {"prompt": "fault: hang"})
        assert (await said(one), await said(other)) == ("picture", "WorkerError Hung")


async def test_without_a_worker_an_edit_is_not_started() -> None:
    async with running_worker(stub_settings(load_s=60.0)) as worker:
        with pytest.raises(NotStarted):
            await worker.edit(edit_job())


async def test_what_was_not_begun_is_not_to_blame_for_the_loss(worker: WatchedWorker) -> None:
    """A job that is blamed twice is put into quarantine."""
    one, other = await both(worker, {}, {})
    kill(worker.pid, signal.SIGKILL)
    assert await said(one) == "WorkerError WorkerLost"
    with pytest.raises(NotStarted) as raised:
        await other
    assert not raised.value.failure.sticky


async def test_an_edit_whose_client_left_before_the_worker_got_it_is_not_done(worker: WatchedWorker) -> None:
    """Clients of the next edit come and go while one edit runs: each of them was done in full afterwards."""
    stepped: list[str] = []
    half = asyncio.Event()

    async def edit(job: EditJob, on_step: OnStep) -> EditResult:
        def noted(step: int, steps: int) -> None:
            stepped.append(job.job_id)
            on_step(step, steps)
            if 2 * step >= steps:
                half.set()

        return await worker.edit(job, on_step=noted)

    queue = EditQueue(edit=edit, cancel=worker.cancel, now_s=time.monotonic)
    queue.release()
    turns = asyncio.create_task(queue.run())
    first = queue.submit(edit_job("runs"))
    async with asyncio.timeout(LONG_S):
        await half.wait()
        for name in ("leaves", "leaves too", "leaves as well"):
            ticket = queue.submit(edit_job(name))
            await asyncio.sleep(0)
            queue.withdraw(ticket)
        stays = queue.submit(edit_job("stays"))
        await first.answer
        await stays.answer
    turns.cancel()
    assert set(stepped) == {"runs", "stays"}
