"""The supervisor against real worker processes that run the stub engine."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.shapes import Size
from server.checkpoints import TRANSFORMER, copy_of_demo
from server.workers import SMALL, edit_job, is_alive, kill, running_worker, stub_settings

SLOW_S = 30.0


class Steps:
    """Counts steps, and lets a test wait for the first one."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.first = asyncio.Event()

    def __call__(self, step: int, steps: int) -> None:
        self.seen.append((step, steps))
        self.first.set()


async def test_a_worker_becomes_ready_through_each_phase_in_order() -> None:
    async with running_worker(stub_settings(sizes=(SMALL, Size(96, 64)))) as worker:
        await worker.until(WorkerPhase.READY)
    assert worker.phases == [WorkerPhase.LOADING, WorkerPhase.WARMING, WorkerPhase.READY]
    assert worker.load is not None
    assert worker.load.pipeline == "stub"
    assert worker.load.digest.startswith("sha256:")
    assert worker.warm is not None
    assert worker.warm.check_ok
    assert set(worker.warm.edit_s_by_size) == {"128x128", "96x64"}


async def test_an_edit_returns_its_picture_and_reports_every_step() -> None:
    steps = Steps()
    async with running_worker(stub_settings()) as worker:
        await worker.until(WorkerPhase.READY)
        result = await worker.edit(edit_job("a", picture=bytes((0, 1, 255)) * SMALL.area_px), on_step=steps)
    assert result.job_id == "a"
    assert result.picture == bytes((255, 254, 0)) * SMALL.area_px
    assert steps.seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_a_listener_that_fails_costs_only_its_own_progress() -> None:
    def broken(step: int, steps: int) -> None:
        raise ZeroDivisionError(step, steps)

    async with running_worker(stub_settings()) as worker:
        await worker.until(WorkerPhase.READY)
        assert (await worker.edit(edit_job("a"), on_step=broken)).job_id == "a"
        assert worker.phase is WorkerPhase.READY


async def test_start_returns_before_the_model_is_loaded() -> None:
    async with running_worker(stub_settings(load_s=SLOW_S)) as worker:
        assert worker.phase is WorkerPhase.STARTING
        await worker.until(WorkerPhase.LOADING)


async def test_an_edit_before_the_worker_is_ready_is_refused() -> None:
    async with running_worker(stub_settings(load_s=SLOW_S)) as worker:
        await worker.until(WorkerPhase.LOADING)
        with pytest.raises(WorkerError, match="loading") as caught:
            await worker.edit(edit_job())
    assert caught.value.failure.reason == "WorkerLost"


async def test_a_killed_worker_fails_its_edit_at_once_and_is_warm_before_it_is_ready_again() -> None:
    steps = Steps()
    async with running_worker(stub_settings(edit_s=0.4)) as worker:
        await worker.until(WorkerPhase.READY)
        first_pid = worker.pid
        edit = asyncio.create_task(worker.edit(edit_job(steps=400), on_step=steps))
        await steps.first.wait()
        killed_at_s = time.monotonic()
        kill(first_pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="SIGKILL") as caught:
            await edit
        assert time.monotonic() - killed_at_s < 2.0
        assert caught.value.failure.reason == "WorkerLost"
        assert worker.phase is not WorkerPhase.READY
        assert worker.warm is None

        await worker.until(WorkerPhase.READY)
        assert worker.pid not in (None, first_pid)
        assert worker.restarts == 1
        assert (await worker.edit(edit_job("after"))).job_id == "after"
    assert worker.phases[3:] == [
        WorkerPhase.RESTARTING,
        WorkerPhase.LOADING,
        WorkerPhase.WARMING,
        WorkerPhase.READY,
    ]


async def test_an_idle_worker_that_dies_is_replaced() -> None:
    async with running_worker(stub_settings()) as worker:
        await worker.until(WorkerPhase.READY)
        kill(worker.pid, signal.SIGKILL)
        await worker.until(WorkerPhase.RESTARTING)
        await worker.until(WorkerPhase.READY)
        assert worker.restarts == 1


