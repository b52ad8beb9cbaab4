"""The mask: which pixels of the result come from the edit, and how much. Blocking: call it in a thread."""

from __future__ import annotations

import io

from PIL import Image, ImageChops, ImageFilter

from imageedit_server.api import whole_png
from imageedit_server.api.geometry import Placement, Plan
from imageedit_server.api.images import DAMAGE
from imageedit_server.api.padding import padded
from imageedit_server.errors import InvalidInput

EDIT = 255


def weights(mask: bytes, planned: Plan, *, feather_px: int) -> Image.Image:
    """Read a mask as weights of the output size: 0 keeps the input's pixel, 255 takes the edit's.

    Alpha 0 of the mask is 255 here, alpha 255 is 0, and what lies between is mixed. What an output of another shape
    adds around the picture is edited.

    Raises:
        InvalidInput: not a PNG with alpha of the picture's size, or it leaves nothing to edit.
    """
    feathered = _feathered(_in_frame(_editable(mask, planned), planned.in_output), feather_px)
    if feathered.getbbox() is None:
        raise _invalid("The mask leaves nothing to edit: make it transparent where to edit, with less mask_feather.")
    return feathered


def for_model(mask: bytes, planned: Plan) -> bytes:
    """The mask for a model that takes one: raw grey of the candidate size, not 0 wherever the result may change.

    Where the picture is padded by its edges, the mask is too.

    Raises:
        InvalidInput: as `weights`.
    """
    editable = _in_frame(_editable(mask, planned), planned.in_working)
    return padded(editable, planned.placement).tobytes()


def _in_frame(editable: Image.Image, frame: Placement) -> Image.Image:
    if editable.size != (frame.working.width_px, frame.working.height_px):
        # The box filter gives exactly 0 where every pixel beneath is 0, which the sharper filters do not.
        editable = editable.resize((frame.working.width_px, frame.working.height_px), Image.Resampling.BOX)
    if frame.working == frame.candidate:
        return editable
    around = Image.new("L", (frame.candidate.width_px, frame.candidate.height_px), EDIT)
    around.paste(editable, (frame.left_px, frame.top_px))
    return around


def _editable(mask: bytes, planned: Plan) -> Image.Image:
    if not mask.startswith(whole_png.SIGNATURE):
        raise _invalid("The mask is not a PNG; send a PNG that is transparent where to edit.")
    try:
        with Image.open(io.BytesIO(mask), formats=("PNG",)) as opened:
            _check_header(opened, planned)
            whole_png.check(mask)
            return ImageChops.invert(opened.convert("RGBA").getchannel("A"))
    except DAMAGE as damage:
        raise _invalid("The mask is damaged or cut off; send the whole file.") from damage


def _check_header(opened: Image.Image, planned: Plan) -> None:
    picture = planned.picture
    if opened.size != (picture.width_px, picture.height_px):
        raise _invalid(
            f"The mask has {opened.width}x{opened.height} pixels and the picture, upright, {picture};"
            " send a mask of the picture's size."
        )
    if getattr(opened, "is_animated", False):
        raise _invalid("The mask is animated; send one still frame.")
    if not opened.has_transparency_data:
        raise _invalid("The mask has no transparency; make it transparent where to edit.")


def _feathered(editable: Image.Image, feather_px: int) -> Image.Image:
    """Fade the edit in over `feather_px`, inwards: what the mask keeps is never touched.

    The mean around a pixel of a straight edge is a half; from a half at the edge to one inside makes the ramp.
    """
    if feather_px == 0:
        return editable
    mean = editable.filter(ImageFilter.BoxBlur(feather_px))
    return ImageChops.darker(mean.point([max(0, 2 * value - 255) for value in range(256)]), editable)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, code="invalid_mask", param="mask")
