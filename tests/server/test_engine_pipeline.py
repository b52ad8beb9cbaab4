"""The real diffusers pipeline, in a real worker process, on the processor."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image

from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.shapes import Size
from server.pictures import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    YELLOW,
    Colour,
    Scene,
    centre_colour,
    corner_colour,
    far_apart,
)
from server.workers import SMALL, WatchedWorker, edit_job, real_settings, running_worker

pytestmark = pytest.mark.asyncio(loop_scope="module")

STEPS = 16
CLOSE = 24  # of 255, in every channel


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker() -> AsyncIterator[WatchedWorker]:
    async with running_worker(real_settings(steps=STEPS)) as worker:
        await worker.until(*(WorkerPhase.READY, WorkerPhase.FAILED))
        yield worker


def job_for(scene: Scene, prompt: str, *, seed: int = 1) -> EditJob:
    return edit_job(picture=scene.draw().tobytes(), prompt=prompt, steps=STEPS, seed=seed)


async def edited(worker: WatchedWorker, job: EditJob) -> Image.Image:
    result = await worker.edit(job)
    return Image.frombytes("RGB", (job.size.width_px, job.size.height_px), result.picture)


async def test_the_demo_model_loads_and_warms_with_a_checked_edit(worker: WatchedWorker) -> None:
    assert worker.phase is WorkerPhase.READY, worker.failure
    assert worker.load is not None
    assert worker.load.pipeline == "QwenImageEditPlusPipeline"
    assert worker.warm is not None
    assert worker.warm.check_ok
    assert worker.warm.check_message.startswith("edit at 128x128 gave a picture")
    assert 0 < worker.warm.edit_s_by_size["128x128"] <= worker.warm.warmup_s


@pytest.mark.parametrize(("word", "colour"), [("blue", BLUE), ("red", RED), ("white", WHITE)])
async def test_the_background_takes_the_colour_of_the_prompt(worker: WatchedWorker, word: str, colour: Colour) -> None:
    scene = Scene(kind="mug", colour=YELLOW, background=GREEN)
    picture = await edited(worker, job_for(scene, f"make the background {word}"))
    assert far_apart(corner_colour(picture), colour) <= CLOSE
    assert far_apart(centre_colour(picture), YELLOW) <= CLOSE


async def test_the_object_takes_the_colour_of_the_prompt(worker: WatchedWorker) -> None:
    scene = Scene(kind="box", colour=RED, background=WHITE)
    picture = await edited(worker, job_for(scene, "make the object green"))
    assert far_apart(centre_colour(picture), GREEN) <= CLOSE
    assert far_apart(corner_colour(picture), WHITE) <= CLOSE


async def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(worker: WatchedWorker) -> None:
    scene = Scene()
    first, again, other = [
        await worker.edit(job_for(scene, "make the background blue", seed=seed)) for seed in (7, 7, 8)
    ]
    assert first.picture == again.picture
    assert first.picture != other.picture


async def test_every_step_is_reported(worker: WatchedWorker) -> None:
    steps: list[tuple[int, int]] = []
    await worker.edit(
        job_for(Scene(), "make the background blue"), on_step=lambda step, steps_: steps.append((step, steps_))
    )
    assert steps == [(step, STEPS) for step in range(1, STEPS + 1)]


async def test_the_picture_has_the_size_of_the_job(worker: WatchedWorker) -> None:
    size = Size(160, 96)
    result = await worker.edit(edit_job(size=size, picture=bytes((200, 40, 40)) * size.area_px, steps=2))
    assert len(result.picture) == 3 * size.area_px


async def test_a_job_that_fails_leaves_the_worker_up(worker: WatchedWorker) -> None:
    pid = worker.pid
    with pytest.raises(WorkerError) as caught:
        await worker.edit(edit_job(picture=b"too short"))
    assert caught.value.failure.reason == "EditFailed"
    assert not caught.value.failure.sticky
    assert worker.phase is WorkerPhase.READY
    assert (await worker.edit(edit_job("after", steps=2))).job_id == "after"
    assert worker.pid == pid


async def test_a_model_that_gives_no_picture_does_not_become_ready() -> None:
    async with running_worker(real_settings(sizes=(SMALL,), steps=1)) as worker:  # one step: the noise goes to NaN
        await worker.until(WorkerPhase.READY, WorkerPhase.FAILED)
        assert worker.phase is WorkerPhase.FAILED
        assert worker.failure is not None
        assert worker.failure.reason == "WarmupFailed"
        assert "128x128" in worker.failure.message
        assert worker.restarts == 0


async def test_an_npu_that_is_not_there_is_named() -> None:
    async with running_worker(real_settings(device="npu")) as worker:
        await worker.until(WorkerPhase.READY, WorkerPhase.FAILED)
        assert worker.failure is not None
        assert worker.failure.reason == "DeviceUnavailable"
        assert "torch_npu" in worker.failure.message
