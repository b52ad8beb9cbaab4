"""From the engine's raw pixels to the file that the client gets. Blocking: call it in a thread."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from PIL import Image

from imageedit_server.api.colours import WHITE, Colour
from imageedit_server.api.geometry import Plan
from imageedit_server.api.images import at_output_size
from imageedit_server.api.masks import weights
from imageedit_server.api.png_writer import written
from imageedit_server.api.wishes import Format

# From here on a JPEG keeps the colour of each pixel; below, of each 2x2, as most programs do.
FULL_COLOUR_QUALITY = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """What is needed to put the edit into the input: both files as they came, because pixels take more memory."""

    picture: bytes = field(repr=False)
    mask: bytes = field(repr=False)
    feather_px: int
    max_pixels: int
    alpha_colour: Colour = WHITE

    @property
    def size_bytes(self) -> int:
        """Memory that is kept while the edit waits."""
        return len(self.picture) + len(self.mask)


def finished(pixels: bytes, planned: Plan, *, masked: Masked | None, kind: Format, compression: int) -> bytes:
    """Cut the padding off the engine's raw RGB, bring it to the output size, put it into the mask, and encode it."""
    candidate, output = planned.placement.candidate, (planned.output.width_px, planned.output.height_px)
    picture = Image.frombytes("RGB", (candidate.width_px, candidate.height_px), pixels)
    if picture.size != output or planned.placement.working != candidate:
        picture = picture.resize(output, Image.Resampling.LANCZOS, box=planned.placement.box)
    if masked is not None:
        before = at_output_size(
            masked.picture,
            planned,
            param="image",
            max_pixels=masked.max_pixels,
            alpha_colour=masked.alpha_colour,
        )
        share = weights(masked.mask, planned, feather_px=masked.feather_px)
        picture = Image.composite(picture, before, share)
    return encoded(picture, kind, compression)


def encoded(picture: Image.Image, kind: Format, compression: int) -> bytes:
    """The bytes of a file; `compression` is the quality of a lossy one, 0 to 100."""
    file = io.BytesIO()
    match kind:
        case "png":
            return written(picture)
        case "jpeg":
            # Pillow takes 0 for its own default.
            quality = max(1, compression)
            picture.save(file, "JPEG", quality=quality, subsampling=0 if quality >= FULL_COLOUR_QUALITY else 2)
        case "webp":
            picture.save(file, "WEBP", quality=compression)
    return file.getvalue()
