"""The cluster's time is the apiserver's, whatever the clock of this machine says."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from imageedit_operator.kube.clock import ClusterClock

REAL = 1_796_007_600.0
DAY_S = 86_400.0


class Machine:
    """A machine whose clock may be wrong, and whose stopwatch a test moves."""

    def __init__(self, *, wrong_by_s: float = 0.0) -> None:
        self.passed_s = 0.0
        self.wrong_by_s = wrong_by_s
        self.clock = ClusterClock(wall=lambda: REAL + self.passed_s + self.wrong_by_s, stopwatch=lambda: self.passed_s)

    def error_s(self) -> float:
        """How far the cluster's clock is off."""
        return self.clock.now() - (REAL + self.passed_s)

    def ask(self, *, takes_s: float = 0.0, written_after_s: float = 0.0, skew_s: float = 0.0) -> None:
        """A request that is answered after a time."""
        sent_s = self.passed_s
        date = formatdate(REAL + sent_s + written_after_s + skew_s, usegmt=True)
        self.passed_s += takes_s
        self.clock.heard({"Date": date}, sent_s)


@pytest.mark.parametrize("wrong_by_s", [DAY_S, -3600.0, 5.0])
def test_a_clock_that_is_wrong_from_the_start_is_corrected_by_the_first_answer(wrong_by_s: float) -> None:
    machine = Machine(wrong_by_s=wrong_by_s)
    machine.ask(takes_s=0.4)
    assert abs(machine.error_s()) <= 1.0


@pytest.mark.parametrize("wrong_by_s", [DAY_S, -3600.0])
def test_a_clock_that_is_set_later_changes_nothing(wrong_by_s: float) -> None:
    machine = Machine()
    machine.wrong_by_s = wrong_by_s
    assert machine.error_s() == 0.0
    machine.ask()
    assert machine.error_s() == 0.0


@pytest.mark.parametrize("written_after_s", [0.0, 29.0])
def test_an_answer_that_takes_long_moves_nothing(written_after_s: float) -> None:
    machine = Machine()
    machine.ask(takes_s=30.0, written_after_s=written_after_s)
    assert machine.error_s() == 0.0


def test_apiservers_that_differ_a_little_do_not_make_the_time_jump() -> None:
    machine = Machine()
    machine.ask(skew_s=1.5)
    assert machine.error_s() == 0.0


@pytest.mark.parametrize("headers", [{}, {"Date": ""}, {"Date": "yesterday"}])
def test_an_answer_without_a_date_tells_nothing(headers: dict[str, str]) -> None:
    machine = Machine(wrong_by_s=DAY_S)
    machine.clock.heard(headers, 0.0)
    assert machine.error_s() == DAY_S
