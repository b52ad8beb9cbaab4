"""The engine and the image code that every server here wraps, ours and its peers, so that only the server differs.

The engine holds the slot for a fixed time and returns the picture inverted. A body is the one of `POST /v1/edit`: JSON
with the picture as base64 of a PNG; so is the answer. Imports nothing that a peer's environment lacks.
"""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from typing import Any

from imageedit_server.api import images, results
from imageedit_server.api.geometry import Plan
from imageedit_server.engine.checkpoint import resolve_model_dir
from imageedit_server.engine.stub import StubEngine
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.shapes import Size

SIDE_PX = 768
STEPS = 16
MAX_PIXELS = 50_000_000
SIZES = (Size(SIDE_PX, SIDE_PX),)


def fixed_engine(edit_s: float) -> StubEngine:
    """An engine whose every edit takes this long."""
    model_dir: Path = resolve_model_dir("demo")
    return StubEngine(model_dir=model_dir, edit_s=edit_s, load_s=0.0, steps=STEPS)


def decoded(body: dict[str, Any]) -> tuple[EditJob, Plan]:
    """From the JSON to what the engine takes, as ours does it."""
    picture = images.from_base64(body["image"], param="image")
    ready = images.prepare(picture, param="image", candidates=SIZES, max_pixels=MAX_PIXELS)
    job = EditJob(
        job_id=uuid.uuid4().hex,
        picture=ready.pixels,
        size=ready.plan.placement.candidate,
        prompt=body["prompt"],
        steps=STEPS,
        seed=body.get("seed", 0),
    )
    return job, ready.plan


def edited(engine: StubEngine, job: EditJob) -> EditResult:
    """The slot's work."""
    return engine.edit(job, lambda step, steps: None)


def encoded(result: EditResult, plan: Plan) -> dict[str, Any]:
    """From the engine's pixels to the JSON, as ours does it."""
    file = results.finished(result.picture, plan, masked=None, kind="png", compression=100)
    return {"output": base64.b64encode(file).decode("ascii"), "seconds": round(result.seconds, 3)}
