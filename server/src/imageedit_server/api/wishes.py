"""What is asked for, checked: from single fields to one value that decides the edit. Pure, but for a drawn seed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from typing import Literal

from imageedit_server.api.field_rules import check_count, check_guidance, check_output, size_of, steps_of
from imageedit_server.api.fields import MAX_SEED, EditFields
from imageedit_server.api.geometry import SizeWish
from imageedit_server.api.limits import Limits
from imageedit_server.api.prompts import check_tokens, checked_prompt, without_control_tokens
from imageedit_server.errors import InvalidInput, NotFound

DEFAULT_COMPRESSION = 100
# Of a wish: what names the request and its sender.
NAMES = ("request_id", "asked_by")

Format = Literal["png", "jpeg", "webp"]


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
class Digests:
    """Of one request: the same for the same request, whatever its name and whoever asks.

    `pictures` is that of the pictures alone, as they were sent.
    """

    request: str
    pictures: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """One checked request: the picture to edit, further pictures to look at, the mask, and the rest.

    Without pictures one is made from text alone.
    """

    pictures: tuple[bytes, ...] = field(repr=False)
    mask: bytes | None = field(repr=False)
    wish: Wish

    def digests(self) -> Digests:
        """What tells this request from others. Blocking: it reads the files."""
        wish = self.wish if self.wish.seed_given else replace(self.wish, seed=0)
        values = [getattr(wish, one.name) for one in dataclass_fields(wish) if one.name not in NAMES]
        files = [None if file is None else hashlib.sha256(file).hexdigest() for file in (self.mask, *self.pictures)]
        return Digests(
            request=hashlib.sha256(repr((values, files)).encode()).hexdigest(),
            pictures=hashlib.sha256(repr(files[1:]).encode()).hexdigest(),
        )


def unknown_model(asked: str, served: str) -> NotFound:
    """The answer to a model id that is not served here."""
    return NotFound(f"Model {asked[:100]!r} is not served here; {served!r} is.", code="model_not_found", param="model")


def checked(fields: EditFields, limits: Limits, *, pictures: Sequence[bytes], mask: bytes | None) -> EditRequest:
    """Check what the fields say together, and fill in what they leave open.

    Raises:
        InvalidInput: they contradict each other, or this server does not take them.
        NotFound: another model is asked for.
    """
    if fields.model is not None and fields.model != limits.model_name:
        raise unknown_model(fields.model, limits.model_name)
    check_count(len(pictures), limits)
    check_guidance(fields, limits)
    check_output(fields, limits, pictures=len(pictures), masked=mask is not None)
    if limits.mask_required and mask is None:
        raise InvalidInput(
            "This model repaints a part of the picture; send a mask that says which.",
            code="missing_parameter",
            param="mask",
        )
    prompt, negative_prompt = _checked_texts(fields, limits)
    steps, quality = steps_of(fields, limits)
    return EditRequest(
        pictures=tuple(pictures),
        mask=mask,
        wish=Wish(
            prompt=prompt,
            negative_prompt=negative_prompt,
            true_cfg_scale=fields.true_cfg_scale or 1.0,
            guidance_scale=fields.guidance_scale,
            seed=secrets.randbelow(MAX_SEED + 1) if fields.seed is None else fields.seed,
            seed_given=fields.seed is not None,
            steps=steps,
            steps_given=quality is None or fields.quality not in (None, "auto"),
            quality=quality,
            n=fields.n or 1,
            size="auto" if fields.size is None else size_of(fields.size),
            format=fields.output_format or "png",
            compression=DEFAULT_COMPRESSION if fields.output_compression is None else fields.output_compression,
            as_url=fields.response_format == "url",
            stream=bool(fields.stream),
            mask_feather_px=fields.mask_feather or 0,
            request_id=fields.request_id,
            asked_by=fields.safety_identifier or fields.user,
        ),
    )


def _checked_texts(fields: EditFields, limits: Limits) -> tuple[str, str | None]:
    prompt, negative = checked_prompt(fields.prompt), fields.negative_prompt
    if negative is not None:
        without_control_tokens(negative, "negative_prompt")
    if limits.count_tokens is not None:
        for name, text in (("prompt", prompt), ("negative_prompt", negative or "")):
            check_tokens(text, name, limit=limits.max_prompt_tokens, count=limits.count_tokens)
    return prompt, negative