async def test_more_losses_than_the_budget_fail_for_good() -> None:
    async with running_worker(stub_settings(), max_restarts=1) as worker:
        for _ in range(2):
            await worker.until(WorkerPhase.READY)
            kill(worker.pid, signal.SIGKILL)
            await worker.until(WorkerPhase.RESTARTING, WorkerPhase.FAILED)
        await worker.until(WorkerPhase.FAILED)
        assert worker.failure is not None
        assert worker.failure.reason == "WorkerLost"
        assert "2 times" in worker.failure.message
        assert worker.pid is None
        with pytest.raises(WorkerError, match="2 times"):
            await worker.edit(edit_job())


async def test_a_missing_model_fails_at_once_without_a_restart(tmp_path: Path) -> None:
    async with running_worker(stub_settings(model_dir=str(tmp_path / "nowhere"))) as worker:
        await worker.until(WorkerPhase.FAILED)
        assert worker.failure is not None
        assert worker.failure.reason == "ModelMissing"
        assert "nowhere" in worker.failure.message
        assert worker.restarts == 0
        assert worker.pid is None


async def test_a_truncated_model_fails_at_once_and_names_the_file(tmp_path: Path) -> None:
    folder = copy_of_demo(tmp_path)
    with (folder / TRANSFORMER).open("r+b") as weights:
        weights.truncate(100_000)
    async with running_worker(stub_settings(model_dir=str(folder))) as worker:
        await worker.until(WorkerPhase.FAILED)
        assert worker.failure is not None
        assert worker.failure.reason == "ModelInvalid"
        assert TRANSFORMER in worker.failure.message
        assert worker.restarts == 0


async def test_a_worker_that_hangs_is_killed_and_replaced() -> None:
    steps = Steps()
    options = {"hang_factor": 1.0, "hang_floor_s": 0.5}
    async with running_worker(stub_settings(edit_s=0.1), **options) as worker:
        await worker.until(WorkerPhase.READY)
        edit = asyncio.create_task(worker.edit(edit_job(steps=40), on_step=steps))
        await steps.first.wait()
        hung_pid = worker.pid
        kill(hung_pid, signal.SIGSTOP)
        with pytest.raises(WorkerError, match="nothing was heard") as caught:
            await edit
        assert caught.value.failure.reason == "Hung"
        await worker.until(WorkerPhase.READY)
        assert worker.pid != hung_pid


async def test_steps_keep_a_long_edit_alive() -> None:
    options = {"hang_factor": 1.0, "hang_floor_s": 0.5}
    async with running_worker(stub_settings(edit_s=0.1), **options) as worker:
        await worker.until(WorkerPhase.READY)
        result = await worker.edit(edit_job(steps=60))
    assert result.seconds > 2 * options["hang_floor_s"]
    assert worker.restarts == 0


async def test_the_edit_after_an_abandoned_one_gets_its_own_answer() -> None:
    steps = Steps()
    async with running_worker(stub_settings(edit_s=0.1)) as worker:
        await worker.until(WorkerPhase.READY)
        abandoned = asyncio.create_task(worker.edit(edit_job("abandoned", steps=16), on_step=steps))
        await steps.first.wait()
        abandoned.cancel()
        result = await worker.edit(edit_job("next"))
    assert result.job_id == "next"
    assert steps.seen[-1] == (16, 16)


async def test_a_cancelled_job_ends_at_its_next_step_and_the_worker_goes_on() -> None:
    steps = Steps()
    async with running_worker(stub_settings(edit_s=0.1)) as worker:
        await worker.until(WorkerPhase.READY)
        pid = worker.pid
        edit = asyncio.create_task(worker.edit(edit_job("long", steps=4000), on_step=steps))
        await steps.first.wait()
        worker.cancel("long")
        with pytest.raises(WorkerError) as caught:
            await edit
        assert caught.value.failure.reason == "Cancelled"
        assert not caught.value.failure.sticky
        assert len(steps.seen) < 400
        assert (await worker.edit(edit_job("after"))).job_id == "after"
        assert worker.pid == pid
    assert worker.restarts == 0


async def test_cancelling_a_job_that_does_not_run_changes_nothing() -> None:
    steps = Steps()
    async with running_worker(stub_settings(edit_s=0.4)) as worker:
        worker.cancel("a")  # not even started
        await worker.until(WorkerPhase.READY)
        worker.cancel("a")
        edit = asyncio.create_task(worker.edit(edit_job("b"), on_step=steps))
        await steps.first.wait()
        worker.cancel("a")
        assert (await edit).steps == 4
        worker.cancel("b")
        assert (await worker.edit(edit_job("b"))).job_id == "b"


