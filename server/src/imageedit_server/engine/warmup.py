"""Run every shape before the first user does, and prove on one real edit that the model gives pictures."""

import logging
from collections.abc import Callable
from itertools import pairwise

from PIL import Image, ImageChops, ImageDraw, ImageStat

from imageedit_server.engine.base import EditEngine, OnStep
from imageedit_server.engine.faults import classify
from imageedit_server.logs import fields
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.protocol import Capabilities, EditJob, EditResult, EngineSettings, Warmed, WarmReport
from imageedit_server.worker.shapes import Shape, Size

PROMPT = "make the background blue"
MIN_CONTRAST = (
    4.0  # standard deviation over the pixels of one channel, of 255; black, grey and white pictures have none
)
MIN_CHANGE = 1.0  # mean absolute difference to the input, of 255; an edit that changes nothing is none
_FIRST_RUN_STEPS = 2  # one step divides by zero in schedulers with a terminal shift
_SEED = 0
_NEGATIVE_PROMPT = "blurred"
_CFG_SCALE = 2.0

log = logging.getLogger("imageedit.warmup")


def grid(settings: EngineSettings, can: Capabilities) -> tuple[Shape, ...]:
    """Every shape that settings and model allow, the smallest useful set first: plain edits at each size.

    | order | shapes |
    | --- | --- |
    | 1 | one picture, each size (where the model edits) |
    | 2 | one picture and a negative prompt, each size (only with `warm_cfg`) |
    | 3 | from text, each size; then with a negative prompt (where the model makes pictures from text) |
    | 4 | two pictures, each size; then with a negative prompt; and so on up to the model's `max_references` |

    A mask makes no shape of its own: a model that takes one is given one always, for a plain edit a white one.
    """
    edits = range(1, can.max_references + 1) if can.edit else range(0)
    counts = (*edits[:1], *((0,) if can.generate else ()), *edits[1:])
    return tuple(
        Shape(size=size, references=references, cfg=cfg)
        for references in counts
        for cfg in ((False, True) if settings.warm_cfg else (False,))
        for size in settings.sizes
    )


def warm_up(
    engine: EditEngine, settings: EngineSettings, can: Capabilities, *, clock_s: Callable[[], float]
) -> WarmReport:
    """Run each shape twice, first briefly for what only a first run costs, then fully and timed; check that edit.

    Once the budget is spent, no further shape is begun; plain edits are run at any price.

    Raises:
        WorkerError: WarmupFailed with the shape, when a run fails.
    """
    started_s = clock_s()
    served: list[Warmed] = []
    checks: list[tuple[bool, str]] = []
    for shape in grid(settings, can):
        spent_s = clock_s() - started_s
        if not _is_plain(shape) and settings.warmup_budget_s is not None and spent_s >= settings.warmup_budget_s:
            log.warning("not_warmed", extra=fields(shape=str(shape), spent_s=round(spent_s, 1)))
            continue
        warmed, check = _warm(engine, shape, settings.steps, clock_s)
        served.append(warmed)
        checks.append(check)
        log.info("warmed", extra=fields(shape=str(shape), edit_s=round(warmed.edit_s, 3)))
    failed = [check for check in checks if not check[0]]
    check_ok, check_message = (failed or checks)[0]
    plain = [one for one in served if one.shape.references == (1 if can.edit else 0) and not one.shape.cfg]
    return WarmReport(
        warmup_s=clock_s() - started_s,
        edit_s_by_size={str(warmed.shape.size): warmed.edit_s for warmed in plain},
        check_ok=check_ok,
        check_message=check_message,
        served=tuple(served),
    )


def _warm(
    engine: EditEngine, shape: Shape, steps: int, clock_s: Callable[[], float]
) -> tuple[Warmed, tuple[bool, str]]:
    picture = draw_picture(shape.size) if shape.references else b""
    _run(engine, _job(shape, picture, min(_FIRST_RUN_STEPS, steps)), _ignore_step)
    signs_s = [clock_s()]
    result = _run(engine, _job(shape, picture, steps), lambda step, steps: signs_s.append(clock_s()))
    signs_s.append(clock_s())
    silence_s = max(later - earlier for earlier, later in pairwise(signs_s))
    warmed = Warmed(shape=shape, edit_s=result.seconds, silence_s=silence_s)
    return warmed, check_edit(shape.size, picture, result.picture)


def _is_plain(shape: Shape) -> bool:
    return shape.references <= 1 and not shape.cfg


def check_edit(size: Size, before: bytes, after: bytes) -> tuple[bool, str]:
    """Decide whether raw RGB bytes are a picture, and another one than the input, if there was one.

    | output | good |
    | --- | --- |
    | of another size | no |
    | less contrast than MIN_CONTRAST in every channel | no |
    | differs from the input by less than MIN_CHANGE on average | no |
    | anything else | yes |
    """
    expected_bytes = 3 * size.area_px
    if len(after) != expected_bytes:
        return False, f"edit at {size} gave {len(after)} bytes instead of {expected_bytes}"
    picture = _image(size, after)
    contrast = max(ImageStat.Stat(picture).stddev)
    if contrast < MIN_CONTRAST:
        return False, f"edit at {size} gave a picture of one colour (contrast {contrast:.1f} of 255); check the weights"
    change = max(ImageStat.Stat(ImageChops.difference(_image(size, before), picture)).mean) if before else MIN_CHANGE
    if change < MIN_CHANGE:
        return False, f"edit at {size} gave its input back (change {change:.1f} of 255); check the weights"
    return True, f"edit at {size} gave a picture with contrast {contrast:.0f} of 255"


def draw_picture(size: Size) -> bytes:
    """Draw a yellow box on a plain green ground: raw RGB."""
    image = Image.new("RGB", (size.width_px, size.height_px), (70, 150, 90))
    across, down = size.width_px / 8, size.height_px / 8
    ImageDraw.Draw(image).rectangle((2.5 * across, 2.5 * down, 5.5 * across, 6.5 * down), fill=(240, 200, 60))
    return image.tobytes()


def _run(engine: EditEngine, job: EditJob, on_step: OnStep) -> EditResult:
    try:
        return engine.edit(job, on_step)
    except Exception as error:
        log.exception("warm_up_failed", extra=fields(shape=str(job.shape)))
        message = f"warm-up at {job.shape} failed: {classify(error).message}"
        raise WorkerError(WorkerFailure(reason="WarmupFailed", message=message, sticky=True)) from error


def _job(shape: Shape, picture: bytes, steps: int) -> EditJob:
    return EditJob(
        job_id="warm-up",
        picture=picture,
        size=shape.size,
        prompt=PROMPT,
        steps=steps,
        seed=_SEED,
        references=(picture,) * (shape.references - 1),
        negative_prompt=_NEGATIVE_PROMPT if shape.cfg else None,
        true_cfg_scale=_CFG_SCALE if shape.cfg else 1.0,
    )


def _image(size: Size, picture: bytes) -> Image.Image:
    return Image.frombytes("RGB", (size.width_px, size.height_px), picture)


def _ignore_step(step: int, steps: int) -> None:
    del step, steps
