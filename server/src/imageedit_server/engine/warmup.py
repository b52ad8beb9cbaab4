"""Run every size before the first user does, and prove on one real edit that the model gives pictures."""

import logging
from collections.abc import Callable

from PIL import Image, ImageChops, ImageDraw, ImageStat

from imageedit_server.engine.base import EditEngine
from imageedit_server.engine.faults import classify
from imageedit_server.worker.protocol import (
    EditJob,
    EditResult,
    EngineSettings,
    Size,
    WarmReport,
    WorkerError,
    WorkerFailure,
)

PROMPT = "make the background blue"
MIN_CONTRAST = (
    4.0  # standard deviation over the pixels of one channel, of 255; black, grey and white pictures have none
)
MIN_CHANGE = 1.0  # mean absolute difference to the input, of 255; an edit that changes nothing is none
_FIRST_RUN_STEPS = 2  # one step divides by zero in schedulers with a terminal shift
_SEED = 0

log = logging.getLogger("imageedit.warmup")


def warm_up(engine: EditEngine, settings: EngineSettings, *, clock_s: Callable[[], float]) -> WarmReport:
    """Run each size twice, first briefly for what only a first run costs, then fully and timed; check the first edit.

    Raises:
        WorkerError: WarmupFailed with the size, when a run fails.
    """
    started_s = clock_s()
    edit_s_by_size: dict[str, float] = {}
    checks: list[tuple[bool, str]] = []
    for size in settings.sizes:
        picture = draw_picture(size)
        _run(engine, _job(size, picture, min(_FIRST_RUN_STEPS, settings.steps)))
        result = _run(engine, _job(size, picture, settings.steps))
        edit_s_by_size[str(size)] = result.seconds
        checks.append(check_edit(size, picture, result.picture))
        log.info("warm at %s: one edit takes %.2f s", size, result.seconds)
    failed = [check for check in checks if not check[0]]
    check_ok, check_message = (failed or checks)[0]
    return WarmReport(
        warmup_s=clock_s() - started_s,
        edit_s_by_size=edit_s_by_size,
        check_ok=check_ok,
        check_message=check_message,
    )


def check_edit(size: Size, before: bytes, after: bytes) -> tuple[bool, str]:
    """Decide whether raw RGB bytes are a picture, and another one than the input.

    | output | good |
    | --- | --- |
    | of another size | no |
    | less contrast than MIN_CONTRAST in every channel | no |
    | differs from the input by less than MIN_CHANGE on average | no |
    | anything else | yes |
    """
    if len(after) != len(before):
        return False, f"edit at {size} gave {len(after)} bytes instead of {len(before)}"
    picture = _image(size, after)
    contrast = max(ImageStat.Stat(picture).stddev)
    if contrast < MIN_CONTRAST:
        return False, f"edit at {size} gave a picture of one colour (contrast {contrast:.1f} of 255); check the weights"
    change = max(ImageStat.Stat(ImageChops.difference(_image(size, before), picture)).mean)
    if change < MIN_CHANGE:
        return False, f"edit at {size} gave its input back (change {change:.1f} of 255); check the weights"
    return True, f"edit at {size} gave a picture with contrast {contrast:.0f} of 255"


def draw_picture(size: Size) -> bytes:
    """Draw a yellow box on a plain green ground: raw RGB."""
    image = Image.new("RGB", (size.width_px, size.height_px), (70, 150, 90))
    across, down = size.width_px / 8, size.height_px / 8
    ImageDraw.Draw(image).rectangle((2.5 * across, 2.5 * down, 5.5 * across, 6.5 * down), fill=(240, 200, 60))
    return image.tobytes()


def _run(engine: EditEngine, job: EditJob) -> EditResult:
    try:
        return engine.edit(job, _ignore_step)
    except Exception as error:
        log.exception("warm-up at %s failed", job.size)
        message = f"warm-up at {job.size} failed: {classify(error).message}"
        raise WorkerError(WorkerFailure(reason="WarmupFailed", message=message, sticky=True)) from error


def _job(size: Size, picture: bytes, steps: int) -> EditJob:
    return EditJob(job_id="warm-up", picture=picture, size=size, prompt=PROMPT, steps=steps, seed=_SEED)


def _image(size: Size, picture: bytes) -> Image.Image:
    return Image.frombytes("RGB", (size.width_px, size.height_px), picture)


def _ignore_step(step: int, steps: int) -> None:
    del step, steps
