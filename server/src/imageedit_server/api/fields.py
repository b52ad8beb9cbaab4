"""The fields of an edit, one model for form and JSON, and what is said of those that are refused by name.

A field that would change nothing is refused: being ignored in silence is what users of such servers complain of most.
`docs/server-api.md` and `/openapi.json` are held to this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from imageedit_server.errors import ApiError, InvalidInput

MAX_PROMPT_CHARACTERS = 4000
MAX_SEED = 2**32 - 1
MAX_N = 4
LOWEST_STEPS = 2
MAX_CFG = 20.0
MAX_FEATHER_PX = 256
MAX_IDENTIFIER_CHARACTERS = 512

UPLOAD = "Pictures are not fetched by address; send the file itself."
# Known from other services, and without a meaning here: the message says what to do instead.
REFUSED_FIELDS = {
    "input_fidelity": "The input is always given to the model whole, at the working size; leave input_fidelity out.",
    "moderation": "No moderation is done here; leave moderation out.",
    "style": "There are no styles here; say it in the prompt and leave style out.",
    "strength": "The model has no strength; say in the prompt how much to change and leave strength out.",
    "width": "Ask for a size with size=<width>x<height>, and leave width out.",
    "height": "Ask for a size with size=<width>x<height>, and leave height out.",
    "num_images_per_prompt": "Ask for several pictures with n, and leave num_images_per_prompt out.",
    "mask_image": "Send the mask in the field mask, and leave mask_image out.",
    "markup": "Markup is not read; say in the prompt what to change and leave markup out.",
    "url": UPLOAD,
    "url[]": UPLOAD,
    "image_url": UPLOAD,
    "images": "Send the pictures in the field image, and leave images out.",
    "file_id": "No files are kept here; send the picture itself and leave file_id out.",
}


class EditFields(BaseModel):
    """All fields but the pictures. Not given is None: the default depends on the settings."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: str = Field(description="what to change in the picture: 1 to 4000 characters")
    model: str | None = Field(default=None, description="the served model; another one is a 404")
    n: int | None = Field(default=None, ge=1, le=MAX_N, description="pictures to make, one after the other; 1")
    size: str | None = Field(
        default=None, description="auto, original, or width and height such as 1024x768; auto", max_length=20
    )
    quality: Literal["auto", "standard", "medium", "high", "hd"] | None = Field(
        default=None, description="steps by name: auto, standard and medium are --steps, high and hd --steps-high; auto"
    )
    steps: int | None = Field(default=None, ge=LOWEST_STEPS, description="denoising steps, from 2 to --steps-high")
    num_inference_steps: int | None = Field(default=None, ge=LOWEST_STEPS, description="another name of steps")
    seed: int | None = Field(default=None, ge=0, le=MAX_SEED, description="start of the noise; drawn if not given")
    negative_prompt: str | None = Field(
        default=None,
        max_length=MAX_PROMPT_CHARACTERS,
        description="what the picture should not show; needs true_cfg_scale above 1, and takes twice the time",
    )
    true_cfg_scale: float | None = Field(
        default=None,
        ge=1,
        le=MAX_CFG,
        allow_inf_nan=False,
        description="weight of the prompt against negative_prompt; needs it, unless it is 1",
    )
    guidance_scale: float | None = Field(
        default=None,
        ge=0,
        le=MAX_CFG,
        allow_inf_nan=False,
        description="only for models that were distilled to take it",
    )
    mask_feather: int | None = Field(
        default=None,
        ge=0,
        le=MAX_FEATHER_PX,
        description="pixels of the result over which the edit fades in, inside the mask; needs mask; 0",
    )
    output_format: Literal["png", "jpeg", "webp"] | None = Field(default=None, description="kind of file; png")
    output_compression: int | None = Field(
        default=None, ge=0, le=100, description="quality of jpeg and webp; refused for png, which loses nothing; 100"
    )
    background: Literal["auto", "opaque"] | None = Field(
        default=None, description="results are opaque: transparent is refused"
    )
    response_format: Literal["b64_json", "url"] | None = Field(
        default=None, description="picture in the answer, or the address of a file that expires; b64_json"
    )
    stream: bool | None = Field(default=None, description="true: server-sent events; false")
    partial_images: Literal[0] | None = Field(
        default=None, description="0: each partial picture would cost a decoding on the card"
    )
    user: str | None = Field(
        default=None, max_length=MAX_IDENTIFIER_CHARACTERS, description="who asks; goes to the log line of the edit"
    )
    safety_identifier: str | None = Field(
        default=None, max_length=MAX_IDENTIFIER_CHARACTERS, description="who asks; goes to the log line of the edit"
    )
    request_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="name of this edit: the same name sent again attaches to it",
    )


