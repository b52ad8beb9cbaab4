"""The rules between the fields of a request, and those that the model and settings make. Pure."""

from __future__ import annotations

from typing import Literal

from imageedit_server.api.fields import EditFields, invalid, unsupported
from imageedit_server.api.geometry import SizeWish
from imageedit_server.api.limits import Limits
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size

MIN_OUTPUT_SIDE_PX = 16
MAX_OUTPUT_SIDE_PX = 4096
MAX_OUTPUT_RATIO = 8


def check_count(count: int, limits: Limits) -> None:
    """Refuse more pictures than an edit may have."""
    if count > limits.max_references:
        most = "exactly one" if limits.max_references == 1 else f"at most {limits.max_references}"
        raise InvalidInput(f"{count} pictures were sent; send {most}.", code="too_many_images", param="image")


# | negative_prompt | true_cfg_scale | model can | verdict                              |
# | --------------- | -------------- | --------- | ------------------------------------ |
# | none            | none, 1        | any       | taken: one run of the model per step |
# | none            | above 1        | any       | refused: needs negative_prompt       |
# | given           | any            | no        | refused                              |
# | given           | none, 1        | yes       | refused: needs true_cfg_scale        |
# | given           | above 1        | yes       | taken: two runs per step             |
def check_guidance(fields: EditFields, limits: Limits) -> None:
    """Refuse guidance that has no effect, or that the model has not."""
    scaled = fields.true_cfg_scale is not None and fields.true_cfg_scale > 1
    if fields.negative_prompt is None and scaled:
        raise invalid("true_cfg_scale", "true_cfg_scale above 1 has no effect without negative_prompt; send both.")
    if fields.negative_prompt is not None and not limits.negative_prompt:
        raise unsupported("negative_prompt", "negative_prompt is not served here (--warm-cfg is off); leave it out.")
    if fields.negative_prompt is not None and not scaled:
        raise invalid(
            "negative_prompt", "negative_prompt has no effect without true_cfg_scale above 1, such as 4; send both."
        )
    if fields.guidance_scale is not None and not limits.guidance:
        raise unsupported("guidance_scale", "This model takes no guidance_scale; leave it out.")


def check_output(fields: EditFields, limits: Limits, *, pictures: int, masked: bool) -> None:
    """Refuse what no result can be, and what has no effect on one."""
    if fields.output_compression is not None and fields.output_format in (None, "png"):
        raise invalid("output_compression", "output_compression has no effect on png; ask for jpeg or webp.")
    if fields.response_format == "url" and not limits.files:
        raise unsupported("response_format", "No files are kept here (--files-dir is not set); use b64_json.")
    if fields.response_format == "url" and fields.stream:
        raise unsupported("response_format", "A stream carries the picture itself; use b64_json, or no stream.")
    if fields.mask_feather is not None and not masked:
        raise invalid("mask_feather", "mask_feather has no effect without a mask; send one, or leave it out.")
    if fields.size == "original" and pictures == 0:
        raise unsupported("size", "Without a picture there is no original size; ask for width and height.")


# | steps, num_inference_steps | quality                         | steps                | quality in the answer |
# | -------------------------- | ------------------------------- | -------------------- | --------------------- |
# | none                       | none, auto, standard, medium    | --steps              | standard              |
# | none                       | high, hd                        | --steps-high         | high                  |
# | one, up to --steps-high    | none, auto                      | as asked             | none                  |
# | one                        | standard, medium, high, hd      | refused: one of both | -                     |
# | one, above --steps-high    | any                             | refused              | -                     |
# | both                       | any                             | refused: one of both | -                     |
def steps_of(fields: EditFields, limits: Limits) -> tuple[int, Literal["standard", "high"] | None]:
    """The steps, and the quality that the answer names."""
    name = "steps" if fields.steps is not None else "num_inference_steps"
    asked = fields.num_inference_steps if fields.steps is None else fields.steps
    if fields.steps is not None and fields.num_inference_steps is not None:
        raise invalid("num_inference_steps", "steps and num_inference_steps are two names of one field; send one.")
    if asked is not None and fields.quality not in (None, "auto"):
        raise invalid(name, f"quality chooses the steps as well; send either quality or {name}.")
    if asked is not None and asked > limits.steps_high:
        raise invalid(name, f"{name} must be from 2 to {limits.steps_high}.")
    if asked is not None:
        return asked, None
    return (limits.steps_high, "high") if fields.quality in ("high", "hd") else (limits.steps, "standard")


def size_of(text: str) -> SizeWish:
    """Read the size of the result."""
    if text == "auto":
        return "auto"
    if text == "original":
        return "original"
    try:
        size = Size.parse(text)
    except ValueError:
        raise invalid("size", "size must be auto, original, or width and height such as 1024x768.") from None
    sides = (size.width_px, size.height_px)
    if min(sides) < MIN_OUTPUT_SIDE_PX or max(sides) > MAX_OUTPUT_SIDE_PX:
        raise invalid("size", f"Each side of size must have {MIN_OUTPUT_SIDE_PX} to {MAX_OUTPUT_SIDE_PX} pixels.")
    if max(sides) > MAX_OUTPUT_RATIO * min(sides):
        raise invalid("size", f"No side of size may be more than {MAX_OUTPUT_RATIO} times the other.")
    return size
