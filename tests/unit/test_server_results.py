"""Facts about the way from raw pixels to the client's file: sizes, formats, and the mask."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageDraw

from imageedit_server.api.geometry import SizeWish, place, plan
from imageedit_server.api.images import Prepared, at_output_size, prepare, reference
from imageedit_server.api.masks import weights
from imageedit_server.api.results import Masked, finished
from imageedit_server.api.wishes import Format
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size

GREEN = (30, 200, 30)
CANDIDATES = (Size(64, 64), Size(96, 64))
LIMIT = 1_000_000


def noise(width_px: int = 50, height_px: int = 40) -> Image.Image:
    bands = [Image.effect_noise((width_px, height_px), 90) for _ in range(3)]
    return Image.merge("RGB", bands)


def file_of(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def mask(width_px: int = 50, height_px: int = 40, box: tuple[int, int, int, int] = (10, 10, 29, 29)) -> bytes:
    """Opaque, but for a transparent box, whose last column and row belong to it."""
    drawn = Image.new("RGBA", (width_px, height_px), (0, 0, 0, 255))
    ImageDraw.Draw(drawn).rectangle(box, fill=(0, 0, 0, 0))
    return file_of(drawn)


def ready(picture: bytes, size: SizeWish = "auto") -> Prepared:
    return prepare(picture, param="image", candidates=CANDIDATES, max_pixels=LIMIT, size=size)


def result(
    picture: bytes,
    *,
    size: SizeWish = "auto",
    masking: bytes | None = None,
    feather_px: int = 0,
    kind: Format = "png",
    compression: int = 100,
) -> Image.Image:
    """What a client gets when the engine paints everything green."""
    made = ready(picture, size)
    candidate = made.plan.placement.candidate
    green = Image.new("RGB", (candidate.width_px, candidate.height_px), GREEN).tobytes()
    masked = None if masking is None else Masked(picture=picture, mask=masking, feather_px=feather_px, max_pixels=LIMIT)
    file = finished(green, made.plan, masked=masked, kind=kind, compression=compression)
    return Image.open(io.BytesIO(file))


sizes = st.builds(Size, st.integers(1, 5000), st.integers(1, 5000))
wishes = st.one_of(st.sampled_from(["auto", "original"]), st.builds(Size, st.integers(16, 4096), st.integers(16, 4096)))


@pytest.mark.parametrize(
    ("wish", "candidate", "working", "output"),
    [
        ("auto", Size(96, 64), Size(96, 64), Size(96, 64)),
        ("original", Size(96, 64), Size(96, 64), Size(150, 100)),
        (Size(64, 64), Size(64, 64), Size(64, 64), Size(64, 64)),
        (Size(300, 300), Size(64, 64), Size(64, 64), Size(300, 300)),
        (Size(300, 150), Size(96, 64), Size(96, 48), Size(300, 150)),
    ],
)
def test_sizes_follow_the_table(wish: SizeWish, candidate: Size, working: Size, output: Size) -> None:
    made = plan(Size(150, 100), CANDIDATES, wish)

    assert (made.placement.candidate, made.placement.working, made.output) == (candidate, working, output)


@given(sizes, wishes)
def test_the_picture_lies_in_all_frames(picture: Size, wish: SizeWish) -> None:
    made = plan(picture, CANDIDATES, wish)

    assert made.in_working.candidate == made.placement.working
    assert made.in_output.candidate == made.output
    if not isinstance(wish, Size):
        assert made.in_working.working == made.placement.working
        assert made.in_output.working == made.output


@pytest.mark.parametrize("size", ["auto", "original", Size(64, 64), Size(33, 47), Size(200, 30)])
def test_the_result_has_the_size_that_was_planned(size: SizeWish) -> None:
    made = result(file_of(noise()), size=size)

    assert Size(*made.size) == ready(file_of(noise()), size).plan.output
    assert made.getcolors() == [(made.width * made.height, GREEN)]


def test_a_result_of_another_shape_shows_the_picture_whole() -> None:
    picture = Image.new("RGB", (50, 50), (0, 0, 200))
    shown = at_output_size(
        file_of(picture), plan(Size(50, 50), CANDIDATES, Size(200, 50)), param="image", max_pixels=LIMIT
    )

    assert shown.size == (200, 50)
    assert shown.getcolors() == [(200 * 50, (0, 0, 200))]


def test_a_result_that_is_too_large_is_refused() -> None:
    long = file_of(Image.new("1", (17_000, 1)))
    with pytest.raises(InvalidInput, match="A result of 17000x1 is too large") as raised:
        ready(long, "original")

    assert raised.value.param == "size"
    assert ready(long).plan.output == Size(96, 1)


@pytest.mark.parametrize(("kind", "name"), [("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WEBP")])
def test_the_file_is_of_the_kind_that_was_asked_for(kind: Format, name: str) -> None:
    assert result(file_of(noise()), kind=kind).format == name


@pytest.mark.parametrize("kind", ["jpeg", "webp"])
def test_compression_makes_lossy_files_smaller(kind: Format) -> None:
    made = ready(file_of(noise(96, 64)))
    pixels = noise(96, 64).tobytes()
    lengths = [
        len(finished(pixels, made.plan, masked=None, kind=kind, compression=quality)) for quality in (0, 30, 60, 100)
    ]

    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1] / 3


def test_a_further_picture_is_laid_on_the_candidate_of_the_first() -> None:
    raw = reference(file_of(Image.new("RGB", (30, 90), GREEN)), param="image", candidate=Size(96, 64), max_pixels=LIMIT)

    assert Image.frombytes("RGB", (96, 64), raw).getcolors() == [(96 * 64, GREEN)]


def test_outside_of_the_mask_the_original_is_kept_to_the_bit() -> None:
    picture = noise()
    made = result(file_of(picture), size="original", masking=mask())
    expected = picture.copy()
    expected.paste(GREEN, (10, 10, 30, 30))

    assert ImageChops.difference(made, expected).getbbox() is None


@pytest.mark.parametrize("orientation", [3, 6])
def test_a_mask_lies_on_the_upright_picture(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270}[orientation]
    upright = noise().transpose(turned)
    made = result(file_of(noise_like := noise(), exif=exif), size="original", masking=mask(*upright.size))
    expected = noise_like.transpose(turned)
    expected.paste(GREEN, (10, 10, 30, 30))

    assert ImageChops.difference(made, expected).getbbox() is None


@pytest.mark.parametrize("feather_px", [1, 4, 9])
def test_feathering_never_reaches_outside_of_the_mask(feather_px: int) -> None:
    picture = noise()
    made = result(file_of(picture), size="original", masking=mask(), feather_px=feather_px)
    box = ImageChops.difference(made, picture).getbbox()

    assert box is not None
    assert 10 <= box[0] < box[2] <= 30
    assert 10 <= box[1] < box[3] <= 30


def test_feathering_fades_in_from_the_edge() -> None:
    made = plan(Size(100, 100), CANDIDATES, "original")
    row = weights(mask(100, 100, (20, 0, 99, 99)), made, feather_px=10).crop((15, 50, 40, 51)).tobytes()

    assert list(row[:5]) == [0] * 5
    assert list(row) == sorted(row)
    assert 5 < row[7] < 120
    assert row[20] == 255


def test_half_transparent_is_half_the_edit() -> None:
    half = Image.new("RGBA", (50, 40), (0, 0, 0, 127))
    made = result(file_of(Image.new("RGB", (50, 40))), size="original", masking=file_of(half))

    assert made.getcolors() == [(2000, tuple(round(value * 128 / 255) for value in GREEN))]


def test_at_another_size_the_mask_is_scaled_with_the_picture() -> None:
    made = result(file_of(Image.new("RGB", (50, 40))), size=Size(100, 80), masking=mask())

    assert made.getpixel((18, 40)) == (0, 0, 0)
    assert made.getpixel((40, 40)) == GREEN


def test_what_another_shape_adds_is_edited() -> None:
    picture = Image.new("RGB", (40, 40))
    made = result(file_of(picture), size=Size(80, 40), masking=mask(40, 40, (0, 0, 4, 4)))

    assert made.getpixel((5, 20)) == GREEN
    assert made.getpixel((40, 20)) == (0, 0, 0)


def opaque(mode: str) -> bytes:
    return file_of(Image.new(mode, (50, 40)))


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"hello", "not a PNG"),
        (file_of(Image.new("RGBA", (50, 40)), "WEBP"), "not a PNG"),
        (mask(40, 50), "40x50 pixels and the picture, upright, 50x40"),
        (opaque("RGB"), "no transparency"),
        (opaque("L"), "no transparency"),
        (file_of(Image.new("RGBA", (50, 40), (0, 0, 0, 255))), "leaves nothing to edit"),
        (mask()[:80], "damaged or cut off"),
        (
            file_of(Image.new("RGBA", (50, 40)), save_all=True, append_images=[Image.new("RGBA", (50, 40), GREEN)]),
            "animated",
        ),
    ],
)
def test_a_mask_that_cannot_be_used_is_refused(sent: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as raised:
        weights(sent, plan(Size(50, 40), CANDIDATES, "auto"), feather_px=0)

    assert (raised.value.code, raised.value.param) == ("invalid_mask", "mask")


def test_a_feather_wider_than_the_mask_is_refused() -> None:
    with pytest.raises(InvalidInput, match="less mask_feather"):
        weights(mask(box=(20, 20, 22, 22)), plan(Size(50, 40), CANDIDATES, "original"), feather_px=9)


@pytest.mark.parametrize("mode", ["LA", "P"])
def test_a_mask_may_be_grey_or_have_a_palette(mode: str) -> None:
    drawn = Image.new("LA", (50, 40), (0, 0)) if mode == "LA" else Image.new("P", (50, 40), 0)
    options: dict[str, Any] = {"transparency": 0} if mode == "P" else {}
    found = weights(file_of(drawn, **options), plan(Size(50, 40), CANDIDATES, "original"), feather_px=0)

    assert found.getcolors() == [(2000, 255)]


def test_a_placement_that_fills_its_frame_stays_as_it_is() -> None:
    assert place(Size(50, 40), [Size(50, 40)]).box == (0, 0, 50, 40)
