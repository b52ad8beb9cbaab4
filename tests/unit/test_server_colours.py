"""Pictures come to sRGB by their own profile, and a broken profile is no damage to the picture."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from imageedit_server.api.colours import MAX_PROFILE_BYTES, srgb
from imageedit_server.api.geometry import plan
from imageedit_server.api.images import at_output_size, prepare
from imageedit_server.worker.shapes import Size
from server.profiles import (
    ADOBE_RGB,
    DISPLAY_P3,
    INKS,
    SRGB,
    Primaries,
    cmyk_profile,
    grey_profile,
    rgb_profile,
    srgb_of_lab,
)

COLOURS = [(200, 40, 40), (90, 160, 90), (60, 70, 190), (255, 255, 255), (0, 0, 0), (128, 128, 128), (240, 200, 40)]


def file_of(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(data: bytes, **options: Any) -> tuple[int, ...]:
    """The colour in the middle of what the engine gets."""
    ready = prepare(data, param="image", candidates=[Size(64, 64)], max_pixels=1_000_000, **options)
    pixel = Image.frombytes("RGB", (64, 64), ready.pixels).getpixel((32, 32))
    assert isinstance(pixel, tuple)
    return pixel


def near(one: tuple[int, ...], other: tuple[int, ...], tolerance: int = 4) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("space", [DISPLAY_P3, ADOBE_RGB], ids=["Display P3", "Adobe RGB"])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_colour_is_what_its_profile_says(kind: str, space: Primaries, colour: tuple[int, int, int]) -> None:
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {"quality": 100} if kind == "JPEG" else {}
    data = file_of(Image.new("RGB", (64, 64), colour), kind, icc_profile=rgb_profile(space), **options)

    assert near(read(data), space.srgb(colour)), space.srgb(colour)


def test_the_difference_is_worth_it() -> None:
    assert not near(ADOBE_RGB.srgb((90, 160, 90)), (90, 160, 90), 20)


@pytest.mark.parametrize("inks", INKS)
def test_cmyk_is_what_its_profile_says(inks: tuple[int, int, int]) -> None:
    picture = Image.new("CMYK", (64, 64), (*(255 * ink for ink in inks), 0))
    data = file_of(picture, "JPEG", quality=100, icc_profile=cmyk_profile())
    white, shown = (255, 255, 255), read(data)

    assert near(shown, srgb_of_lab(INKS[inks]), 24 if inks != (0, 0, 0) else 1)
    assert (shown == white) == (inks == (0, 0, 0))


def test_cmyk_without_a_profile_is_taken_as_pure_inks() -> None:
    assert near(read(file_of(Image.new("CMYK", (64, 64), (0, 255, 255, 0)), "JPEG")), (254, 0, 0))


def test_grey_is_what_its_profile_says() -> None:
    data = file_of(Image.new("L", (64, 64), 128), "PNG", icc_profile=grey_profile(1.0))

    assert near(read(data), (188, 188, 188))


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_what_is_srgb_already_stays_to_the_bit(mode: str) -> None:
    picture = Image.merge("RGB", [Image.effect_noise((50, 40), 90) for _ in range(3)]).convert(mode)
    data = file_of(picture, "PNG", icc_profile=rgb_profile(SRGB))
    planned = plan(Size(50, 40), [Size(64, 64)], "original")
    shown = at_output_size(data, planned, param="image", max_pixels=10_000)

    assert ImageChops.difference(shown, picture.convert("RGB")).getbbox() is None


def test_transparency_outlives_the_profile_and_is_laid_on_the_named_colour() -> None:
    picture = Image.new("RGBA", (64, 64), (200, 40, 40, 0))
    data = file_of(picture, "PNG", icc_profile=rgb_profile(DISPLAY_P3))

    assert read(data, alpha_colour=(10, 20, 30)) == (10, 20, 30)


@pytest.mark.parametrize("mode", ["P", "LA", "1", "I;16"])
def test_other_kinds_of_pictures_bear_a_profile(mode: str) -> None:
    picture = Image.new(mode, (64, 64)) if mode == "I;16" else Image.new("L", (64, 64), 0).convert(mode)

    assert read(file_of(picture, "PNG", icc_profile=rgb_profile(DISPLAY_P3))) == (0, 0, 0)


@pytest.mark.parametrize(
    ("mode", "profile"),
    [
        ("RGB", b"not a profile"),
        ("RGB", b""),
        ("RGB", rgb_profile(DISPLAY_P3)[:200]),
        ("RGB", cmyk_profile()),
        ("RGB", grey_profile(1.0)),
        ("CMYK", rgb_profile(DISPLAY_P3)),
        ("RGB", rgb_profile(DISPLAY_P3) + bytes(MAX_PROFILE_BYTES)),
    ],
)
def test_a_profile_that_cannot_be_used_is_ignored(mode: str, profile: bytes) -> None:
    picture = Image.new("RGB", (8, 8), (200, 40, 40)).convert(mode)

    assert srgb(picture, profile).getpixel((4, 4)) == picture.convert("RGB").getpixel((4, 4))


GOOD = [("RGB", rgb_profile(ADOBE_RGB)), ("CMYK", cmyk_profile()), ("L", grey_profile(2.2))]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GOOD), st.integers(0, 100_000), st.binary(min_size=1, max_size=12))
def test_damage_anywhere_in_a_profile_is_borne(good: tuple[str, bytes], place: int, damage: bytes) -> None:
    mode, profile = good
    at = place % min(len(profile), 600)
    damaged = profile[:at] + damage + profile[at + len(damage) :]
    made = srgb(Image.new(mode, (8, 8)), damaged)

    assert (made.mode, made.size) == ("RGB", (8, 8))


def test_a_profile_of_megabytes_is_read_from_a_png() -> None:
    data = file_of(Image.new("RGB", (64, 64), (9, 9, 9)), "PNG", icc_profile=cmyk_profile() + bytes(2_000_000))

    assert read(data) == (9, 9, 9)
