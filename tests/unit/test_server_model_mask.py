"""Facts about the mask that goes to a model which takes one."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from imageedit_server.api.geometry import Plan, SizeWish, plan
from imageedit_server.api.masks import for_model, weights
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size

CANDIDATES = (Size(64, 64), Size(96, 64))


def mask(width_px: int, height_px: int, box: tuple[int, int, int, int]) -> bytes:
    """Opaque, but for a transparent box, whose last column and row belong to it."""
    drawn = Image.new("RGBA", (width_px, height_px), (0, 0, 0, 255))
    ImageDraw.Draw(drawn).rectangle(box, fill=(0, 0, 0, 0))
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return file.getvalue()


def seen(sent: bytes, planned: Plan) -> Image.Image:
    candidate = planned.placement.candidate
    return Image.frombytes("L", (candidate.width_px, candidate.height_px), for_model(sent, planned))


def test_the_mask_lies_where_the_picture_lies() -> None:
    planned = plan(Size(50, 40), CANDIDATES, "auto")  # 80x64 in the middle of 96x64
    assert planned.placement.box == (8, 0, 88, 64)

    assert seen(mask(50, 40, (10, 10, 19, 19)), planned).getbbox() == (24, 16, 40, 32)


def test_where_the_picture_is_padded_by_its_edges_the_mask_is_too() -> None:
    planned = plan(Size(50, 40), CANDIDATES, "auto")

    assert seen(mask(50, 40, (0, 10, 9, 19)), planned).getbbox() == (0, 16, 24, 32)


def test_what_another_shape_adds_around_the_picture_is_painted_by_the_model() -> None:
    made = seen(mask(40, 40, (0, 0, 3, 3)), plan(Size(40, 40), CANDIDATES, Size(96, 64)))  # 64x64 in the middle

    assert made.getpixel((2, 60)) == 255
    assert made.getpixel((94, 60)) == 255
    assert made.getpixel((48, 32)) == 0


@given(
    st.integers(20, 200),
    st.integers(20, 200),
    st.integers(0, 199),
    st.integers(0, 199),
    st.sampled_from(["auto", "original"]),
)
def test_every_pixel_of_the_result_that_may_change_was_painted_by_the_model(
    width_px: int, height_px: int, x: int, y: int, size: SizeWish
) -> None:
    planned = plan(Size(width_px, height_px), CANDIDATES, size)
    sent = mask(width_px, height_px, (x % width_px, y % height_px, x % width_px + 1, y % height_px + 1))
    try:
        changed = weights(sent, planned, feather_px=0)
    except InvalidInput:
        return  # too small to be seen in the result
    placement = planned.placement
    working = seen(sent, planned).crop(placement.box).point([0] + [255] * 255)
    box, grown = changed.getbbox(), working.getbbox()
    assert box is not None
    assert grown is not None
    # At most the rounding of one pixel of the coarser of both frames.
    across, down = changed.width / placement.working.width_px, changed.height / placement.working.height_px
    slack = (1 + across, 1 + down)
    assert grown[0] * across <= box[0] + slack[0]
    assert grown[1] * down <= box[1] + slack[1]
    assert grown[2] * across >= box[2] - slack[0]
    assert grown[3] * down >= box[3] - slack[1]


def test_a_mask_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(InvalidInput, match="10x10 pixels and the picture, upright, 50x40"):
        for_model(mask(10, 10, (0, 0, 3, 3)), plan(Size(50, 40), CANDIDATES, "auto"))
