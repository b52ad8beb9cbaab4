"""The pure part of the server's benchmark: when a target is met, and when an overload is over."""

from __future__ import annotations

import pytest

from bench.figures import AT_LEAST, AT_MOST, Figure, median
from bench.server.overload import recovery_s
from bench.server.patience import Wanted


@pytest.mark.parametrize(
    ("value", "target", "passed"),
    [
        (0.96, (AT_LEAST, 0.95), True),
        (0.95, (AT_LEAST, 0.95), True),
        (0.94, (AT_LEAST, 0.95), False),
        (50.0, (AT_MOST, 50.0), True),
        (51.0, (AT_MOST, 50.0), False),
        (None, (AT_MOST, 60.0), False),
        (None, None, True),
        (1.0, None, True),
    ],
)
def test_a_figure_is_held_to_its_target(value: float | None, target: tuple[str, float] | None, passed: bool) -> None:
    figure = Figure(name="f", value=value, how="-", target=target)
    assert figure.passed is passed
    assert ("MISSED" in str(figure)) is not passed


def test_a_figure_of_several_runs_is_their_median() -> None:
    figure = median("f", [3.0, 1.0, 2.0], how="-")
    assert (figure.value, figure.repeats) == (2.0, [3.0, 1.0, 2.0])


def user(began_s: float, *, answered: bool) -> Wanted:
    return Wanted(began_s=began_s, ended_s=began_s + 1, answered=answered, tries=1)


@pytest.mark.parametrize(
    ("failed_at_s", "recovered_after_s"),
    [
        ([], 0.0),
        ([90.0], 0.0),  # before the overload ended
        ([103.0], 3.0),
        ([103.0, 109.0], 9.0),
        ([115.0], 0.0),  # ten good seconds were before it
        ([100.0 + 9 * number for number in range(7)], None),
    ],
)
def test_an_overload_is_over_when_everybody_is_answered_for_ten_seconds(
    failed_at_s: list[float], recovered_after_s: float | None
) -> None:
    seen = [user(float(at_s), answered=True) for at_s in range(80, 160)]
    seen += [user(at_s, answered=False) for at_s in failed_at_s]
    assert recovery_s(seen, 100.0, 160.0) == recovered_after_s
