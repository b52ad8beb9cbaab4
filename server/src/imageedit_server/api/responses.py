"""The bodies of good answers: what was made, and all that made it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from imageedit_server.api.edits import Edited, limits_of
from imageedit_server.api.fields import LOWEST_STEPS, MAX_FEATHER_PX, MAX_N, MAX_PROMPT_CHARACTERS
from imageedit_server.api.files import ResultFiles
from imageedit_server.api.pieces import File
from imageedit_server.api.preparing import Received
from imageedit_server.api.service import Service
from imageedit_server.errors import EditFailed
from imageedit_server.worker.protocol import Capabilities

# The model works on squares of 16 x 16 pixels: 8 by the VAE, 2 by the transformer. One is a token.
TOKEN_PX = 16 * 16


async def images_body(
    service: Service, received: Received, edited: Sequence[Edited], *, base_address: str
) -> dict[str, object]:
    """The body of `POST /v1/images/edits`, with the pictures or the addresses of their files."""
    keys = [
        {"url": base_address + "v1/files/" + await asyncio.to_thread(_saved, service.files, one, received)}
        if received.wish.as_url and service.files is not None
        else {"b64_json": File(data=one.file)}
        for one in edited
    ]
    data = [{**key, "seed": one.seed} for key, one in zip(keys, edited, strict=True)]
    return {"created": int(time.time()), "data": data, **facts(service, received, edited)}


def facts(service: Service, received: Received, edited: Sequence[Edited]) -> dict[str, object]:
    """What was made, and by what."""
    settings, load, wish = service.settings, service.worker.load, received.wish
    quality = {} if wish.quality is None else {"quality": wish.quality}
    return {
        "size": str(received.plan.output),
        "working_size": str(received.plan.placement.working),
        "output_format": wish.format,
        "background": "opaque",
        **quality,
        "seed": edited[0].seed,
        "steps": edited[0].steps,
        "seconds": round(sum(one.seconds for one in edited), 3),
        "model": settings.model_name,
        "revision": settings.model_revision,
        "digest": "" if load is None else load.digest,
        "usage": usage(edited),
    }


def usage(edited: Sequence[Edited]) -> dict[str, object]:
    """Tokens that the model saw and made, of all runs: each run reads its input again."""
    text = sum(one.text_tokens for one in edited)
    seen = sum(_tokens(one) * one.pictures for one in edited)
    made = sum(_tokens(one) for one in edited)
    return {
        "input_tokens": text + seen,
        "input_tokens_details": {"text_tokens": text, "image_tokens": seen},
        "output_tokens": made,
        "output_tokens_details": {"text_tokens": 0, "image_tokens": made},
        "total_tokens": text + seen + made,
    }


def model_body(service: Service) -> dict[str, object]:
    """The served model, with everything that a client may ask of it."""
    settings, load, limits = service.settings, service.worker.load, limits_of(service)
    can = Capabilities() if load is None else load.capabilities
    return {
        "id": settings.model_name,
        "object": "model",
        "created": service.started_at,
        "owned_by": "imageedit-server",
        "revision": settings.model_revision,
        "digest": "" if load is None else load.digest,
        "sizes": [str(size) for size in settings.sizes],
        "steps": {"lowest": LOWEST_STEPS, "standard": limits.steps, "high": limits.steps_high},
        "max_images": limits.max_references,
        "max_n": MAX_N,
        "max_prompt_characters": MAX_PROMPT_CHARACTERS,
        "max_prompt_tokens": limits.max_prompt_tokens,
        "max_pixels": settings.max_pixels,
        "max_body_bytes": settings.max_body_bytes,
        "output_formats": ["png", "jpeg", "webp"],
        "response_formats": ["b64_json", "url"] if limits.files else ["b64_json"],
        "edits": can.edit,
        "generations": can.generate,
        "negative_prompt": limits.negative_prompt,
        "guidance_scale": limits.guidance,
        "mask": mask_word(can),
        "max_mask_feather": MAX_FEATHER_PX,
    }


def mask_word(can: Capabilities) -> str:
    """What becomes of a mask: put into the input here, taken by the model, needed by it, or no use."""
    if not can.edit:
        return "none"
    if can.mask_required:
        return "required"
    return "model" if can.mask else "composite"


def _saved(files: ResultFiles, one: Edited, received: Received) -> str:
    try:
        return files.save(one.file, received.wish.format)
    except OSError as error:
        raise EditFailed(
            f"The result could not be written to --files-dir ({error.strerror}); ask for b64_json.",
            code="file_not_written",
        ) from error


def _tokens(one: Edited) -> int:
    return one.at.area_px // TOKEN_PX
