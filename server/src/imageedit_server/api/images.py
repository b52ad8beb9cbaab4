"""Bytes from strangers to pictures that the engine takes. Blocking: call it in a thread.

The header decides before anything is decoded: format by its first bytes, pixels by the stated size.
"""

from __future__ import annotations

import binascii
import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from PIL import Image, UnidentifiedImageError

from imageedit_server.api import whole_jpeg, whole_png, whole_webp
from imageedit_server.api.colours import WHITE, Colour, direct, flat, srgb
from imageedit_server.api.geometry import Plan, SizeWish, plan
from imageedit_server.api.padding import padded
from imageedit_server.api.slices import slices, without
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size

# Our own check replaces Pillow's, which warns first and has one limit for the whole interpreter.
Image.MAX_IMAGE_PIXELS = None

WHITE_SPACE = b" \t\r\n\v\f"
# Of a result. A larger one takes the processors for seconds, and WebP ends at 16383 pixels to a side.
MAX_OUTPUT_PIXELS = 4096 * 4096
MAX_OUTPUT_SIDE_PX = 16_000

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
    AssertionError,
    struct.error,
    zlib.error,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A picture ready for the engine: raw RGB of the candidate size, and the way to its result."""

    pixels: bytes = field(repr=False)
    plan: Plan


def prepare(
    data: bytes,
    *,
    param: str,
    candidates: Sequence[Size],
    max_pixels: int,
    size: SizeWish = "auto",
    alpha_colour: Colour = WHITE,
) -> Prepared:
    """Decode, turn upright, scale, bring to sRGB, lay what is transparent on a colour, and pad.

    Args:
        data: the file's bytes; name and type that the client gave do not matter.
        param: the request's field that they came from, for the message.
        size: the size of the result that is asked for.

    Raises:
        InvalidInput: not a whole PNG, JPEG or WebP still picture of at most `max_pixels`, or the result is too large.
    """
    with _opened(data, param, max_pixels) as opened:
        planned = plan(_upright_size(opened), candidates, size)
        _check_output(planned.output)
        picture = _plain(opened, planned.in_working.working, alpha_colour)
    pixels = padded(padded(picture, planned.in_working), planned.placement).tobytes()
    return Prepared(pixels=pixels, plan=planned)


def reference(data: bytes, *, param: str, candidate: Size, max_pixels: int, alpha_colour: Colour = WHITE) -> bytes:
    """Prepare a further picture that the model only looks at: raw RGB of the candidate size.

    Raises:
        InvalidInput: as `prepare`.
    """
    ready = prepare(data, param=param, candidates=[candidate], max_pixels=max_pixels, alpha_colour=alpha_colour)
    return ready.pixels


def at_output_size(
    data: bytes, planned: Plan, *, param: str, max_pixels: int, alpha_colour: Colour = WHITE
) -> Image.Image:
    """The picture as the result would be if nothing was edited, of a file that `prepare` has taken.

    With size=original it is the input's pixels, to the bit where those are opaque and in sRGB already.

    Raises:
        InvalidInput: as `prepare`.
    """
    with _opened(data, param, max_pixels, check_whole=False) as opened:
        picture = _plain(opened, planned.in_output.working, alpha_colour)
    return padded(picture, planned.in_output)


def from_base64(text: str, *, param: str) -> bytes:
    """Decode base64, with or without `data:image/png;base64,` before it.

    Raises:
        InvalidInput: it is not base64.
    """
    if text.startswith("data:"):
        _, _, text = text.partition(",")
    try:
        raw = without(text.encode("ascii"), WHITE_SPACE)
        data = b"".join(binascii.a2b_base64(part, strict_mode=True) for part in slices(raw))
    except ValueError as error:
        raise InvalidInput(f"{param} is not base64 ({error}).", code="invalid_base64", param=param) from error
    if not data:
        raise InvalidInput(f"{param} is empty; send a picture as base64.", code="invalid_base64", param=param)
    return data


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


@contextmanager
def _opened(data: bytes, param: str, max_pixels: int, *, check_whole: bool = True) -> Iterator[Image.Image]:
    _check_signature(data, param)
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as opened:
            _check_header(opened, param, max_pixels)
            if check_whole:
                _check_whole(opened, data)
            if opened.format == "PNG":
                # Before anything asks for EXIF, which in a PNG can come last: that loads the pixels, and would report
                # their damage as its own, once.
                opened.load()
            yield opened
    except DAMAGE as damage:
        raise InvalidInput(
            f"The picture is damaged or cut off ({_brief(damage)}); send the whole file.",
            code="invalid_image",
            param=param,
        ) from damage


def _check_whole(opened: Image.Image, data: bytes) -> None:
    """Raise what `DAMAGE` names for a file that is cut off or altered: the decoders fill in what they cannot read."""
    match opened.format:
        case "PNG":
            whole_png.check(data)
        case "WEBP":
            whole_webp.check(data)
        case _:
            whole_jpeg.check(data)


def _upright_size(opened: Image.Image) -> Size:
    width_px, height_px = opened.size
    return Size(height_px, width_px) if _orientation(opened) in SIDES_SWAPPED else Size(width_px, height_px)


def _upright(opened: Image.Image, size: Size) -> Image.Image:
    """Scale before turning: turning fifty million pixels costs memory, turning the working size costs nothing."""
    orientation = _orientation(opened)
    wanted = (size.width_px, size.height_px)
    # JPEG alone can be decoded at a fraction of its size; twice what is needed leaves the rest to the better filter.
    opened.draft(None, (2 * max(wanted), 2 * max(wanted)))
    scaled = direct(opened).resize(
        wanted[::-1] if orientation in SIDES_SWAPPED else wanted, Image.Resampling.LANCZOS, reducing_gap=3.0
    )
    turn = ORIENTATIONS.get(orientation)
    return scaled if turn is None else scaled.transpose(turn)


def _plain(opened: Image.Image, size: Size, alpha_colour: Colour) -> Image.Image:
    """Upright, scaled, opaque and in sRGB. Colours come last: fifty million of them would take seconds."""
    return flat(srgb(_upright(opened, size), opened.info.get("icc_profile")), alpha_colour)


def _check_output(output: Size) -> None:
    if output.area_px > MAX_OUTPUT_PIXELS or max(output.width_px, output.height_px) > MAX_OUTPUT_SIDE_PX:
        raise InvalidInput(
            f"A result of {output} is too large: at most {MAX_OUTPUT_PIXELS} pixels and {MAX_OUTPUT_SIDE_PX} to a side."
            " Ask for size=auto, or scale the picture down.",
            code="unsupported_value",
            param="size",
        )


def _orientation(opened: Image.Image) -> int:
    try:
        value = opened.getexif().get(ORIENTATION_TAG, 1)
    except DAMAGE:
        return 1  # A damaged note about the picture is no damage to the picture.
    return value if isinstance(value, int) else 1


def _brief(error: BaseException) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "its header makes no sense"  # Pillow's own text names an object in memory
    return str(error).split("\n", 1)[0][:120] or type(error).__name__
