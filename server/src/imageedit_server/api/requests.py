"""From what clients send to a checked request: the JSON of `/v1/edit` and the form of `/v1/images/edits`. Blocking.

`fields` checks each field for itself, `field_rules` the rules between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from imageedit_server.api.fields import (
    FORM_ONLY_FIELDS,
    UPLOAD,
    from_texts,
    from_values,
    invalid,
    missing,
    unknown,
)
from imageedit_server.api.forms import Part
from imageedit_server.api.images import from_base64
from imageedit_server.api.json_bodies import object_of
from imageedit_server.api.limits import Limits
from imageedit_server.api.wishes import EditRequest, checked
from imageedit_server.errors import InvalidInput

IMAGE_FIELDS = ("image", "image[]")

Reader = Callable[[bytes, Limits], EditRequest]


def from_json(body: bytes, limits: Limits) -> EditRequest:
    """Read the body of `POST /v1/edit`.

    Raises:
        InvalidInput: not JSON, or a field is missing, unknown or wrong.
        NotFound: another model is asked for.
    """
    _check_edits(limits)
    values = object_of(body)
    for name in FORM_ONLY_FIELDS:
        if name in values:
            raise unknown(name, f"{name} is a field of POST /v1/images/edits; leave it out here.")
    texts = _image_texts(values)
    mask = values.pop("mask", None)
    if not isinstance(mask, str | None):
        raise invalid("mask", "mask must be base64 of a PNG.")
    return checked(
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
    _check_edits(limits)
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
    return checked(fields, limits, pictures=pictures, mask=masks[0] if masks else None)


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
    values = object_of(body)
    if "image" in values or "mask" in values:
        name = "image" if "image" in values else "mask"
        raise unknown(name, f"Send pictures to POST /v1/images/edits, and leave {name} out here.")
    return checked(from_values(values), limits, pictures=(), mask=None)


def _check_edits(limits: Limits) -> None:
    if not limits.edit:
        raise InvalidInput(
            "This model makes pictures from text and edits none; send the prompt to POST /v1/images/generations.",
            code="edit_unsupported",
        )


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
