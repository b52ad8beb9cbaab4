"""How each pipeline class is called for one job, and held to the job's size."""

from types import ModuleType
from typing import Any

from PIL import Image

from imageedit_server.engine.kinds import Kind
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.shapes import Size

# The picture that the text encoder sees. Larger ones cost tokens and were never trained.
_CONDITION_AREA_PX = 384 * 384
_KEEP, _REPAINT = 0, 255
# Where the mask says, nothing of the input shines through, and every step that was asked for is run.
_STRENGTH = 1.0
_CONSTANTS = ("VAE_IMAGE_SIZE", "CONDITION_IMAGE_SIZE")
_DIMENSIONS = "calculate_dimensions"


def check_module(module: ModuleType, kind: Kind) -> None:
    """Raise RuntimeError for a release of diffusers that cannot be held to a size in the way that is known here."""
    if kind.size_held_by == "constants":
        missing = [name for name in _CONSTANTS if not isinstance(getattr(module, name, None), int)]
    elif kind.size_held_by == "dimensions":
        missing = [] if callable(getattr(module, _DIMENSIONS, None)) else [_DIMENSIONS]
    else:
        missing = []
    if missing:
        raise RuntimeError(f"this release of diffusers has no {missing[0]}; install the release that the server pins")


def hold_to(module: ModuleType, kind: Kind, size: Size) -> None:
    """Have the next call encode its pictures at the candidate's own size; stock pipelines enlarge them first."""
    holder: Any = module
    if kind.size_held_by == "constants":
        holder.VAE_IMAGE_SIZE = size.area_px
        holder.CONDITION_IMAGE_SIZE = min(_CONDITION_AREA_PX, size.area_px)
    elif kind.size_held_by == "dimensions":
        holder.calculate_dimensions = lambda area, ratio: (size.width_px, size.height_px, None)


def pictures_of(job: EditJob, kind: Kind, *, cell_px: int) -> dict[str, object]:
    """The arguments that hold pictures; `cell_px` is the side of the square that one latent stands for."""
    if not kind.edits:
        return {}
    images = [_image(picture, job.size) for picture in (job.picture, *job.references)]
    if not kind.mask:
        return {"image": images}
    return {"image": images[0], "mask_image": _mask(job, cell_px), "strength": _STRENGTH}


def _image(picture: bytes, size: Size) -> Image.Image:
    return Image.frombytes("RGB", (size.width_px, size.height_px), picture)


def _mask(job: EditJob, cell_px: int) -> Image.Image:
    """White where to repaint: whole cells, as soon as one of their pixels may change.

    The pipelines look at one pixel of each cell, and a fine stroke between those would be repainted nowhere.
    """
    size = (job.size.width_px, job.size.height_px)
    if not job.mask:
        return Image.new("L", size, _REPAINT)
    cells = (job.size.width_px // cell_px, job.size.height_px // cell_px)
    touched = Image.frombytes("L", size, job.mask).point([_KEEP] + [_REPAINT] * 255)
    share = touched.resize(cells, Image.Resampling.BOX)
    return share.point([_KEEP] + [_REPAINT] * 255).resize(size, Image.Resampling.NEAREST)
