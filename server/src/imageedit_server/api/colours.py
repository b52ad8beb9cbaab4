"""Colours of any kind of file to opaque sRGB, which is what the model knows and what results are. Blocking."""

from __future__ import annotations

import functools
import io

from PIL import Image, ImageChops, ImageCms, PngImagePlugin

Colour = tuple[int, int, int]

WHITE: Colour = (255, 255, 255)
# Of a printer two megabytes are common, of a screen a few hundred bytes. What is larger is ignored.
MAX_PROFILE_BYTES = 4 * 1024 * 1024
# Pillow takes a PNG for damaged whose profile or note unfolds to more than one megabyte.
PngImagePlugin.MAX_TEXT_CHUNK = MAX_PROFILE_BYTES
SPACES = {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK"}
# A profile that is sRGB by another name would move values by one in the rounding.
SAME_COLOUR = 2
PROFILE_ERRORS = (ImageCms.PyCMSError, OSError, ValueError, TypeError)


def direct(opened: Image.Image) -> Image.Image:
    """Grey, RGB or CMYK, the first two with or without alpha, whatever the file has: palettes, 1 bit, 16 bits.

    Not RGB in any case: a picture may have fifty million pixels here, and few when it has been scaled.
    """
    if opened.mode.startswith("I"):
        return _from_16_bit_grey(opened)
    if opened.mode in ("RGBA", "LA"):
        return opened
    if opened.has_transparency_data:
        return opened.convert("RGBA")
    if opened.mode == "1":
        return opened.convert("L")
    return opened if opened.mode in SPACES else opened.convert("RGB")


def srgb(picture: Image.Image, profile: bytes | None) -> Image.Image:
    """RGB or RGBA of a `direct` picture; a profile that is broken or of another kind of colours is ignored."""
    alpha = picture.getchannel("A") if picture.mode in ("RGBA", "LA") else None
    colours = picture if alpha is None else picture.convert(picture.mode[:-1])
    made = _converted(colours, profile)
    if made is None and picture.mode == "RGBA":
        return picture
    made = made or colours.convert("RGB")
    if alpha is not None:
        made.putalpha(alpha)
    return made


def flat(picture: Image.Image, on: Colour) -> Image.Image:
    """Opaque: what is transparent shows `on`."""
    if picture.mode != "RGBA":
        return picture
    return Image.alpha_composite(Image.new("RGBA", picture.size, (*on, 255)), picture).convert("RGB")


def _converted(picture: Image.Image, profile: bytes | None) -> Image.Image | None:
    """The picture in sRGB by its profile; None when it has none, or is in sRGB already."""
    if not profile or len(profile) > MAX_PROFILE_BYTES:
        return None
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if source.profile.xcolor_space.strip() != SPACES[picture.mode]:
            return None
        # White stays white and black stays black, as in most programs that show pictures.
        intent, black = ImageCms.Intent.RELATIVE_COLORIMETRIC, ImageCms.Flags.BLACKPOINTCOMPENSATION
        target = ImageCms.createProfile("sRGB")
        transform = ImageCms.buildTransform(source, target, picture.mode, "RGB", intent, black)
        probe = _probe(picture.mode)
        if probe is not None and _close(transform.apply(probe), probe.convert("RGB")):
            return None
        return transform.apply(picture)
    except PROFILE_ERRORS:
        return None


@functools.cache
def _probe(mode: str) -> Image.Image | None:
    """A picture of colours from all over the space."""
    levels = range(0, 256, 15)
    if mode == "L":
        return Image.frombytes("L", (len(levels), 1), bytes(levels))
    if mode == "RGB":
        colours = bytes(value for red in levels for green in levels for blue in levels for value in (red, green, blue))
        return Image.frombytes("RGB", (len(levels) ** 2, len(levels)), colours)
    return None


def _close(one: Image.Image, other: Image.Image) -> bool:
    extremes = ImageChops.difference(one, other).convert("RGB").getextrema()
    return all(isinstance(band, tuple) and band[1] <= SAME_COLOUR for band in extremes)


def _from_16_bit_grey(opened: Image.Image) -> Image.Image:
    """By hand: Pillow's own conversion clips at 255 instead of scaling, and loses which grey is transparent."""
    raw = opened.convert("I;16").tobytes()
    high = Image.frombytes("L", opened.size, raw[1::2])
    transparent = opened.info.get("transparency")
    if not isinstance(transparent, int):
        return high
    low = Image.frombytes("L", opened.size, raw[0::2])
    is_low, is_high = transparent & 255, transparent >> 8
    hidden = ImageChops.darker(
        low.point([255 * (value == is_low) for value in range(256)]),
        high.point([255 * (value == is_high) for value in range(256)]),
    )
    return Image.merge("LA", (high, ImageChops.invert(hidden)))
