"""From a checked request to the first of its jobs: its pictures decoded, scaled and padded. Blocking.

What was received can be sixty megabytes; what waits in the queue is only the small picture.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace

from imageedit_server.api import images, masks
from imageedit_server.api.geometry import Plan, plan
from imageedit_server.api.results import Masked
from imageedit_server.api.wishes import Digests, EditRequest, Wish
from imageedit_server.settings import Settings
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.shapes import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A checked request, ready for the queue: the first of its jobs, and how each result becomes a file."""

    job: EditJob = field(repr=False)
    digests: Digests
    wish: Wish
    plan: Plan
    masked: Masked | None


def prepared(wanted: EditRequest, settings: Settings, *, mask_to_model: bool) -> Received:
    """Decode what was sent, bring it to a candidate size, and plan the way back.

    Args:
        mask_to_model: the model takes a mask itself.

    Raises:
        InvalidInput: a picture or the mask is not one that can be used.
    """
    wish, limit, colour, digests = wanted.wish, settings.max_pixels, settings.alpha_colour, wanted.digests()
    if not wanted.pictures:
        shape = wish.size if isinstance(wish.size, Size) else settings.sizes[0]
        planned = plan(shape, settings.sizes, wish.size)
        return Received(job=_first_job(wish, b"", (), planned), digests=digests, wish=wish, plan=planned, masked=None)
    first = wanted.pictures[0]
    ready = images.prepare(
        first, param="image", candidates=settings.sizes, max_pixels=limit, size=wish.size, alpha_colour=colour
    )
    further = tuple(
        images.reference(
            data,
            param=f"image[{number}]",
            candidate=ready.plan.placement.candidate,
            max_pixels=limit,
            alpha_colour=colour,
        )
        for number, data in enumerate(wanted.pictures[1:], start=1)
    )
    masked, model_mask = None, b""
    if wanted.mask is not None:
        # Read now so that a wrong one is refused before the card works for it, and again when it is used.
        masks.weights(wanted.mask, ready.plan, feather_px=wish.mask_feather_px)
        masked = Masked(
            picture=first,
            mask=wanted.mask,
            feather_px=wish.mask_feather_px,
            max_pixels=limit,
            alpha_colour=colour,
        )
        # The result is put into the mask in any case: a model keeps what lies outside, but not to the bit.
        model_mask = masks.for_model(wanted.mask, ready.plan) if mask_to_model else b""
    job = replace(_first_job(wish, ready.pixels, further, ready.plan), mask=model_mask)
    return Received(job=job, digests=digests, wish=wish, plan=ready.plan, masked=masked)


def _first_job(wish: Wish, picture: bytes, references: tuple[bytes, ...], planned: Plan) -> EditJob:
    return EditJob(
        job_id=uuid.uuid4().hex,
        picture=picture,
        references=references,
        size=planned.placement.candidate,
        prompt=wish.prompt,
        steps=wish.steps,
        seed=wish.seed,
        negative_prompt=wish.negative_prompt,
        true_cfg_scale=wish.true_cfg_scale,
        guidance_scale=wish.guidance_scale,
    )
