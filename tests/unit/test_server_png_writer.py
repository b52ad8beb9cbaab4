"""The PNG that is written is the picture to the bit, for any size, by another reader and by our own check."""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imageedit_server.api import whole_png
from imageedit_server.api.png_writer import BAND_BYTES, written


def noise(width_px: int, height_px: int, *, seed: int = 1) -> Image.Image:
    return Image.frombytes("RGB", (width_px, height_px), random.Random(seed).randbytes(3 * width_px * height_px))


def read(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data), formats=("PNG",)) as opened:
        opened.load()
        return opened.copy()


@given(width_px=st.integers(1, 70), height_px=st.integers(1, 70), seed=st.integers(0, 9))
def test_a_picture_of_any_size_comes_back_to_the_bit(width_px: int, height_px: int, seed: int) -> None:
    picture = noise(width_px, height_px, seed=seed)
    data = written(picture)

    assert read(data).mode == "RGB"
    assert read(data).tobytes() == picture.tobytes()
    whole_png.check(data)


@pytest.mark.parametrize("size", [(BAND_BYTES // 3 + 1, 2), (1000, BAND_BYTES // 3000), (1000, BAND_BYTES // 3000 + 1)])
def test_a_picture_of_several_bands_has_no_seam(size: tuple[int, int]) -> None:
    picture = noise(*size)

    assert read(written(picture)).tobytes() == picture.tobytes()


def test_a_smooth_picture_is_made_small() -> None:
    picture = Image.linear_gradient("L").resize((512, 512)).convert("RGB")

    assert len(written(picture)) < 3 * 512 * 512 / 50


def test_a_picture_of_another_mode_is_not_written_as_something_else() -> None:
    with pytest.raises(ValueError, match="mode RGBA is not RGB"):
        written(Image.new("RGBA", (2, 2)))
