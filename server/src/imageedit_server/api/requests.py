"""From what clients send to a checked request: the JSON of `/v1/edit` and the form of `/v1/images/edits`. Blocking.

`fields` checks each field for itself; here stand the rules between fields, and those that the model and settings make.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from imageedit_server.api.fields import (
    FORM_ONLY_FIELDS,
    MAX_PROMPT_CHARACTERS,
    MAX_SEED,
    UPLOAD,
    EditFields,
    from_texts,
    from_values,
    invalid,
    missing,
    unknown,
    unsupported,
)
from imageedit_server.api.forms import Part
from imageedit_server.api.geometry import SizeWish
from imageedit_server.api.images import from_base64
from imageedit_server.errors import InvalidInput, NotFound
from imageedit_server.worker.protocol import Size

CONTROL_TOKEN = re.compile(r"<\|[a-z0-9_]{1,40}\|>")

IMAGE_FIELDS = ("image", "image[]")
MIN_OUTPUT_SIDE_PX = 16
MAX_OUTPUT_SIDE_PX = 4096
MAX_OUTPUT_RATIO = 8
DEFAULT_COMPRESSION = 100

Format = Literal["png", "jpeg", "webp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this server takes: from its settings, and from the model that is loaded.

    `max_references` counts all pictures of an edit. `files`: results can be kept as files.
    """

    model_name: str
    steps: int
    steps_high: int
    max_references: int = 1
    guidance: bool = False
    negative_prompt: bool = False
    generate: bool = False
    files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for, without the pictures: small enough to be kept while the edit waits.

    `quality` is None where the client chose the steps itself. `compression` is the quality of a lossy file, 0 to 100.
    """

    prompt: str = field(repr=False)
    negative_prompt: str | None = field(repr=False)
    true_cfg_scale: float
    guidance_scale: float | None
    seed: int
    seed_given: bool
    steps: int
    steps_given: bool
    quality: Literal["standard", "high"] | None
    n: int
    size: SizeWish
    format: Format
    compression: int
    as_url: bool
    stream: bool
    mask_feather_px: int
    request_id: str | None
    asked_by: str | None

    def seed_of(self, number: int) -> int:
        """Seed of the picture with this number, from 0."""
        return (self.seed + number) % (MAX_SEED + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """One checked request: the picture to edit, further pictures to look at, the mask, and the rest.

    Without pictures one is made from text alone.
    """

    pictures: tuple[bytes, ...] = field(repr=False)
    mask: bytes | None = field(repr=False)
    wish: Wish


Reader = Callable[[bytes, Limits], EditRequest]


def from_json(body: bytes, limits: Limits) -> EditRequest:
    """Read the body of `POST /v1/edit`.

    Raises:
        InvalidInput: not JSON, or a field is missing, unknown or wrong.
        NotFound: another model is asked for.
    """
    values = _object(body)
    for name in FORM_ONLY_FIELDS:
        if name in values:
            raise unknown(name, f"{name} is a field of POST /v1/images/edits; leave it out here.")
    texts = _image_texts(values)
    mask = values.pop("mask", None)
    if not isinstance(mask, str | None):
        raise invalid("mask", "mask must be base64 of a PNG.")
    return _checked(
        from_values(values),
        limits,
        pictures=[from_base64(text, param="image") for text in texts],
        mask=None if mask is None else from_base64(mask, param="mask"),
    )


def from_form(parts: Sequence[Part], limits: Limits) -> EditRequest:
    """Read the form of `POST /v1/images/edits`.

    Raises:
        InvalidInput: a field is missing, unknown, unsupported or wrong.
        NotFound: another model is asked for.
    """
    pictures = [part.data for part in parts if part.name in IMAGE_FIELDS]
    masks = [part.data for part in parts if part.name == "mask"]
    if len(masks) > 1:
        raise invalid("mask", "mask was sent twice.")
    texts = _texts([part for part in parts if part.name not in (*IMAGE_FIELDS, "mask")])
    for picture in pictures:
        if picture.startswith((b"http://", b"https://")):
            raise InvalidInput(UPLOAD, code="image_address", param="image")
    fields = from_texts(texts)
    if not pictures:
        raise missing("image")
    return _checked(fields, limits, pictures=pictures, mask=masks[0] if masks else None)


def from_generation(body: bytes, limits: Limits) -> EditRequest:
    """Read the body of `POST /v1/images/generations`: a picture from text alone.

    Raises:
        InvalidInput: this model cannot, the body is not JSON, or a field is missing, unknown or wrong.
        NotFound: another model is asked for.
    """
    if not limits.generate:
        raise InvalidInput(
            "This model edits pictures and makes none from text; send a picture to POST /v1/images/edits.",
            code="generation_unsupported",
        )
    values = _object(body)
    if "image" in values or "mask" in values:
        name = "image" if "image" in values else "mask"
        raise unknown(name, f"Send pictures to POST /v1/images/edits, and leave {name} out here.")
    return _checked(from_values(values), limits, pictures=(), mask=None)


def unknown_model(asked: str, served: str) -> NotFound:
    """The answer to a model id that is not served here."""
    return NotFound(f"Model {asked[:100]!r} is not served here; {served!r} is.", code="model_not_found", param="model")


def _checked(fields: EditFields, limits: Limits, *, pictures: Sequence[bytes], mask: bytes | None) -> EditRequest:
    if fields.model is not None and fields.model != limits.model_name:
        raise unknown_model(fields.model, limits.model_name)
    _check_count(len(pictures), limits)
    _check_guidance(fields, limits)
    _check_output(fields, limits)
    if fields.mask_feather is not None and mask is None:
        raise invalid("mask_feather", "mask_feather has no effect without a mask; send one, or leave it out.")
    if fields.size == "original" and not pictures:
        raise unsupported("size", "Without a picture there is no original size; ask for width and height.")
    steps, quality = _steps(fields, limits)
    return EditRequest(
        pictures=tuple(pictures),
        mask=mask,
        wish=Wish(
            prompt=_checked_prompt(fields.prompt),
            negative_prompt=None
            if fields.negative_prompt is None
            else without_control_tokens(fields.negative_prompt, "negative_prompt"),
            true_cfg_scale=fields.true_cfg_scale or 1.0,
            guidance_scale=fields.guidance_scale,
            seed=secrets.randbelow(MAX_SEED + 1) if fields.seed is None else fields.seed,
            seed_given=fields.seed is not None,
            steps=steps,
            steps_given=quality is None or fields.quality not in (None, "auto"),
            quality=quality,
            n=fields.n or 1,
            size="auto" if fields.size is None else _size(fields.size),
            format=fields.output_format or "png",
            compression=DEFAULT_COMPRESSION if fields.output_compression is None else fields.output_compression,
            as_url=fields.response_format == "url",
            stream=bool(fields.stream),
            mask_feather_px=fields.mask_feather or 0,
            request_id=fields.request_id,
            asked_by=fields.safety_identifier or fields.user,
        ),
    )


def _check_count(count: int, limits: Limits) -> None:
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
def _check_guidance(fields: EditFields, limits: Limits) -> None:
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


def _check_output(fields: EditFields, limits: Limits) -> None:
    if fields.output_compression is not None and fields.output_format in (None, "png"):
        raise invalid("output_compression", "output_compression has no effect on png; ask for jpeg or webp.")
    if fields.response_format == "url" and not limits.files:
        raise unsupported("response_format", "No files are kept here (--files-dir is not set); use b64_json.")
    if fields.response_format == "url" and fields.stream:
        raise unsupported("response_format", "A stream carries the picture itself; use b64_json, or no stream.")


# | steps, num_inference_steps | quality                         | steps                | quality in the answer |
# | -------------------------- | ------------------------------- | -------------------- | --------------------- |
# | none                       | none, auto, standard, medium    | --steps              | standard              |
# | none                       | high, hd                        | --steps-high         | high                  |
# | one, up to --steps-high    | none, auto                      | as asked             | none                  |
# | one                        | standard, medium, high, hd      | refused: one of both | -                     |
# | one, above --steps-high    | any                             | refused              | -                     |
# | both                       | any                             | refused: one of both | -                     |
def _steps(fields: EditFields, limits: Limits) -> tuple[int, Literal["standard", "high"] | None]:
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


def _size(text: str) -> SizeWish:
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


def _checked_prompt(prompt: str) -> str:
    """The prompt without white space around it."""
    prompt = prompt.strip()
    if not prompt:
        raise InvalidInput(
            "The prompt is empty; say what to change in the picture.", code="empty_prompt", param="prompt"
        )
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise InvalidInput(
            f"The prompt has {len(prompt)} characters; at most {MAX_PROMPT_CHARACTERS} are taken.",
            code="prompt_too_long",
            param="prompt",
        )
    return without_control_tokens(prompt, "prompt")


def without_control_tokens(text: str, param: str) -> str:
    """The text, unless it holds a token that steers the model: `<|image_pad|>` would stand for a picture."""
    if (found := CONTROL_TOKEN.search(text)) is not None:
        raise InvalidInput(
            f"{param} holds {found.group()}, a control token of the model; leave it out.",
            code="control_token",
            param=param,
        )
    return text


def _object(body: bytes) -> dict[str, object]:
    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not JSON")

    try:
        parsed = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The body is not JSON: {error}.", code="invalid_json") from None
    if not isinstance(parsed, dict):
        raise InvalidInput("The body must be a JSON object with image and prompt.", code="invalid_json")
    return parsed


def _image_texts(values: dict[str, object]) -> list[str]:
    """Take the pictures out: one text, or a list of them."""
    if "image" not in values:
        raise missing("image")
    image = values.pop("image")
    sent = image if isinstance(image, list) else [image]
    texts = [text for text in sent if isinstance(text, str)]
    if not texts or len(texts) < len(sent):
        raise invalid("image", "image must be base64 of a picture, or a list of such texts.")
    if any(text.startswith(("http://", "https://")) for text in texts):
        raise InvalidInput(UPLOAD, code="image_address", param="image")
    return texts


def _texts(parts: Sequence[Part]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for part in parts:
        if part.name in texts:
            raise invalid(part.name, f"{part.name[:100]} was sent twice.")
        try:
            texts[part.name] = part.data.decode("utf-8")
        except UnicodeDecodeError:
            raise invalid(part.name, f"{part.name[:100]} is not UTF-8 text.") from None
    return texts
