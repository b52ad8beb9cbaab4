"""Facts about the seconds that an edit is expected to take."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.gate.cost import (
    CostModel,
    EditShape,
    Measured,
    corrected,
    error_ratio,
    estimate_s,
    fitted,
)

SQUARE = EditShape(width_px=768, height_px=768, steps=16)
SIZES = ((512, 512), (768, 576), (768, 768), (1024, 1024))

shapes = st.builds(
    EditShape,
    width_px=st.integers(1, 64).map(lambda n: 32 * n),
    height_px=st.integers(1, 64).map(lambda n: 32 * n),
    steps=st.integers(1, 100),
    cfg=st.booleans(),
    pictures=st.integers(0, 4),
)
seconds = st.floats(0.01, 1000)
measurements = st.builds(Measured, shape=shapes, seconds=seconds)
fits = st.lists(measurements, max_size=8).map(fitted)


def card_s(shape: EditShape, *, a: float = 1.5, d: float = 0.02, b: float = 0.2, c: float = 0.012) -> float:
    """A card that keeps to the formula."""
    return a + shape.runs * (d + b * shape.tokens + c * shape.tokens**2)


def test_one_warmed_size_gives_its_own_seconds_and_grows_with_the_steps() -> None:
    model = fitted([Measured(shape=SQUARE, seconds=20.0)])

    assert estimate_s(model, SQUARE) == pytest.approx(20.0)
    assert estimate_s(model, replace(SQUARE, steps=24)) == pytest.approx(29.5)
    assert estimate_s(model, replace(SQUARE, cfg=True)) == pytest.approx(39.0)


def test_sizes_that_all_take_the_same_time_still_grow_with_the_steps() -> None:
    model = fitted([Measured(shape=EditShape(width_px=w, height_px=h, steps=16), seconds=2.0) for w, h in SIZES])

    assert estimate_s(model, SQUARE) == pytest.approx(2.0, rel=0.05)
    assert estimate_s(model, replace(SQUARE, steps=32)) > 3.5


def test_four_warmed_sizes_give_the_seconds_of_a_fifth() -> None:
    warmed = [EditShape(width_px=w, height_px=h, steps=16) for w, h in SIZES]
    model = fitted([Measured(shape=shape, seconds=card_s(shape)) for shape in warmed])
    for shape in [*warmed, EditShape(width_px=640, height_px=640, steps=16), replace(SQUARE, steps=24)]:
        assert error_ratio(estimate_s(model, shape), card_s(shape)) < 0.06


def test_guidance_and_references_follow_from_sizes_alone_within_a_fifth() -> None:
    model = fitted(
        [
            Measured(shape=shape, seconds=card_s(shape))
            for shape in (EditShape(width_px=w, height_px=h, steps=16) for w, h in SIZES)
        ]
    )
    for shape in (replace(SQUARE, cfg=True), replace(SQUARE, pictures=3)):
        assert error_ratio(estimate_s(model, shape), card_s(shape)) < 0.2


@given(fits, shapes)
def test_an_edit_always_costs_something(model: CostModel, shape: EditShape) -> None:
    assert 0 < estimate_s(model, shape) < math.inf


@given(fits, shapes, st.integers(0, 3))
def test_more_work_never_looks_cheaper(model: CostModel, shape: EditShape, what: int) -> None:
    more = (
        replace(shape, steps=shape.steps + 7),
        replace(shape, width_px=shape.width_px + 32),
        replace(shape, cfg=True),
        replace(shape, pictures=shape.pictures + 1),
    )[what]

    assert estimate_s(model, more) >= estimate_s(model, shape) * (1 - 1e-9)


@given(fits, st.lists(measurements, max_size=20), shapes)
def test_corrections_never_make_more_steps_cheaper(model: CostModel, later: list[Measured], shape: EditShape) -> None:
    for one in later:
        model = corrected(model, one)

    assert 0 < estimate_s(model, shape) <= estimate_s(model, replace(shape, steps=shape.steps + 1)) * (1 + 1e-9)


@given(fits, shapes, seconds)
def test_edits_of_one_kind_teach_their_true_seconds(model: CostModel, shape: EditShape, true_s: float) -> None:
    for _ in range(120):
        model = corrected(model, Measured(shape=shape, seconds=true_s))

    assert estimate_s(model, shape) == pytest.approx(true_s, rel=0.01)


def test_one_edit_that_was_held_up_moves_the_estimate_by_less_than_a_third() -> None:
    model = fitted([Measured(shape=SQUARE, seconds=20.0)])
    after = corrected(model, Measured(shape=SQUARE, seconds=2000.0))

    assert 20.0 < estimate_s(after, SQUARE) < 26.0


def test_a_kind_that_never_ran_takes_over_part_of_what_others_taught() -> None:
    model = fitted([Measured(shape=SQUARE, seconds=20.0)])
    for _ in range(40):
        model = corrected(model, Measured(shape=SQUARE, seconds=30.0))
    other = replace(SQUARE, cfg=True)

    assert estimate_s(fitted([Measured(shape=SQUARE, seconds=20.0)]), other) < estimate_s(model, other)


def test_before_any_measurement_there_is_a_guess() -> None:
    assert estimate_s(CostModel(), SQUARE) == 1.0
    assert fitted([Measured(shape=SQUARE, seconds=0.0)]) == CostModel()


@pytest.mark.parametrize(("expected_s", "real_s", "ratio"), [(2.0, 2.0, 0.0), (3.0, 2.0, 0.5), (1.0, 2.0, 0.5)])
def test_the_error_is_a_part_of_the_real_seconds(expected_s: float, real_s: float, ratio: float) -> None:
    assert error_ratio(expected_s, real_s) == ratio