# How `POST /v1/edit` answers is fixed.
FORM_ONLY_FIELDS = ("n", "response_format", "stream", "partial_images")
WHOLE_FIELDS = ("n", "steps", "num_inference_steps", "seed", "mask_feather", "output_compression", "partial_images")
NUMBER_FIELDS = ("true_cfg_scale", "guidance_scale")
FLAG_FIELDS = {"true": True, "false": False}


def from_values(values: Mapping[str, object]) -> EditFields:
    """Check typed values.

    Raises:
        InvalidInput: a field is missing, unknown, refused, or its value is wrong.
    """
    for name, value in values.items():
        if name in REFUSED_FIELDS:
            raise unknown(name, REFUSED_FIELDS[name])
        if name not in EditFields.model_fields:
            raise unknown(name)
        # JSON can spell halves of characters, which no tokenizer and no log takes.
        if isinstance(value, str) and not _is_text(value):
            raise invalid(name, f"{name} is not Unicode text.")
    try:
        return EditFields.model_validate(dict(values))
    except ValidationError as error:
        raise first_problem(error) from None


def from_texts(texts: Mapping[str, str]) -> EditFields:
    """Check the texts of a form.

    Raises:
        InvalidInput: as `from_values`.
    """
    return from_values({name: _typed(name, text) for name, text in texts.items()})


def missing(name: str) -> ApiError:
    """The answer to a field that must be there."""
    return InvalidInput(f"{name} is missing.", code="missing_parameter", param=name)


def unknown(name: str, instead: str | None = None) -> ApiError:
    """The answer to a field that has no meaning here."""
    name = name[:100].encode("utf-8", "replace").decode()
    message = instead or f"{name} is not supported by this server; leave it out."
    return InvalidInput(message, code="unknown_parameter", param=name)


def unsupported(name: str, message: str) -> ApiError:
    """The answer to a value that others may offer, and this server does not."""
    return InvalidInput(message, code="unsupported_value", param=name)


def invalid(name: str, message: str) -> ApiError:
    """The answer to a value that makes no sense."""
    return InvalidInput(message, code="invalid_parameter", param=name)


def first_problem(error: ValidationError) -> ApiError:
    """The first of pydantic's complaints, without the value: it may be a prompt."""
    problem = error.errors(include_url=False, include_input=False)[0]
    name = str(problem["loc"][0]) if problem["loc"] else "body"
    expected: Mapping[str, Any] = problem.get("ctx", {})
    match problem["type"]:
        case "missing":
            return missing(name)
        case "literal_error":
            return unsupported(name, f"{name} must be {expected['expected']}{_why(name)}.")
        case _:
            return invalid(name, f"{name}: {problem['msg']}.")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _why(name: str) -> str:
    reasons = {
        "background": ": results have no transparent parts",
        "partial_images": ": each partial picture would cost a decoding on the card",
        "quality": "; for fewer steps send steps",
    }
    return reasons.get(name, "")


def _typed(name: str, text: str) -> object:
    """A form has only texts: read a number or a truth where one is wanted, and let the model complain otherwise."""
    if name in WHOLE_FIELDS:
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 10 else text
    if name in NUMBER_FIELDS:
        try:
            return float(text) if len(text) <= 30 else text
        except ValueError:
            return text
    return FLAG_FIELDS.get(text, text) if name == "stream" else text