@pytest.mark.parametrize("phase", [WorkerPhase.LOADING, WorkerPhase.READY])
async def test_stop_leaves_no_process_behind(phase: WorkerPhase) -> None:
    load_s = SLOW_S if phase is WorkerPhase.LOADING else 0.0
    async with running_worker(stub_settings(load_s=load_s)) as worker:
        await worker.until(phase)
        pid = worker.pid
    assert pid is not None
    assert not is_alive(pid)
    assert worker.pid is None


async def test_stop_answers_a_running_edit() -> None:
    steps = Steps()
    async with running_worker(stub_settings()) as worker:
        await worker.until(WorkerPhase.READY)
        edit = asyncio.create_task(worker.edit(edit_job(steps=4000), on_step=steps))
        await steps.first.wait()
    with pytest.raises(WorkerError, match="stopping"):
        await edit


async def test_an_edit_is_answered_when_its_supervision_breaks_down() -> None:
    def broken(reason: str) -> None:
        raise RuntimeError("no more of it")

    async with running_worker(stub_settings(), on_failure=broken) as worker:
        await worker.until(WorkerPhase.READY)
        with pytest.raises(WorkerError, match="cannot be supervised: RuntimeError: no more of it"):
            async with asyncio.timeout(10):
                await worker.edit(edit_job("bad", prompt="fault: error"))
        assert worker.phase is WorkerPhase.FAILED


@pytest.mark.parametrize(
    ("prompt", "reason", "replaced"),
    [
        ("fault: error", "EditFailed", False),
        ("fault: out of memory", "OutOfMemory", False),
        ("fault: bad output", "BadOutput", False),
        ("fault: sticky", "DeviceFault", True),
        ("fault: crash", "WorkerLost", True),
        ("fault: hang", "Hung", True),
    ],
)
async def test_each_way_to_fail_is_answered_and_counted_once_and_the_next_edit_is_served(
    prompt: str, reason: str, replaced: bool
) -> None:
    counted: list[str] = []
    options: dict[str, Any] = {"hang_factor": 1.0, "hang_floor_s": 0.5, "on_failure": counted.append}
    async with running_worker(stub_settings(), **options) as worker:
        await worker.until(WorkerPhase.READY)
        with pytest.raises(WorkerError) as caught:
            await worker.edit(edit_job("bad", prompt=prompt))
        assert (caught.value.failure.reason, caught.value.failure.sticky) == (reason, replaced)
        await worker.until(WorkerPhase.READY)
        assert (await worker.edit(edit_job("good"))).job_id == "good"
        assert worker.restarts == int(replaced)
    assert counted == [reason]


async def test_the_watchdog_knows_how_long_the_slowest_step_of_the_warm_up_took() -> None:
    steps = Steps()
    options = {"hang_factor": 3.0, "hang_floor_s": 0.1}
    async with running_worker(stub_settings(edit_s=2.0), **options) as worker:  # half a second a step
        await worker.until(WorkerPhase.READY)
        assert (await worker.edit(edit_job(steps=4), on_step=steps)).steps == 4
        assert worker.restarts == 0


@pytest.mark.parametrize(
    ("load_s", "edit_s", "reason", "said"),
    [(SLOW_S, 0.0, "ModelInvalid", "not loaded within 1.5 s"), (0.0, SLOW_S, "WarmupFailed", "1.5 s after the start")],
)
async def test_a_start_that_takes_too_long_is_ended_with_what_took_so_long(
    load_s: float, edit_s: float, reason: str, said: str
) -> None:
    counted: list[str] = []
    options: dict[str, Any] = {"start_deadline_s": 1.5, "on_failure": counted.append}
    async with running_worker(stub_settings(load_s=load_s, edit_s=edit_s), **options) as worker:
        await worker.until(WorkerPhase.FAILED, timeout_s=10)
        assert worker.failure is not None
        assert worker.failure.reason == reason
        assert said in worker.failure.message
        assert worker.pid is None
    assert counted == [reason]


async def test_the_deadline_of_the_start_does_not_end_a_worker_that_is_warm() -> None:
    async with running_worker(stub_settings(edit_s=0.1), start_deadline_s=2.0) as worker:
        await worker.until(WorkerPhase.READY)
        result = await worker.edit(edit_job(steps=100))
        assert result.seconds > 2.0
        assert worker.restarts == 0
