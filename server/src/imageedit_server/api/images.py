"""Bytes from strangers to pictures that the engine takes, and back. Blocking: call it in a thread.

The header decides before anything is decoded: format by its first bytes, pixels by the stated size.
"""

from __future__ import annotations

import base64
import binascii
import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from PIL import Image

from imageedit_server.api.geometry import Placement, place
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.protocol import Size

# Our own check replaces Pillow's, which warns first and has one limit for the whole interpreter.
Image.MAX_IMAGE_PIXELS = None

# Slices of base64 text: no single call into C keeps the interpreter from the event loop for more than a millisecond.
BASE64_SLICE = 1024 * 1024
# Level 3 takes a third of the time of zlib's default 6 and gives files 5 % larger: the client waits for it.
PNG_COMPRESS_LEVEL = 3
WHITE = (255, 255, 255, 255)

# What the orientation tag of EXIF asks for.
ORIENTATION_TAG = 0x0112
ORIENTATIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDES_SWAPPED = (5, 6, 7, 8)

DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    struct.error,
    zlib.error,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A picture ready for the engine: raw RGB of the candidate size, and where the picture lies in it."""

    pixels: bytes = field(repr=False)
    placement: Placement


def prepare(data: bytes, *, param: str, candidates: Sequence[Size], max_pixels: int) -> Prepared:
    """Decode, turn upright, flatten on white, scale and pad.

    Args:
        data: the file's bytes; name and type that the client gave do not matter.
        param: the request's field that they came from, for the message.

    Raises:
        InvalidInput: not a whole PNG, JPEG or WebP still picture of at most `max_pixels`.
    """
    _check_signature(data, param)
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as opened:
            _check_header(opened, param, max_pixels)
            upright, placement = _upright(opened, candidates)
    except DAMAGE as damage:
        raise InvalidInput(
            f"The picture is damaged or cut off ({_brief(damage)}); send the whole file.",
            code="invalid_image",
            param=param,
        ) from damage
    return Prepared(pixels=_padded(_flat(upright), placement).tobytes(), placement=placement)


def finished_png(pixels: bytes, placement: Placement) -> bytes:
    """Cut the padding off the engine's raw RGB and encode it as PNG."""
    candidate = placement.candidate
    picture = Image.frombytes("RGB", (candidate.width_px, candidate.height_px), pixels)
    file = io.BytesIO()
    picture.crop(placement.box).save(file, "PNG", compress_level=PNG_COMPRESS_LEVEL)
    return file.getvalue()


def from_base64(text: str, *, param: str) -> bytes:
    """Decode base64, with or without `data:image/png;base64,` before it.

    Raises:
        InvalidInput: it is not base64.
    """
    if text.startswith("data:"):
        _, _, text = text.partition(",")
    try:
        raw = b"".join(text.encode("ascii").split())
        slices = (raw[start : start + BASE64_SLICE] for start in range(0, len(raw), BASE64_SLICE))
        data = b"".join(binascii.a2b_base64(part, strict_mode=True) for part in slices)
    except ValueError as error:
        raise InvalidInput(f"{param} is not base64 ({error}).", code="invalid_base64", param=param) from error
    if not data:
        raise InvalidInput(f"{param} is empty; send a picture as base64.", code="invalid_base64", param=param)
    return data


def to_base64(data: bytes) -> str:
    """Plain base64, as answers carry it."""
    return base64.b64encode(data).decode("ascii")


def _check_signature(data: bytes, param: str) -> None:
    png = data.startswith(b"\x89PNG\r\n\x1a\n")
    jpeg = data.startswith(b"\xff\xd8\xff")
    webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    if not (png or jpeg or webp):
        raise InvalidInput(
            f"{param} is not a PNG, JPEG or WebP picture; convert it to one of these.",
            code="invalid_image",
            param=param,
        )


def _check_header(opened: Image.Image, param: str, max_pixels: int) -> None:
    width_px, height_px = opened.size
    if width_px * height_px > max_pixels:
        raise InvalidInput(
            f"The picture has {width_px}x{height_px} = {width_px * height_px} pixels;"
            f" at most {max_pixels} are taken. Scale it down.",
            code="image_too_large",
            param=param,
        )
    # Phones write JPEGs with a second picture inside (MPO, for depth or brightness): the first one is the photograph.
    if opened.format != "MPO" and getattr(opened, "is_animated", False):
        raise InvalidInput("The picture is animated; send one still frame.", code="invalid_image", param=param)


def _upright(opened: Image.Image, candidates: Sequence[Size]) -> tuple[Image.Image, Placement]:
    """Scale before turning: turning fifty million pixels costs memory, turning the working size costs nothing."""
    orientation = _orientation(opened)
    swapped = orientation in SIDES_SWAPPED
    width_px, height_px = reversed(opened.size) if swapped else opened.size
    placement = place(Size(width_px, height_px), candidates)
    working = (placement.working.width_px, placement.working.height_px)
    # JPEG alone can be decoded at a fraction of its size; twice what is needed leaves the rest to the better filter.
    opened.draft(None, (2 * max(working), 2 * max(working)))
    scaled = _direct_colour(opened).resize(
        (working[1], working[0]) if swapped else working, Image.Resampling.LANCZOS, reducing_gap=3.0
    )
    turn = ORIENTATIONS.get(orientation)
    return (scaled if turn is None else scaled.transpose(turn)), placement


def _orientation(opened: Image.Image) -> int:
    try:
        value = opened.getexif().get(ORIENTATION_TAG, 1)
    except DAMAGE:
        return 1  # A damaged note about the picture is no damage to the picture.
    return value if isinstance(value, int) else 1


def _direct_colour(opened: Image.Image) -> Image.Image:
    """RGB or RGBA, whatever the file has: palettes, grey, 16 bits, CMYK."""
    if opened.has_transparency_data:
        return opened.convert("RGBA")
    if opened.mode.startswith("I"):
        # 16-bit grey: Pillow's own conversion clips at 255 instead of scaling.
        return opened.convert("I").point(lambda value: value * (1 / 257)).convert("L").convert("RGB")
    # Not by `convert` in any case: it copies, and the picture may have fifty million pixels.
    return opened if opened.mode == "RGB" else opened.convert("RGB")


def _flat(picture: Image.Image) -> Image.Image:
    if picture.mode != "RGBA":
        return picture
    return Image.alpha_composite(Image.new("RGBA", picture.size, WHITE), picture).convert("RGB")


def _padded(picture: Image.Image, placement: Placement) -> Image.Image:
    """Repeat the edge pixels outwards: a black or grey border would be content to the model."""
    left, top, right, bottom = placement.box
    width, height = placement.candidate.width_px, placement.candidate.height_px
    if (width, height) == picture.size:
        return picture
    padded = Image.new("RGB", (width, height))
    padded.paste(picture, (left, top))
    for edge, strip in (
        ((left, top, left + 1, bottom), (0, top, left, bottom)),
        ((right - 1, top, right, bottom), (right, top, width, bottom)),
    ):
        _stretch(padded, edge, strip)
    for edge, strip in (
        ((0, top, width, top + 1), (0, 0, width, top)),
        ((0, bottom - 1, width, bottom), (0, bottom, width, height)),
    ):
        _stretch(padded, edge, strip)
    return padded


def _stretch(picture: Image.Image, edge: tuple[int, int, int, int], strip: tuple[int, int, int, int]) -> None:
    size = (strip[2] - strip[0], strip[3] - strip[1])
    if size[0] > 0 and size[1] > 0:
        picture.paste(picture.crop(edge).resize(size, Image.Resampling.NEAREST), strip[:2])


def _brief(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:120] or type(error).__name__
