"""What clients send, checked field by field: the JSON of `/v1/edit` and the form of `/v1/images/edits`. Blocking.

A field that would change nothing is refused by name:
being ignored in silence is what users of such servers complain of most.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from imageedit_server.api.forms import Part
from imageedit_server.api.images import from_base64
from imageedit_server.errors import ApiError, InvalidInput, NotFound

MAX_PROMPT_CHARACTERS = 4000
MAX_SEED = 2**32 - 1

IMAGE_FIELDS = ("image", "image[]")
# Accepted and of no effect on the picture, by OpenAI's own definition: who asks, for abuse reports.
METADATA_FIELDS = ("user", "safety_identifier")
# field -> the values that say what happens anyway.
FIXED_FIELDS = {"n": ("1",), "size": ("auto",), "response_format": ("b64_json",), "output_format": ("png",)}
SCALAR_FIELDS = ("prompt", "model", "seed", *FIXED_FIELDS, *METADATA_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """One checked request; `param` is the field that the picture came in."""

    picture: bytes = field(repr=False)
    param: str
    prompt: str = field(repr=False)
    seed: int


class _EditBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    image: str
    prompt: str
    seed: int | None = Field(default=None, ge=0, le=MAX_SEED)


def from_json(body: bytes) -> EditRequest:
    """Read the body of `POST /v1/edit`.

    Raises:
        InvalidInput: not JSON, a field is missing, unknown or wrong.
    """
    try:
        parsed = _EditBody.model_validate_json(body)
    except ValidationError as error:
        raise _first_problem(error) from None
    return EditRequest(
        prompt=checked_prompt(parsed.prompt),
        picture=from_base64(parsed.image, param="image"),
        param="image",
        seed=_seed_or_random(parsed.seed),
    )


def from_form(parts: Sequence[Part], *, model_name: str) -> EditRequest:
    """Read the form of `POST /v1/images/edits`.

    Raises:
        InvalidInput: a field is missing, unknown, unsupported or wrong.
        NotFound: another model is asked for.
    """
    pictures = [part for part in parts if part.name in IMAGE_FIELDS]
    values = _scalars([part for part in parts if part.name not in IMAGE_FIELDS])
    if values.get("model", model_name) != model_name:
        raise unknown_model(values["model"], model_name)
    for name, allowed in FIXED_FIELDS.items():
        if values.get(name, allowed[0]) not in allowed:
            raise InvalidInput(
                f"{name}={values[name]!r} is not supported; leave {name} out or send {allowed[0]!r}.",
                code="unsupported_value",
                param=name,
            )
    if "prompt" not in values:
        raise _missing("prompt")
    prompt = checked_prompt(values["prompt"])
    if not pictures:
        raise _missing("image")
    if len(pictures) > 1:
        raise InvalidInput(
            f"{len(pictures)} pictures were sent; send exactly one.", code="too_many_images", param="image"
        )
    return EditRequest(
        prompt=prompt,
        picture=pictures[0].data,
        param="image",
        seed=_seed_or_random(_seed_from_text(values.get("seed"))),
    )


def checked_prompt(prompt: str) -> str:
    """The prompt without white space around it.

    Raises:
        InvalidInput: empty or too long.
    """
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
    return prompt


def unknown_model(asked: str, served: str) -> NotFound:
    """The answer to a model id that is not served here."""
    return NotFound(f"Model {asked[:100]!r} is not served here; {served!r} is.", code="model_not_found", param="model")


def _scalars(parts: Sequence[Part]) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in parts:
        if part.name not in SCALAR_FIELDS:
            raise _unknown(part.name)
        if part.name in values:
            raise InvalidInput(f"{part.name} was sent twice.", code="invalid_parameter", param=part.name)
        try:
            values[part.name] = part.data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(f"{part.name} is not UTF-8 text.", code="invalid_parameter", param=part.name) from None
    return values


def _seed_from_text(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MAX_SEED):
        raise InvalidInput(f"seed is not a whole number from 0 to {MAX_SEED}.", code="invalid_parameter", param="seed")
    return int(text)


def _seed_or_random(seed: int | None) -> int:
    return secrets.randbelow(MAX_SEED + 1) if seed is None else seed


def _missing(name: str) -> ApiError:
    return InvalidInput(f"{name} is missing.", code="missing_parameter", param=name)


def _unknown(name: str) -> ApiError:
    name = name[:100]
    return InvalidInput(f"{name} is not supported by this server; leave it out.", code="unknown_parameter", param=name)


def _first_problem(error: ValidationError) -> ApiError:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = str(problem["loc"][0]) if problem["loc"] else None
    match problem["type"]:
        case "json_invalid":
            return InvalidInput(f"The body is not JSON: {problem['msg']}.", code="invalid_json")
        case "missing" if name is not None:
            return _missing(name)
        case "extra_forbidden" if name is not None:
            return _unknown(name)
        case _ if name is None:
            return InvalidInput("The body must be a JSON object with image and prompt.", code="invalid_json")
        case _:
            return InvalidInput(f"{name}: {problem['msg']}.", code="invalid_parameter", param=name)
