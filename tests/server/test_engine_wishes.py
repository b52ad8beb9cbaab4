"""What a job may ask for beside picture and prompt, on the real pipeline; and edits that are ended early."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from PIL import Image

from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.shapes import Shape
from server.pictures import BLUE, GREEN, YELLOW, Scene, centre_colour, corner_colour, far_apart
from server.workers import SMALL, WatchedWorker, edit_job, real_settings, running_worker

pytestmark = pytest.mark.asyncio(loop_scope="module")

STEPS = 16
CLOSE = 24
SCENE = Scene(kind="mug", colour=YELLOW, background=GREEN)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker() -> AsyncIterator[WatchedWorker]:
    async with running_worker(real_settings(steps=STEPS, max_references=2, warm_cfg=True)) as worker:
        await worker.until(WorkerPhase.READY, WorkerPhase.FAILED)
        assert worker.phase is WorkerPhase.READY, worker.failure
        yield worker


def blue(job_id: str = "job") -> EditJob:
    return edit_job(job_id, picture=SCENE.draw().tobytes(), prompt="make the background blue", steps=STEPS)


def is_the_blue_edit(result: EditResult) -> bool:
    picture = Image.frombytes("RGB", (SMALL.width_px, SMALL.height_px), result.picture)
    return far_apart(corner_colour(picture), BLUE) <= CLOSE and far_apart(centre_colour(picture), YELLOW) <= CLOSE


async def test_every_shape_that_the_settings_allow_is_warmed(worker: WatchedWorker) -> None:
    assert worker.warm is not None
    assert [warmed.shape for warmed in worker.warm.served] == [
        Shape(size=SMALL, references=references, cfg=cfg) for references in (1, 2) for cfg in (False, True)
    ]
    assert worker.load is not None
    assert worker.load.capabilities.max_references == 2
    assert worker.load.capabilities.negative_prompt
    assert not worker.load.capabilities.guidance


async def test_a_further_picture_changes_the_result(worker: WatchedWorker) -> None:
    plain = await worker.edit(blue())
    second = Scene(kind="box").draw().tobytes()
    assert (await worker.edit(replace(blue(), references=(second,)))).picture != plain.picture


async def test_a_negative_prompt_with_a_scale_changes_the_result_and_alone_it_does_not(worker: WatchedWorker) -> None:
    plain = await worker.edit(blue())
    unscaled = await worker.edit(replace(blue(), negative_prompt="make the background red"))
    guided = await worker.edit(replace(blue(), negative_prompt="make the background red", true_cfg_scale=2.0))
    assert unscaled.picture == plain.picture
    assert guided.picture != plain.picture


async def test_a_guidance_scale_has_no_effect_on_a_model_that_was_not_distilled_for_it(worker: WatchedWorker) -> None:
    assert (await worker.edit(replace(blue(), guidance_scale=3.0))).picture == (await worker.edit(blue())).picture


async def test_the_stages_of_an_edit_add_up_to_its_seconds(worker: WatchedWorker) -> None:
    result = await worker.edit(blue())
    stages = result.stages
    assert stages.prepare_s + stages.denoise_s + stages.finish_s == pytest.approx(result.seconds, abs=0.01)
    assert min(stages.prepare_s, stages.denoise_s, stages.finish_s) > 0
    assert not result.retried_in_fp32


async def test_edits_that_are_cancelled_or_fail_leave_no_trace_in_later_ones(worker: WatchedWorker) -> None:
    chance = random.Random(3)
    expected = (await worker.edit(blue())).picture
    pid = worker.pid
    for number in range(12):
        spoilt = blue(f"spoilt-{number}")
        if number % 4 == 3:
            spoilt = replace(spoilt, picture=b"too short")
        last_step = chance.randint(1, STEPS // 2)  # late enough to matter, early enough to arrive

        def cancel(step: int, steps: int, job_id: str = spoilt.job_id, last_step: int = last_step) -> None:
            if step == last_step:
                worker.cancel(job_id)

        with pytest.raises(WorkerError) as caught:
            await worker.edit(spoilt, on_step=cancel)
        assert caught.value.failure.reason == ("EditFailed" if number % 4 == 3 else "Cancelled")
        good = await worker.edit(blue(f"good-{number}"))
        assert good.picture == expected
    assert is_the_blue_edit(good)
    assert worker.pid == pid
