"""A file that is cut off is found out, and a whole one is taken with all that programs and cameras leave in it."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from imageedit_server.api import whole_jpeg, whole_png, whole_webp

LOOKS = {
    "noise": Image.merge("RGB", [Image.effect_noise((129, 70), 90) for _ in range(3)]),
    "flat": Image.new("RGB", (129, 70), (250, 250, 250)),
    "shades": Image.radial_gradient("L").resize((129, 70)).convert("RGB"),
}
JPEGS: list[dict[str, Any]] = [
    {},
    {"progressive": True},
    {"optimize": True},
    {"quality": 100, "subsampling": 0},
    {"subsampling": 1},
    {"restart_marker_rows": 1},
    {"restart_marker_blocks": 7},
    {"restart_marker_blocks": 5, "progressive": True},
    {"comment": b"\xff\xd9 is no end here"},
]
DAMAGE = (ValueError, KeyError, struct.error, OSError, zlib.error)


def file_of(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("options", JPEGS, ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("look", LOOKS)
def test_whole_jpegs_are_taken(look: str, mode: str, options: dict[str, Any]) -> None:
    data = file_of(LOOKS[look].convert(mode), "JPEG", **options)
    second = 4 + int.from_bytes(data[4:6], "big")
    between_parts = data[:second] + bytes(2) + data[second:]
    for whole in (data, data + b"more", data[:-2] + b"\xff\xff" + data[-2:], between_parts):
        whole_jpeg.check(whole)


@pytest.mark.parametrize("options", [one for one in JPEGS if "optimize" not in one], ids=str)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.6, 0.9])
def test_a_jpeg_whose_first_scan_was_cut_is_found_out_with_an_end_behind_it(
    look: str, options: dict[str, Any], kept: float
) -> None:
    data = file_of(LOOKS[look], "JPEG", **options)
    start = data.index(b"\xff\xda")
    start += 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    end = whole_jpeg.SCAN_END.search(data, start)
    assert end is not None
    cut = data[: start + int((end.start() - start) * kept)].rstrip(b"\xff")
    with pytest.raises(ValueError, match="missing"):
        whole_jpeg.check(cut + b"\xff\xd9")
    with pytest.raises(ValueError, match="its end is missing"):
        whole_jpeg.check(cut)


@pytest.mark.parametrize("look", ["noise", "shades"])
def test_a_progressive_jpeg_that_is_cut_in_any_scan_is_found_out(look: str) -> None:
    data = file_of(LOOKS[look], "JPEG", progressive=True)
    at, found = 0, 0
    while (at := data.find(b"\xff\xda", at + 1)) >= 0:
        start = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        end = whole_jpeg.SCAN_END.search(data, start)
        assert end is not None
        if end.start() - start < 16:
            continue  # One of a byte or two says that all is zero, and without it all is zero.
        cut = data[: start + (end.start() - start) // 3].rstrip(b"\xff")
        with pytest.raises(ValueError, match="blocks are missing"):
            whole_jpeg.check(cut + data[end.start() :])
        found += 1

    assert found >= 4


def test_a_restart_that_is_missing_is_found_out() -> None:
    data = file_of(LOOKS["noise"], "JPEG", restart_marker_rows=1)
    first, second = data.index(b"\xff\xd0"), data.index(b"\xff\xd1")
    for damaged in (data[:first] + data[second:], data.replace(b"\xff\xd1", b"\xff\xd5", 1)):
        with pytest.raises(ValueError, match="parts are missing or in another order"):
            whole_jpeg.check(damaged)


def test_a_jpeg_with_a_component_without_samples_is_refused_in_words() -> None:
    data = bytearray(file_of(LOOKS["noise"], "JPEG"))
    data[data.index(b"\xff\xc0") + 11] = 0
    with pytest.raises(ValueError, match="no samples"):
        whole_jpeg.check(bytes(data))


def png(rows: bytes, width_px: int, height_px: int, *, interlaced: bool) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width_px, height_px, 8, 2, 0, 0, interlaced)
    pixels = zlib.compress(rows)
    parts = [chunk(b"IDAT", pixels[start : start + 9]) for start in range(0, len(pixels), 9)]
    return whole_png.SIGNATURE + chunk(b"IHDR", header) + b"".join(parts) + chunk(b"IEND", b"")


def rows_of(width_px: int, height_px: int, *, interlaced: bool) -> bytes:
    """Red rows, in the order in which they are stored."""
    found = b""
    for left, top, right, down in whole_png.PASSES if interlaced else ((0, 0, 1, 1),):
        columns, lines = len(range(left, width_px, right)), len(range(top, height_px, down))
        found += (b"\0" + b"\xff\0\0" * columns) * (lines if columns else 0)
    return found


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_a_png_is_whole_with_its_last_byte_and_not_without(width_px: int, height_px: int, interlaced: bool) -> None:
    rows = rows_of(width_px, height_px, interlaced=interlaced)
    whole_png.check(png(rows, width_px, height_px, interlaced=interlaced))
    whole_png.check(png(rows + b"more", width_px, height_px, interlaced=interlaced))
    with pytest.raises(ValueError, match="rows are missing"):
        whole_png.check(png(rows[:-1], width_px, height_px, interlaced=interlaced))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (13, 7), (100, 3)])
def test_whole_pngs_of_each_kind_are_taken(mode: str, size: tuple[int, int]) -> None:
    picture = Image.new(mode, size) if mode == "I;16" else LOOKS["noise"].convert("L").convert(mode).resize(size)

    whole_png.check(file_of(picture, "PNG") + b"more")


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}], ids=str)
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("look", LOOKS)
def test_whole_webps_are_taken_and_short_ones_are_not(look: str, mode: str, options: dict[str, Any]) -> None:
    data = file_of(LOOKS[look].convert(mode), "WEBP", **options)
    whole_webp.check(data)
    whole_webp.check(data + b"more")
    for length in (16, len(data) // 2, len(data) - 2):
        with pytest.raises(ValueError, match="missing"):
            whole_webp.check(data[:length])


FILES = [
    (check, file_of(look, kind))
    for look in LOOKS.values()
    for kind, check in (("JPEG", whole_jpeg.check), ("PNG", whole_png.check), ("WEBP", whole_webp.check))
]


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's remarks about the damage
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_damage_anywhere_is_named_or_passed_but_never_crashes(file: Any, place: int, damage: bytes) -> None:
    check, data = file
    at = place % len(data)
    try:
        check(data[:at] + damage + data[at + len(damage) :])
    except DAMAGE:
        return
