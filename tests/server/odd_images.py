"""Bad and odd pictures, made by this script, each with the answer that it must get.

`python odd_images.py FOLDER` writes them as files, to try them on any server.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from server.profiles import ADOBE_RGB, DISPLAY_P3, SRGB, cmyk_profile, grey_profile, rgb_profile

Colour = tuple[int, int, int]

SIDE_PX = 24
RED: Colour = (200, 40, 40)
BLUE: Colour = (40, 40, 200)
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
MAX_PIXELS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A file and its answer: the colour in the middle of the picture as it is read, or the code of the error.

    None: it is taken, and what it shows is the decoder's guess.
    """

    name: str
    data: bytes
    answer: Colour | str | None


def odd_images() -> list[Odd]:
    """All of them."""
    groups = (
        *(_plain, _trailing, _depths, _palettes, _transparent, _turned, _profiled, _animated, _other_formats),
        *(_damaged, _cut_and_closed, _lying, _large, _slow),
    )
    return [Odd(name=name, data=data, answer=answer) for group in groups for name, data, answer in group()]


def chunk(kind: bytes, body: bytes) -> bytes:
    """One chunk of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    row: bytes,
    *,
    depth: int = 8,
    kind: int = 2,
    before: bytes = b"",
    width_px: int = SIDE_PX,
    height_px: int = SIDE_PX,
    end: bytes | None = None,
) -> bytes:
    """A PNG made by hand: the same row all the way down. Kinds: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA."""
    header = struct.pack(">IIBBBBB", width_px, height_px, depth, kind, 0, 0, 0)
    pixels = zlib.compress((b"\0" + row) * height_px)
    tail = chunk(b"IEND", b"") if end is None else end
    return SIGNATURE + chunk(b"IHDR", header) + before + chunk(b"IDAT", pixels) + tail


SIGNATURE = b"\x89PNG\r\n\x1a\n"
RED_ROW = bytes(RED) * SIDE_PX

Found = Iterator[tuple[str, bytes, Colour | str | None]]


def _file(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _drawn(mode: str = "RGB", colour: Any = RED, side_px: int = SIDE_PX) -> Image.Image:
    return Image.new(mode, (side_px, side_px), colour)


def _exif(orientation: Any) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def _plain() -> Found:
    yield "one_pixel.png", _file(_drawn(side_px=1), "PNG"), RED
    yield "line.png", _file(Image.new("RGB", (300, 1), RED), "PNG"), RED
    yield "column.jpg", _file(Image.new("RGB", (1, 300), RED), "JPEG"), RED
    yield "progressive.jpg", _file(_drawn(), "JPEG", progressive=True), RED
    yield "quality_1.jpg", _file(_drawn(), "JPEG", quality=1), (231, 38, 39)
    yield "lossless.webp", _file(_drawn(), "WEBP", lossless=True), RED
    yield "comment.jpg", _file(_drawn(), "JPEG", comment=b"x" * 60_000), RED
    yield "text.png", png(RED_ROW, before=chunk(b"tEXt", b"Comment\0" + b"x" * 100_000)), RED
    yield "profile.png", _file(_drawn(), "PNG", icc_profile=b"not a profile"), RED
    yield "resolution.jpg", _file(_drawn(), "JPEG", dpi=(1, 30_000)), RED
    yield "double_picture_of_a_phone.jpg", _file(_drawn(), "MPO", save_all=True, append_images=[_drawn()]), RED


def _trailing() -> Found:
    yield "bytes_after_the_end.png", png(RED_ROW) + b"x" * 5000, RED
    yield "script_after_the_end.png", png(RED_ROW) + b"<script>alert(1)</script>", RED
    jpeg, webp = _file(_drawn(), "JPEG"), _file(_drawn(), "WEBP", lossless=True)
    yield "bytes_after_the_end.jpg", jpeg + b"x" * 5000, RED
    yield "zeros_after_the_end.jpg", jpeg + bytes(5000), RED
    yield "half_a_picture_after_the_end.jpg", jpeg + jpeg[: len(jpeg) // 2], RED
    yield "fill_bytes_before_the_end.jpg", jpeg[:-2] + b"\xff" * 9 + jpeg[-2:], RED
    yield "zeros_between_parts.jpg", jpeg[:20] + bytes(3) + jpeg[20:], RED
    yield "bytes_after_the_end.webp", webp + b"x" * 5000, RED
    yield "rows_after_the_last.png", _of_rows(b"\0" + RED_ROW, count=SIDE_PX + 3), RED


def _depths() -> Found:
    wide = struct.pack(">HHH", *(257 * value for value in RED)) * SIDE_PX
    yield "rgb_16_bit.png", png(wide, depth=16), RED
    yield "grey_16_bit.png", png(struct.pack(">H", 0x8000) * SIDE_PX, depth=16, kind=0), (128, 128, 128)
    yield "grey_16_bit_bright.png", png(b"\xff\xff" * SIDE_PX, depth=16, kind=0), WHITE
    clear = chunk(b"tRNS", b"\x10\x00")
    yield "grey_16_bit_other_grey_clear.png", png(b"\x80\0" * SIDE_PX, depth=16, kind=0, before=clear), (128,) * 3
    yield "grey_16_bit_its_grey_clear.png", png(b"\x10\0" * SIDE_PX, depth=16, kind=0, before=clear), WHITE
    yield "grey_8_bit.png", _file(_drawn("L", 90), "PNG"), (90, 90, 90)
    yield "grey_4_bit.png", png(b"\x55" * (SIDE_PX // 2), depth=4, kind=0), (85, 85, 85)
    yield "grey_2_bit.png", png(b"\xaa" * (SIDE_PX // 4), depth=2, kind=0), (170, 170, 170)
    yield "black_and_white.png", _file(_drawn("1", 1), "PNG"), WHITE
    yield "grey.jpg", _file(_drawn("L", 90), "JPEG"), (90, 90, 90)
    yield "cmyk.jpg", _file(_drawn("CMYK", (0, 255, 255, 0)), "JPEG"), (254, 0, 0)
    yield "ycck.jpg", _ycck(200), (55, 55, 55)
    yield "cmyk_black.jpg", _file(_drawn("CMYK", (0, 0, 0, 255)), "JPEG"), BLACK


def _palettes() -> Found:
    colours = chunk(b"PLTE", bytes(BLUE) + bytes(RED))
    yield "palette_8_bit.png", png(b"\1" * SIDE_PX, kind=3, before=colours), RED
    yield "palette_1_bit.png", png(b"\xff" * (SIDE_PX // 8), depth=1, kind=3, before=colours), RED
    yield "palette_clear.png", png(b"\1" * SIDE_PX, kind=3, before=colours + chunk(b"tRNS", b"\xff\0")), WHITE
    yield "palette_other_clear.png", png(b"\1" * SIDE_PX, kind=3, before=colours + chunk(b"tRNS", b"\0")), RED
    yield "palette_index_beyond.png", png(b"\x7f" * SIDE_PX, kind=3, before=colours), BLACK
    yield "palette_missing.png", png(b"\1" * SIDE_PX, kind=3), "invalid_image"


def _transparent() -> Found:
    yield "clear.png", _file(_drawn("RGBA", (*RED, 0)), "PNG"), WHITE
    yield "half_clear.png", _file(_drawn("RGBA", (0, 0, 0, 128)), "PNG"), (127, 127, 127)
    yield "opaque_rgba.png", _file(_drawn("RGBA", (*RED, 255)), "PNG"), RED
    yield "clear.webp", _file(_drawn("RGBA", (*RED, 0)), "WEBP"), WHITE
    yield "grey_and_alpha.png", _file(_drawn("LA", (90, 0)), "PNG"), WHITE
    yield "rgba_16_bit.png", png(b"\x80\0\x80\0\x80\0\0\0" * SIDE_PX, depth=16, kind=6), WHITE
    yield "one_colour_clear.png", png(RED_ROW, before=chunk(b"tRNS", struct.pack(">HHH", *RED))), WHITE
    yield "another_colour_clear.png", png(RED_ROW, before=chunk(b"tRNS", struct.pack(">HHH", *BLUE))), RED


def _turned() -> Found:
    for orientation in range(2, 9):
        yield f"orientation_{orientation}.jpg", _file(_drawn(), "JPEG", exif=_exif(orientation)), RED
    yield "orientation_9.jpg", _file(_drawn(), "JPEG", exif=_exif(9)), RED
    yield "orientation_0.webp", _file(_drawn(), "WEBP", lossless=True, exif=_exif(0)), RED
    yield "exif_damaged.jpg", _file(_drawn(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff"), RED
    yield "exif_damaged.png", _file(_drawn(), "PNG", exif=b"Exif\0\0MMx*\0\0\0\x08"), RED


def _profiled() -> Found:
    p3, adobe = rgb_profile(DISPLAY_P3), rgb_profile(ADOBE_RGB)
    yield "display_p3.png", _file(_drawn(), "PNG", icc_profile=p3), _triple(DISPLAY_P3.srgb(RED))
    yield "display_p3.jpg", _file(_drawn(), "JPEG", quality=100, icc_profile=p3), _triple(DISPLAY_P3.srgb(RED))
    yield "display_p3.webp", _file(_drawn(), "WEBP", lossless=True, icc_profile=p3), _triple(DISPLAY_P3.srgb(RED))
    yield "adobe_rgb.jpg", _file(_drawn(), "JPEG", quality=100, icc_profile=adobe), _triple(ADOBE_RGB.srgb(RED))
    yield "adobe_rgb_clear.png", _file(_drawn("RGBA", (*RED, 0)), "PNG", icc_profile=adobe), WHITE
    yield "srgb.png", _file(_drawn(), "PNG", icc_profile=rgb_profile(SRGB)), RED
    yield "linear_grey.png", _file(_drawn("L", 128), "PNG", icc_profile=grey_profile(1.0)), (188, 188, 188)
    paper = _file(_drawn("CMYK", (0, 0, 0, 0)), "JPEG", icc_profile=cmyk_profile())
    yield "cmyk_of_a_press.jpg", paper, WHITE
    yield "profile_of_other_colours.png", _file(_drawn(), "PNG", icc_profile=cmyk_profile()), RED
    yield "profile_damaged.jpg", _file(_drawn(), "JPEG", quality=100, icc_profile=p3[:300]), RED
    yield "profile_of_megabytes.jpg", _file(_drawn(), "JPEG", quality=100, icc_profile=p3 + bytes(6_000_000)), RED
    unfolds = chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(80_000_000)))
    yield "profile_bomb.png", png(RED_ROW, before=unfolds), "invalid_image"


def _animated() -> Found:
    for kind, ending in (("PNG", "png"), ("WEBP", "webp")):
        frames = {"save_all": True, "append_images": [_drawn(colour=BLUE)]}
        yield f"animated.{ending}", _file(_drawn(), kind, **frames), "invalid_image"
    yield "animation_of_one_frame.png", _file(_drawn(), "PNG", save_all=True), RED


def _other_formats() -> Found:
    for kind in ("GIF", "BMP", "TIFF", "ICO", "PPM", "TGA", "PDF", "JPEG2000"):
        yield f"other.{kind.lower()}", _file(_drawn(), kind), "invalid_image"
    yield "drawing.svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', "invalid_image"
    yield "page.html", b"<!doctype html><img src=x>", "invalid_image"
    yield "archive.zip", b"PK\3\4" + bytes(100), "invalid_image"
    yield "photo.heic", b"\0\0\0\x18ftypheic" + bytes(100), "invalid_image"
    yield "photo.avif", b"\0\0\0\x18ftypavif" + bytes(100), "invalid_image"
    yield "empty.png", b"", "invalid_image"
    yield "sound.wav", b"RIFF\x24\0\0\0WAVEfmt " + bytes(100), "invalid_image"
    yield "address.txt", b"https://example.org/cat.png", "image_address"


def _damaged() -> Found:
    noise = Image.effect_noise((64, 64), 90).convert("RGB")
    for kind, ending in (("PNG", "png"), ("JPEG", "jpg"), ("WEBP", "webp")):
        whole = _file(noise, kind)
        yield f"half.{ending}", whole[: len(whole) // 2], "invalid_image"
        yield f"only_its_beginning.{ending}", whole[:16], "invalid_image"
        # Of WebP any bytes are pixels, and nothing in the file says that they are not its own.
        zeros = whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2)
        yield f"zeros_at_the_end.{ending}", zeros, None if kind == "WEBP" else "invalid_image"
        yield f"last_bytes_missing.{ending}", whole[:-2], "invalid_image"
    yield "signature_alone.png", SIGNATURE, "invalid_image"
    yield "start_alone.jpg", b"\xff\xd8\xff", "invalid_image"
    yield "pixels_missing.png", SIGNATURE + png(RED_ROW)[8:33] + chunk(b"IEND", b""), "invalid_image"
    yield "pixels_no_zlib.png", png(RED_ROW)[:41] + b"rubbish!" * 4, "invalid_image"
    yield "end_missing.png", png(RED_ROW, end=b""), "invalid_image"
    yield "unknown_filter.png", _with_pixels(b"\x09" + RED_ROW), "invalid_image"
    yield "checksum_wrong.png", png(RED_ROW)[:-14] + b"\0\0" + png(RED_ROW)[-12:], "invalid_image"


def _cut_and_closed() -> Found:
    """Cut off, with an end put behind the cut: decoders paint the rest grey or black, and say nothing."""
    noise = Image.effect_noise((128, 128), 90).convert("RGB")
    flat = Image.new("RGB", (128, 128), RED)
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "progressive": {"progressive": True},
        "restarts": {"restart_marker_rows": 1},
        "full_colour": {"subsampling": 0},
    }
    for name, options in kinds.items():
        for look, picture in (("noise", noise), ("flat", flat)):
            whole = _file(picture, "JPEG", **options)
            start = whole.index(b"\xff\xda") + 14
            end = whole.index(b"\xff\xc4", start) if name == "progressive" else len(whole)
            cut = whole[: start + (end - start) // 2].rstrip(b"\xff") + b"\xff\xd9"
            yield f"closed_{look}_{name}.jpg", cut, "invalid_image"
    for look, picture in (("noise", noise), ("flat", flat)):
        for name, options in (("lossy", {}), ("lossless", {"lossless": True})):
            whole = _file(picture, "WEBP", **options)
            body = whole[20 : 20 + (len(whole) - 20) // 4 * 2]
            cut = b"RIFF" + struct.pack("<I", 12 + len(body)) + whole[8:16] + struct.pack("<I", len(body)) + body
            yield f"closed_{look}_{name}.webp", cut, "invalid_image"
    for name, count in (("one_row_missing", SIDE_PX - 1), ("half_its_rows_missing", SIDE_PX // 2), ("no_rows", 0)):
        yield f"{name}.png", _of_rows(b"\0" + RED_ROW, count=count), "invalid_image"
    yield "interlaced.png", _interlaced(), RED
    yield "interlaced_cut.png", _interlaced(missing_bytes=1), "invalid_image"


def _lying() -> Found:
    yield "no_width.png", png(b"", width_px=0), "invalid_image"
    yield "kind_of_colour_unknown.png", png(RED_ROW, kind=5), "invalid_image"
    yield "depth_unknown.png", png(RED_ROW, depth=7), "invalid_image"
    yield "png_named_jpg.jpg", png(RED_ROW), RED
    yield "length_of_a_chunk_beyond_the_end.png", SIGNATURE + b"\x7f\xff\xff\xffIHDR" + bytes(40), "invalid_image"
    yield "riff_length_wrong.webp", b"RIFF\xff\xff\xff\xffWEBPVP8 " + bytes(60), "invalid_image"
    yield (
        "text_bomb.png",
        png(RED_ROW, before=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(80_000_000)))),
        "invalid_image",
    )


def _large() -> Found:
    yield "as_large_as_allowed.png", _file(Image.new("1", (1000, 1000), 1), "PNG"), WHITE
    yield "one_row_too_many.png", _file(Image.new("1", (1000, 1001), 1), "PNG"), "image_too_large"
    yield "bomb.png", png(b"", width_px=30_000, height_px=30_000), "image_too_large"
    yield "largest_sides.png", png(b"", width_px=2**31 - 1, height_px=2**31 - 1), "image_too_large"
    yield "bomb.jpg", _jpeg_of(65_000, 65_000), "image_too_large"


def _slow() -> Found:
    progressive = _file(_drawn(), "JPEG", progressive=True)
    scan = progressive[progressive.rindex(b"\xff\xda") : -2]
    yield "thousands_of_scans.jpg", progressive[:-2] + scan * 5000 + progressive[-2:], "invalid_image"
    note = b"\xff\xe1\xff\xff" + b"x" * 65_533
    jpeg = _file(_drawn(), "JPEG")
    yield "notes_of_megabytes.jpg", jpeg[:2] + note * 100 + jpeg[2:], RED
    yield "thousands_of_parts.png", png(RED_ROW, before=chunk(b"prVt", b"") * 50_000), RED


def _ycck(ink: int) -> bytes:
    """A JPEG of four inks, three of them as brightness and colour: some programs for print write it."""
    data = _file(_drawn("CMYK", (255 - ink, 127, 127, 0)), "JPEG", quality=100)
    at = data.index(b"Adobe")
    return data[: at + 11] + b"\2" + data[at + 12 :]


def _interlaced(*, missing_bytes: int = 0) -> bytes:
    rows = b""
    for left, top, right, down in (
        *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
    ):
        columns, lines = len(range(left, SIDE_PX, right)), len(range(top, SIDE_PX, down))
        rows += (b"\0" + bytes(RED) * columns) * lines
    header = struct.pack(">IIBBBBB", SIDE_PX, SIDE_PX, 8, 2, 0, 0, 1)
    pixels = chunk(b"IDAT", zlib.compress(rows[: len(rows) - missing_bytes]))
    return SIGNATURE + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def _of_rows(row: bytes, *, count: int) -> bytes:
    """A PNG that has another number of rows than it says."""
    header = struct.pack(">IIBBBBB", SIDE_PX, SIDE_PX, 8, 2, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * count)) + chunk(b"IEND", b"")


def _triple(values: tuple[int, ...]) -> Colour:
    red, green, blue = values
    return red, green, blue


def _with_pixels(row: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", SIDE_PX, SIDE_PX, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(row * SIDE_PX))
    return SIGNATURE + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def _jpeg_of(width_px: int, height_px: int) -> bytes:
    """A small JPEG whose header states another size."""
    data = bytearray(_file(_drawn(), "JPEG"))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height_px, width_px)
    return bytes(data)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for odd in odd_images():
        (folder / odd.name).write_bytes(odd.data)
        print(odd.name, len(odd.data), odd.answer)
