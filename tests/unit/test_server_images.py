"""Facts about reading pictures from strangers."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from imageedit_server.api.images import Prepared, from_base64, prepare
from imageedit_server.api.pieces import base64_pieces
from imageedit_server.api.results import finished
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 200, 30), (30, 30, 220), (255, 255, 255)


def drawn(width_px: int = 64, height_px: int = 64, colour: Any = RED, mode: str = "RGB") -> Image.Image:
    return Image.new(mode, (width_px, height_px), colour)


def file_of(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def prepared(data: bytes, size: str = "64x64", max_pixels: int = 1_000_000) -> Prepared:
    return prepare(data, param="image", candidates=[Size.parse(size)], max_pixels=max_pixels)


def shown(ready: Prepared) -> Image.Image:
    candidate = ready.plan.placement.candidate
    return Image.frombytes("RGB", (candidate.width_px, candidate.height_px), ready.pixels)


def near(pixel: Any, colour: tuple[int, int, int], tolerance: int = 12) -> bool:
    return all(abs(one - other) <= tolerance for one, other in zip(pixel, colour, strict=True))


def png_header(width_px: int, height_px: int) -> bytes:
    """A PNG that states a size and holds next to nothing: what an image bomb looks like before it is decoded."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width_px, height_px, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000)))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_the_three_formats_are_read(kind: str) -> None:
    assert near(shown(prepared(file_of(drawn(), kind))).getpixel((32, 32)), RED)


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "ICO"])
def test_other_formats_are_refused(kind: str) -> None:
    with pytest.raises(InvalidInput, match="not a PNG, JPEG or WebP") as raised:
        prepared(file_of(drawn(), kind))

    assert raised.value.code == "invalid_image"


