"""The real pipeline on `--device npu`, on a simulated card; first that the card itself keeps its promises."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image

from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob
from server.pictures import BLUE, GREEN, YELLOW, Scene, centre_colour, corner_colour, far_apart
from server.running import SOURCE
from server.workers import SMALL, WatchedWorker, edit_job, real_settings, running_worker

SIMULATION = Path(__file__).parents[1] / "support" / "simulated_npu"
CHECKS = SIMULATION / "checks.py"
STEPS = 8
CLOSE = 32  # bfloat16


def on_the_card(*command: str) -> str:
    """Run Python with the simulated torch_npu, and return what it printed last."""
    environment = {**os.environ, "PYTHONPATH": f"{SIMULATION}:{SOURCE}", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, timeout=55
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def results() -> dict[str, str | None]:
    found: dict[str, str | None] = json.loads(on_the_card(str(CHECKS)))
    return found


@pytest.mark.parametrize(
    "name",
    [
        node.name
        for node in ast.parse(CHECKS.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
    ],
)
def test_the_simulated_card_keeps_its_promise(results: dict[str, str | None], name: str) -> None:
    assert results[name] is None, results[name]


def test_the_doctor_tries_the_card() -> None:
    trial = json.loads(on_the_card("-m", "imageedit_server.engine.trial", "npu"))
    assert (trial["error"], trial["device_name"]) == ("", "Ascend910B-simulated")
    assert trial["memory_total_bytes"] == 64 * 1024**3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def faults(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """Where to write what the card shall do next."""
    path = tmp_path_factory.mktemp("card") / "fault.json"
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(SIMULATION))
        patched.setenv("SIMULATED_NPU_FAULT", str(path))
        patched.setenv("OMP_NUM_THREADS", "1")
        yield path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(faults: Path) -> AsyncIterator[WatchedWorker]:
    options = {"hang_floor_s": 6.0, "max_restarts": 4}
    async with running_worker(real_settings(device="npu", steps=STEPS), **options) as worker:
        await worker.until(WorkerPhase.READY, WorkerPhase.FAILED)
        assert worker.phase is WorkerPhase.READY, worker.failure
        yield worker


def tell(faults: Path, fault: dict[str, object]) -> None:
    """Have the card fail; the file appears whole."""
    part = faults.with_suffix(".part")
    part.write_text(json.dumps(fault))
    part.rename(faults)


def blue(job_id: str = "job") -> EditJob:
    scene = Scene(kind="mug", colour=YELLOW, background=GREEN)
    return edit_job(job_id, picture=scene.draw().tobytes(), prompt="make the background blue", steps=STEPS)


async def assert_edits_well(worker: WatchedWorker) -> None:
    result = await worker.edit(blue("good"))
    picture = Image.frombytes("RGB", (SMALL.width_px, SMALL.height_px), result.picture)
    assert far_apart(corner_colour(picture), BLUE) <= CLOSE
    assert far_apart(centre_colour(picture), YELLOW) <= CLOSE


@pytest.mark.asyncio(loop_scope="module")
async def test_the_real_pipeline_edits_on_the_card(worker: WatchedWorker) -> None:
    await assert_edits_well(worker)


@pytest.mark.asyncio(loop_scope="module")
async def test_running_out_of_memory_once_costs_one_edit_and_no_worker(worker: WatchedWorker, faults: Path) -> None:
    pid = worker.pid
    tell(faults, {"out_of_memory": True, "after": 500})
    with pytest.raises(WorkerError) as caught:
        await worker.edit(blue())
    assert (caught.value.failure.reason, caught.value.failure.sticky) == ("OutOfMemory", False)
    await assert_edits_well(worker)
    assert worker.pid == pid


@pytest.mark.asyncio(loop_scope="module")
async def test_an_edit_is_ended_early_and_the_next_one_is_right(worker: WatchedWorker) -> None:
    pid = worker.pid
    with pytest.raises(WorkerError) as caught:
        await worker.edit(
            replace(blue("early"), seed=5), on_step=lambda step, steps: worker.cancel("early") if step == 2 else None
        )
    assert caught.value.failure.reason == "Cancelled"
    await assert_edits_well(worker)
    assert worker.pid == pid


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"code": 507035, "sticky": True, "after": 300}, "DeviceFault"),
        ({"code": 507011, "later": True, "after": 300}, "DeviceFault"),
        ({"hang_s": 60, "after": 300}, "Hung"),
    ],
)
async def test_a_fault_after_which_the_card_is_lost_to_a_process_replaces_the_worker(
    worker: WatchedWorker, faults: Path, fault: dict[str, object], reason: str
) -> None:
    restarts, pid = worker.restarts, worker.pid
    tell(faults, fault)
    with pytest.raises(WorkerError) as caught:
        await worker.edit(blue())
    assert (caught.value.failure.reason, caught.value.failure.sticky) == (reason, True)
    await worker.until(WorkerPhase.READY, WorkerPhase.FAILED)
    assert worker.restarts == restarts + 1
    assert worker.pid != pid
    await assert_edits_well(worker)
