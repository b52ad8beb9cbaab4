"""Mixes of good edits, cancelled ones and every way to fail: each gets its own answer, and nothing is left behind."""

import asyncio
import random
from collections import Counter
from dataclasses import replace

import pytest

from imageedit_server.engine.stub import FAULTS
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.supervisor import Worker
from server.workers import SMALL, edit_job, running_worker, stub_settings

EDITS = 300
KILLS = 4
OUT_OF_MEMORY = "fault: out of memory"
SURVIVED = tuple(prompt for prompt in FAULTS if prompt not in ("fault: sticky", OUT_OF_MEMORY))


def plain(number: int) -> EditJob:
    """A job whose right answer is known: its one colour, inverted."""
    return edit_job(f"job-{number}", picture=bytes([number % 251]) * (3 * SMALL.area_px), steps=4)


async def outcome(worker: Worker, job: EditJob, *, cancel_at: int | None) -> str:
    def on_step(step: int, steps: int) -> None:
        if step == cancel_at:
            worker.cancel(job.job_id)

    try:
        result = await worker.edit(job, on_step=on_step)
    except WorkerError as error:
        return error.failure.reason
    assert result.job_id == job.job_id
    assert result.picture == bytes([255 - job.picture[0]]) * len(job.picture)
    return "picture"


@pytest.mark.parametrize("seed", [1, 2])
async def test_cancels_and_faults_in_any_order_leave_every_edit_its_own_answer(seed: int) -> None:
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    async with running_worker(stub_settings(edit_s=0.008)) as worker:
        await worker.until(WorkerPhase.READY)
        pid = worker.pid
        for number in range(EDITS):
            kind = chance.choice(("good", "good", "cancelled", "failing"))
            job = plain(number)
            if kind == "failing":
                job = replace(job, prompt=chance.choice(SURVIVED))
            said = await outcome(worker, job, cancel_at=chance.randint(1, 3) if kind == "cancelled" else None)
            seen[f"{kind}: {said}"] += 1
        assert worker.pid == pid
        assert await outcome(worker, plain(1), cancel_at=None) == "picture"
    assert seen["good: picture"] > EDITS // 3
    assert seen["cancelled: Cancelled"] > EDITS // 10
    assert seen["failing: EditFailed"] + seen["failing: BadOutput"] > EDITS // 10
    # A cancel may reach the worker after its last step; then the edit is done, and that is its answer.
    assert set(seen) <= {
        "good: picture",
        "cancelled: Cancelled",
        "cancelled: picture",
        "failing: EditFailed",
        "failing: BadOutput",
    }


async def test_a_worker_that_is_lost_again_and_again_costs_only_the_edits_that_killed_it() -> None:
    async with running_worker(stub_settings(), max_restarts=KILLS) as worker:
        for number in range(KILLS):
            await worker.until(WorkerPhase.READY)
            deadly = replace(plain(number), prompt=("fault: crash", "fault: sticky")[number % 2])
            assert await outcome(worker, deadly, cancel_at=None) in ("WorkerLost", "DeviceFault")
            await worker.until(WorkerPhase.READY)
            assert await outcome(worker, plain(number), cancel_at=None) == "picture"
        assert worker.restarts == KILLS


async def test_running_out_of_memory_twice_in_a_row_replaces_the_worker() -> None:
    async with running_worker(stub_settings()) as worker:
        await worker.until(WorkerPhase.READY)
        full = edit_job(prompt=OUT_OF_MEMORY)
        assert await outcome(worker, full, cancel_at=None) == "OutOfMemory"
        assert worker.phase is WorkerPhase.READY
        assert await outcome(worker, full, cancel_at=None) == "OutOfMemory"
        async with asyncio.timeout(20):
            await worker.until(WorkerPhase.RESTARTING)
            await worker.until(WorkerPhase.READY)
        assert worker.restarts == 1
        assert await outcome(worker, plain(3), cancel_at=None) == "picture"
