"""Facts about admission, drain and estimate: tables row by row, and properties."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.gate import drain as drains
from imageedit_server.gate.admission import (
    Ask,
    Limits,
    Refusal,
    Refused,
    Work,
    auto_max_wait_s,
    refusal,
    too_late,
)
from imageedit_server.gate.deadline import NotADeadline, deadline_left_s, read_timeout_s
from imageedit_server.gate.drain import Drain, DrainPhase
from imageedit_server.gate.estimate import Load, ahead_s, remaining_s
from imageedit_server.gate.steps import dynamic_steps

loads = st.builds(Load, running=st.integers(0, 1), waiting=st.integers(0, 100))
seconds = st.floats(0.01, 500)

DRAINING = Refused(reason=Refusal.DRAINING, retry_after_s=1)
NOT_READY = Refused(reason=Refusal.NOT_READY, retry_after_s=5)


def full(retry_after_s: int, should_retry: bool | None = None) -> Refused:
    return Refused(reason=Refusal.QUEUE_FULL, retry_after_s=retry_after_s, should_retry=should_retry)


def too_long(retry_after_s: int, should_retry: bool | None = None) -> Refused:
    return Refused(reason=Refusal.WAIT_TOO_LONG, retry_after_s=retry_after_s, should_retry=should_retry)


def verdict(
    *,
    drain: DrainPhase = DrainPhase.ACCEPTING,
    worker_ready: bool = True,
    running: int = 0,
    waiting: int = 0,
    ahead_s: float | None = None,
    hard_limit: int = 3,
    max_wait_s: float | None = None,
    own_s: float = 2.0,
    deadline_s: float | None = None,
) -> Refused | None:
    """Each edit that is in takes two seconds, unless said otherwise."""
    return refusal(
        drain=drain,
        worker_ready=worker_ready,
        work=Work(
            load=Load(running=running, waiting=waiting),
            ahead_s=2.0 * (running + waiting) if ahead_s is None else ahead_s,
        ),
        limits=Limits(hard_limit=hard_limit, max_wait_s=max_wait_s),
        ask=Ask(own_s=own_s, deadline_s=deadline_s),
    )


ADMISSION_TABLE = [
    (DrainPhase.REFUSING, True, 1, 0, DRAINING),
    (DrainPhase.REFUSING, False, 1, 3, DRAINING),
    (DrainPhase.IDLE, True, 0, 0, DRAINING),
    (DrainPhase.ACCEPTING, False, 0, 0, NOT_READY),
    (DrainPhase.PROPAGATING, False, 0, 3, NOT_READY),
    (DrainPhase.ACCEPTING, True, 0, 0, None),
    (DrainPhase.ACCEPTING, True, 1, 2, None),
    (DrainPhase.PROPAGATING, True, 1, 2, None),
    (DrainPhase.ACCEPTING, True, 0, 3, None),
    (DrainPhase.ACCEPTING, True, 1, 3, full(8)),
    (DrainPhase.PROPAGATING, True, 1, 3, full(8)),
]


@pytest.mark.parametrize(("drain", "worker_ready", "running", "waiting", "expected"), ADMISSION_TABLE)
def test_admission_follows_its_table(
    drain: DrainPhase, worker_ready: bool, running: int, waiting: int, expected: Refused | None
) -> None:
    assert verdict(drain=drain, worker_ready=worker_ready, running=running, waiting=waiting) == expected


TIME_TABLE = [
    # edits in, seconds before it, longest wait, seconds of its own, seconds that its client waits
    (2, 20.0, 20.0, 2.0, None, None),
    (2, 20.5, 20.0, 2.0, None, too_long(1)),
    (2, 50.0, 20.0, 2.0, None, too_long(30)),
    (2, 150.0, 20.0, 2.0, None, too_long(130, should_retry=False)),
    (2, 150.0, None, 2.0, None, None),
    (2, 20.0, None, 10.0, 31.5, None),
    (2, 20.0, None, 10.0, 31.4, too_long(1)),
    (2, 20.0, None, 10.0, 11.5, too_long(20)),
    (2, 200.0, None, 10.0, 60.0, too_long(161, should_retry=False)),
    (0, 0.0, None, 10.0, 5.0, None),
    (0, 0.0, None, 10.0, 4.9, too_long(10, should_retry=False)),
    (1, 1.0, None, 10.0, 4.9, too_long(10, should_retry=False)),
    (2, 50.0, 20.0, 10.0, 1.0, too_long(30)),
    (1, 1.0, None, 10.0, -1.0, too_long(10, should_retry=False)),
]


@pytest.mark.parametrize(("edits", "ahead_s", "max_wait_s", "own_s", "deadline_s", "expected"), TIME_TABLE)
def test_admission_by_time_follows_its_table(
    *,
    edits: int,
    ahead_s: float,
    max_wait_s: float | None,
    own_s: float,
    deadline_s: float | None,
    expected: Refused | None,
) -> None:
    made = verdict(
        running=min(edits, 1),
        waiting=max(0, edits - 1),
        ahead_s=ahead_s,
        max_wait_s=max_wait_s,
        own_s=own_s,
        deadline_s=deadline_s,
    )

    assert made == expected


@given(load=loads, ahead_s=seconds, max_wait_s=st.none() | seconds, own_s=seconds, deadline_s=st.none() | seconds)
def test_after_retry_after_the_wait_fits_if_nobody_else_came(
    load: Load, ahead_s: float, max_wait_s: float | None, own_s: float, deadline_s: float | None
) -> None:
    def ask(ahead_now_s: float, load_now: Load) -> Refused | None:
        return verdict(
            running=load_now.running,
            waiting=load_now.waiting,
            ahead_s=ahead_now_s,
            max_wait_s=max_wait_s,
            own_s=own_s,
            deadline_s=deadline_s,
            hard_limit=1000,
        )

    refused = ask(ahead_s, load)
    if refused is not None and refused.should_retry is None:
        left_s = max(0.0, ahead_s - refused.retry_after_s)
        again = ask(left_s, Load() if left_s == 0 else load)

        # The wait that was too long is over; the deadline may still be in the way, and says so now.
        assert again is None or (deadline_s is not None and max_wait_s is not None and ahead_s > max_wait_s)


@pytest.mark.parametrize("seconds_left", [120.0, 120.5])
def test_a_client_is_told_not_to_come_back_by_itself_when_it_would_not_wait_that_long(seconds_left: float) -> None:
    refused = verdict(running=1, waiting=3, ahead_s=seconds_left)

    assert refused == full(120 if seconds_left == 120 else 121, should_retry=None if seconds_left == 120 else False)


def test_the_longest_wait_is_ten_edits_at_the_first_size_unless_set() -> None:
    assert auto_max_wait_s(2.2) == pytest.approx(22.0)


@pytest.mark.parametrize(
    ("left_s", "own_s", "others_wait", "dropped"),
    [
        (0.0, 1.0, False, True),
        (-1.0, 0.0, True, True),
        (10.0, 10.5, True, True),
        (10.0, 10.0, True, False),
        (10.0, 10.5, False, False),
        (10.0, 20.5, False, True),
        (math.inf, 20.0, True, False),
    ],
)
def test_an_edit_is_dropped_at_its_turn_by_its_table(
    left_s: float, own_s: float, others_wait: bool, dropped: bool
) -> None:
    assert too_late(left_s=left_s, own_s=own_s, others_wait=others_wait) is dropped


@given(own_s=seconds, deadline_s=st.none() | seconds, waiting=st.integers(0, 3), ahead_s=seconds)
def test_what_was_admitted_and_waited_as_long_as_expected_is_not_dropped(
    own_s: float, deadline_s: float | None, waiting: int, ahead_s: float
) -> None:
    admitted = verdict(running=1, waiting=waiting, ahead_s=ahead_s, own_s=own_s, deadline_s=deadline_s, hard_limit=9)
    if admitted is None and deadline_s is not None:
        assert not too_late(left_s=deadline_s - ahead_s, own_s=own_s, others_wait=True)


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


@pytest.mark.parametrize(
    ("expected_s", "elapsed_s", "left_s"), [(10.0, 0.0, 10.0), (10.0, 4.0, 6.0), (10.0, 9.9, 0.5), (10.0, 99.0, 0.5)]
)
def test_an_edit_that_takes_longer_than_expected_is_still_not_over(
    expected_s: float, elapsed_s: float, left_s: float
) -> None:
    assert remaining_s(expected_s=expected_s, elapsed_s=elapsed_s) == pytest.approx(left_s)


def test_the_work_ahead_is_what_is_left_of_the_running_edit_and_all_that_wait() -> None:
    assert ahead_s(running_left_s=1.5, waiting_s=[2.0, 30.0]) == 33.5


STEPS_TABLE = [(0, 16, 24, 24), (1, 16, 24, 20), (2, 16, 24, 16), (50, 16, 24, 16), (0, 16, 16, 16), (1, 4, 7, 5)]


@pytest.mark.parametrize(("waiting", "standard", "high", "steps"), STEPS_TABLE)
def test_dynamic_steps_follow_their_table(waiting: int, standard: int, high: int, steps: int) -> None:
    assert dynamic_steps(waiting=waiting, standard=standard, high=high) == steps


@given(waiting=st.integers(0, 60), standard=st.integers(2, 50), high=st.integers(2, 50))
def test_dynamic_steps_stay_between_standard_and_high_and_fall_with_the_queue(
    waiting: int, standard: int, high: int
) -> None:
    steps = dynamic_steps(waiting=waiting, standard=standard, high=high)

    assert standard <= steps <= max(standard, high)
    assert steps >= dynamic_steps(waiting=waiting + 1, standard=standard, high=high)


NOW_S = 1_900_000_000.0


@pytest.mark.parametrize(
    ("text", "left_s"),
    [
        ("30", 30.0),
        (" 0.5 ", 0.5),
        ("0", 0.0),
        ("1900000012.5", 12.5),
        ("1899999990", -10.0),
        ("2030-03-17T17:46:50Z", 10.0),
        ("2030-03-17T18:46:50+01:00", 10.0),
    ],
)
def test_a_deadline_is_read_by_its_table(text: str, left_s: float) -> None:
    assert deadline_left_s(text, wall_s=NOW_S) == pytest.approx(left_s)


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-5", "2030-03-17T17:46:50", "1e400", "Z"])
def test_what_is_no_deadline_is_refused(text: str) -> None:
    with pytest.raises(NotADeadline):
        deadline_left_s(text, wall_s=NOW_S)


@given(st.text(max_size=40))
def test_any_text_is_a_deadline_or_none(text: str) -> None:
    with contextlib.suppress(NotADeadline):
        assert math.isfinite(deadline_left_s(text, wall_s=NOW_S))


@pytest.mark.parametrize(
    ("text", "timeout_s"), [("600", 600.0), ("0.5", 0.5), ("", None), ("NOT_GIVEN", None), ("-1", None), ("nan", None)]
)
def test_the_openai_clients_timeout_is_taken_where_it_says_one(text: str, timeout_s: float | None) -> None:
    assert read_timeout_s(text) == timeout_s
