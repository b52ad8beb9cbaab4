"""Facts about admission, drain and estimate: tables row by row, and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.gate import drain as drains
from imageedit_server.gate.admission import Refusal, Refused, refusal
from imageedit_server.gate.drain import Drain, DrainPhase
from imageedit_server.gate.estimate import (
    REMEMBERED_EDITS,
    EditTimes,
    Load,
    observed,
    retry_after_s,
    typical_edit_s,
    warmed,
)

loads = st.builds(Load, running=st.integers(0, 1), waiting=st.integers(0, 100))
seconds = st.floats(0.01, 500)


def verdict(
    *,
    drain: DrainPhase = DrainPhase.ACCEPTING,
    worker_ready: bool = True,
    running: int = 0,
    waiting: int = 0,
    hard_limit: int = 3,
    edit_s: float = 2.0,
) -> Refused | None:
    return refusal(
        drain=drain,
        worker_ready=worker_ready,
        load=Load(running=running, waiting=waiting),
        hard_limit=hard_limit,
        edit_s=edit_s,
    )


ADMISSION_TABLE = [
    (DrainPhase.REFUSING, True, 1, 0, Refused(reason=Refusal.DRAINING, retry_after_s=1)),
    (DrainPhase.REFUSING, False, 1, 3, Refused(reason=Refusal.DRAINING, retry_after_s=1)),
    (DrainPhase.IDLE, True, 0, 0, Refused(reason=Refusal.DRAINING, retry_after_s=1)),
    (DrainPhase.ACCEPTING, False, 0, 0, Refused(reason=Refusal.NOT_READY, retry_after_s=5)),
    (DrainPhase.PROPAGATING, False, 0, 3, Refused(reason=Refusal.NOT_READY, retry_after_s=5)),
    (DrainPhase.ACCEPTING, True, 0, 0, None),
    (DrainPhase.ACCEPTING, True, 1, 2, None),
    (DrainPhase.PROPAGATING, True, 1, 2, None),
    (DrainPhase.ACCEPTING, True, 0, 3, None),
    (DrainPhase.ACCEPTING, True, 1, 3, Refused(reason=Refusal.QUEUE_FULL, retry_after_s=8)),
    (DrainPhase.PROPAGATING, True, 1, 3, Refused(reason=Refusal.QUEUE_FULL, retry_after_s=8)),
]


@pytest.mark.parametrize(("drain", "worker_ready", "running", "waiting", "expected"), ADMISSION_TABLE)
def test_admission_follows_its_table(
    drain: DrainPhase, worker_ready: bool, running: int, waiting: int, expected: Refused | None
) -> None:
    assert verdict(drain=drain, worker_ready=worker_ready, running=running, waiting=waiting) == expected


def test_a_hard_limit_of_zero_still_lets_one_edit_run() -> None:
    assert verdict(hard_limit=0) is None
    assert verdict(hard_limit=0, running=1) is not None


@given(load=loads, limit=st.integers(0, 100))
def test_what_was_admitted_never_exceeds_one_running_and_the_limit_waiting(load: Load, limit: int) -> None:
    admitted = verdict(running=load.running, waiting=load.waiting, hard_limit=limit) is None

    assert admitted == (load.running + load.waiting + 1 <= 1 + limit)


DRAIN_TABLE = [
    (None, 99.0, 1, DrainPhase.ACCEPTING),
    (10.0, 10.0, 0, DrainPhase.PROPAGATING),
    (10.0, 14.9, 1, DrainPhase.PROPAGATING),
    (10.0, 15.0, 1, DrainPhase.REFUSING),
    (10.0, 15.0, 0, DrainPhase.IDLE),
]


@pytest.mark.parametrize(("started_s", "now_s", "waiting", "expected"), DRAIN_TABLE)
def test_drain_follows_its_table(started_s: float | None, now_s: float, waiting: int, expected: DrainPhase) -> None:
    drain = Drain(propagation_s=5.0, started_s=started_s)

    assert drains.phase(drain, Load(waiting=waiting), now_s) is expected


def test_a_second_start_does_not_lengthen_the_drain() -> None:
    begun = drains.begin(Drain(propagation_s=5.0), 10.0)

    assert drains.begin(begun, 14.0) == begun


@given(load=loads, times=st.lists(st.floats(0, 1000), min_size=2).map(sorted), propagation_s=st.floats(0, 60))
def test_a_drain_never_goes_back(load: Load, times: list[float], propagation_s: float) -> None:
    order = list(DrainPhase)
    drain = drains.begin(Drain(propagation_s=propagation_s), times[0])
    seen = [order.index(drains.phase(drain, load, now_s)) for now_s in times]

    assert seen == sorted(seen)


@given(now_s=st.floats(0, 1000), propagation_s=st.floats(0, 60), later_s=st.floats(0, 100))
def test_the_propagation_that_is_left_ends_when_the_drain_refuses(
    now_s: float, propagation_s: float, later_s: float
) -> None:
    drain = drains.begin(Drain(propagation_s=propagation_s), now_s)
    left_s = drains.propagation_left_s(drain, now_s + later_s)

    assert 0 <= left_s <= propagation_s + 1e-6
    # A step of a millisecond beyond what is left: the sums of floats differ in their last digits.
    assert drains.phase(drain, Load(waiting=1), now_s + later_s + left_s + 0.001) is DrainPhase.REFUSING


def test_nothing_is_left_to_propagate_before_a_drain() -> None:
    assert drains.propagation_left_s(Drain(propagation_s=5.0), 10.0) == 0.0


def test_before_the_first_edit_the_warm_up_speaks() -> None:
    assert typical_edit_s(EditTimes()) == 1.0
    assert typical_edit_s(warmed(EditTimes(), [2.0, 4.0, 30.0])) == 4.0


def test_edits_count_more_than_the_warm_up() -> None:
    assert typical_edit_s(observed(warmed(EditTimes(), [2.0]), 8.0)) == 8.0


def test_one_outlier_does_not_move_the_estimate() -> None:
    times = EditTimes()
    for edit_s in (2.0, 2.0, 120.0, 2.0):
        times = observed(times, edit_s)

    assert typical_edit_s(times) == 2.0


@given(st.lists(seconds, min_size=1, max_size=60))
def test_the_estimate_lies_between_the_remembered_edits(edits_s: list[float]) -> None:
    times = EditTimes()
    for edit_s in edits_s:
        times = observed(times, edit_s)
    remembered = edits_s[-REMEMBERED_EDITS:]

    assert times.recent_s == tuple(remembered)
    assert min(remembered) <= typical_edit_s(times) <= max(remembered)


@pytest.mark.parametrize(
    ("running", "waiting", "edit_s", "expected"), [(0, 0, 9.0, 1), (1, 0, 0.2, 1), (1, 3, 2.0, 8), (1, 2, 0.7, 3)]
)
def test_retry_after_is_the_work_in_front_in_whole_seconds(
    running: int, waiting: int, edit_s: float, expected: int
) -> None:
    assert retry_after_s(Load(running=running, waiting=waiting), edit_s) == expected


@given(loads, seconds)
def test_more_waiting_never_shortens_retry_after(load: Load, edit_s: float) -> None:
    longer = Load(running=load.running, waiting=load.waiting + 1)

    assert retry_after_s(longer, edit_s) >= retry_after_s(load, edit_s) >= 1