@pytest.mark.parametrize("data", [b"", b"hello", b"<svg/>", b"RIFF\0\0\0\0WAVE"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="not a PNG, JPEG or WebP"):
        prepared(data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_that_is_cut_off_is_refused(kind: str) -> None:
    noise = Image.effect_noise((64, 64), 90).convert("RGB")
    data = file_of(noise, kind)
    with pytest.raises(InvalidInput, match="damaged or cut off") as raised:
        prepared(data[: len(data) // 2])

    assert raised.value.code == "invalid_image"


def test_a_bomb_is_refused_by_its_header() -> None:
    with pytest.raises(InvalidInput, match="30000x30000 = 900000000 pixels; at most 1000000") as raised:
        prepared(png_header(30_000, 30_000))

    assert raised.value.code == "image_too_large"


def test_the_limit_of_pixels_itself_is_allowed() -> None:
    assert prepared(file_of(drawn(100, 10)), max_pixels=1000).plan.placement.working == Size(64, 6)
    with pytest.raises(InvalidInput):
        prepared(file_of(drawn(100, 11)), max_pixels=1000)


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_animation_is_refused(kind: str) -> None:
    data = file_of(drawn(), kind, save_all=True, append_images=[drawn(colour=BLUE)])
    with pytest.raises(InvalidInput, match="animated"):
        prepared(data)


def test_the_photograph_in_a_phones_double_picture_is_taken() -> None:
    data = file_of(drawn(), "MPO", save_all=True, append_images=[drawn(colour=BLUE)])

    assert near(shown(prepared(data)).getpixel((32, 32)), RED)


# What each orientation does to a picture whose upper half is red: where the red half lies when it is shown upright.
RED_SIDE = {1: "top", 2: "top", 3: "bottom", 4: "bottom", 5: "left", 6: "right", 7: "right", 8: "left"}
PROBES = {"top": (32, 8), "bottom": (32, 56), "left": (8, 32), "right": (56, 32)}


@pytest.mark.parametrize(("orientation", "side"), RED_SIDE.items())
def test_a_picture_is_turned_as_its_exif_says(orientation: int, side: str) -> None:
    picture = drawn(colour=BLUE)
    picture.paste(RED, (0, 0, 64, 32))
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = shown(prepared(file_of(picture, "JPEG", exif=exif, quality=95)))

    assert {name for name, at in PROBES.items() if near(upright.getpixel(at), RED)} >= {side}
    assert near(
        upright.getpixel(PROBES[{"top": "bottom", "bottom": "top", "left": "right", "right": "left"}[side]]), BLUE
    )


def test_a_large_jpeg_is_decoded_at_a_fraction_and_looks_the_same() -> None:
    picture = drawn(2000, 1000, RED)
    picture.paste(BLUE, (0, 0, 1000, 1000))
    exif = Image.Exif()
    exif[0x0112] = 8
    ready = prepared(file_of(picture, "JPEG", exif=exif), max_pixels=2_000_000)
    upright = shown(ready)

    # Turned to the left: the blue left half lies at the bottom.
    assert ready.plan.placement.working == Size(32, 64)
    assert near(upright.getpixel((32, 60)), BLUE)
    assert near(upright.getpixel((32, 4)), RED)
    assert near(upright.getpixel((32, 29)), RED, 40)
    assert near(upright.getpixel((32, 34)), BLUE, 40)


def test_a_turned_picture_is_placed_by_its_upright_shape() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    ready = prepared(file_of(drawn(64, 32), "JPEG", exif=exif))

    assert ready.plan.placement.working == Size(32, 64)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's remark about the damage
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("exif", [b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0MMx*\0\0\0\x08"])
def test_damaged_exif_is_no_damage_to_the_picture(kind: str, exif: bytes) -> None:
    data = file_of(drawn(), kind, exif=exif)

    assert near(shown(prepared(data)).getpixel((32, 32)), RED)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_becomes_white(mode: str) -> None:
    picture = drawn(colour=(0, 0, 0, 0), mode="RGBA").convert(mode)

    assert near(shown(prepared(file_of(picture))).getpixel((32, 32)), WHITE)


def test_a_transparent_palette_colour_becomes_white() -> None:
    assert near(shown(prepared(file_of(drawn(mode="P", colour=0), transparency=0))).getpixel((32, 32)), WHITE)


def test_half_transparent_is_mixed_with_white() -> None:
    picture = drawn(colour=(0, 0, 0, 128), mode="RGBA")

    assert near(shown(prepared(file_of(picture))).getpixel((32, 32)), (127, 127, 127))


@pytest.mark.parametrize(("mode", "kind"), [("L", "PNG"), ("1", "PNG"), ("P", "PNG"), ("CMYK", "JPEG"), ("L", "JPEG")])
def test_other_colour_modes_are_read(mode: str, kind: str) -> None:
    picture = drawn(colour=WHITE).convert(mode)

    assert near(shown(prepared(file_of(picture, kind))).getpixel((32, 32)), WHITE)


def test_sixteen_bit_grey_is_scaled_not_clipped() -> None:
    picture = Image.new("I;16", (64, 64), 0x8000)

    assert near(shown(prepared(file_of(picture))).getpixel((32, 32)), (128, 128, 128))


def test_padding_repeats_the_edges() -> None:
    picture = drawn(64, 32, RED)
    picture.paste(BLUE, (0, 0, 64, 16))
    padded = shown(prepared(file_of(picture)))

    assert near(padded.getpixel((32, 2)), BLUE)
    assert near(padded.getpixel((32, 61)), RED)


def test_padding_repeats_the_edges_to_the_sides() -> None:
    picture = drawn(32, 64, RED)
    picture.paste(BLUE, (0, 0, 16, 64))
    padded = shown(prepared(file_of(picture)))

    assert near(padded.getpixel((2, 32)), BLUE)
    assert near(padded.getpixel((61, 32)), RED)


def test_the_padding_is_cut_off_the_result() -> None:
    ready = prepared(file_of(drawn(64, 32)))
    result = shown(ready)
    result.paste(GREEN, (0, 16, 64, 48))
    returned = Image.open(io.BytesIO(finished(result.tobytes(), ready.plan, masked=None, kind="png", compression=100)))

    assert (returned.format, returned.mode, returned.size) == ("PNG", "RGB", (64, 32))
    assert returned.getcolors() == [(64 * 32, GREEN)]


def base64_text(data: bytes) -> str:
    """As answers carry it."""
    return b"".join(base64_pieces(data)).decode("ascii")


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,", "data:;base64,"])
def test_base64_comes_with_and_without_a_data_address(prefix: str) -> None:
    assert from_base64(prefix + base64_text(b"bytes of a file"), param="image") == b"bytes of a file"


def test_base64_may_have_line_breaks() -> None:
    assert from_base64("YWJj\r\nZGVm\n", param="image") == b"abcdef"


@pytest.mark.parametrize("text", ["", "data:image/png;base64,", "%%%%", "abc", "YWJj=YWJj", "é"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        from_base64(text, param="image")

    assert (raised.value.code, raised.value.param) == ("invalid_base64", "image")


def test_base64_longer_than_a_slice_comes_back_whole() -> None:
    data = bytes(range(256)) * 6000

    assert from_base64(base64_text(data), param="image") == data


VALID = [file_of(Image.effect_noise((40, 40), 90).convert("RGB"), kind) for kind in ("PNG", "JPEG", "WEBP")]


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's remarks about the damage
@settings(max_examples=150)
@given(st.sampled_from(VALID), st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_damage_anywhere_is_refused_or_read_but_never_crashes(data: bytes, place: int, damage: bytes) -> None:
    at = place % len(data)
    damaged = data[:at] + damage + data[at + len(damage) :]
    try:
        ready = prepared(damaged)
    except InvalidInput:
        return
    assert len(ready.pixels) == 64 * 64 * 3
