"""Facts about the choice of a candidate size and the place of the picture in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.api.geometry import closest, place
from imageedit_server.worker.shapes import Size

sizes = st.builds(Size, st.integers(1, 20_000), st.integers(1, 20_000))
sides = st.integers(1, 32).map(lambda units: 32 * units)
candidate_lists = st.lists(st.builds(Size, sides, sides), min_size=1, max_size=8)

CANDIDATES = (Size(768, 768), Size(768, 576), Size(576, 768), Size(512, 512))


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (Size(4000, 3000), Size(768, 576)),
        (Size(3000, 4000), Size(576, 768)),
        (Size(1920, 1080), Size(768, 576)),
        (Size(2000, 2000), Size(768, 768)),
        (Size(400, 400), Size(512, 512)),
        (Size(640, 640), Size(768, 768)),
        (Size(10_000, 1), Size(768, 576)),
    ],
)
def test_the_closest_shape_wins_and_among_equals_the_closest_area(picture: Size, expected: Size) -> None:
    assert closest(picture, CANDIDATES) == expected


def test_the_same_ratio_at_another_size_is_equal_not_just_near() -> None:
    # 1024x768 is 4:3 like both; only the area may decide, however the logarithms round.
    assert closest(Size(1024, 768), (Size(384, 288), Size(768, 576))) == Size(768, 576)


def test_a_wide_picture_lies_in_the_middle_between_two_bands() -> None:
    placement = place(Size(200, 100), [Size(128, 128)])

    assert placement.working == Size(128, 64)
    assert placement.box == (0, 32, 128, 96)


def test_a_small_picture_is_enlarged_to_touch_the_candidate() -> None:
    assert place(Size(10, 10), [Size(128, 128)]).working == Size(128, 128)


def test_an_extreme_shape_keeps_at_least_one_pixel() -> None:
    assert place(Size(20_000, 1), [Size(128, 128)]).working == Size(128, 1)


@given(sizes, candidate_lists)
def test_the_picture_lies_inside_and_touches_the_candidate(picture: Size, candidates: list[Size]) -> None:
    placement = place(picture, candidates)
    left, top, right, bottom = placement.box
    candidate = placement.candidate

    assert candidate in candidates
    assert 0 <= left < right <= candidate.width_px
    assert 0 <= top < bottom <= candidate.height_px
    assert placement.working.width_px == candidate.width_px or placement.working.height_px == candidate.height_px


@given(sizes, candidate_lists)
def test_the_shape_changes_by_at_most_half_a_pixel(picture: Size, candidates: list[Size]) -> None:
    placement = place(picture, candidates)
    working, candidate = placement.working, placement.candidate
    scale = min(candidate.width_px / picture.width_px, candidate.height_px / picture.height_px)

    assert working.width_px == 1 or abs(working.width_px - picture.width_px * scale) <= 0.501
    assert working.height_px == 1 or abs(working.height_px - picture.height_px * scale) <= 0.501
