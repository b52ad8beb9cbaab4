"""Who acts: the table of steps, and that two can never act at once, whatever the clocks do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core.election import (
    LONGEST_LEASE_S,
    LeaseRecord,
    Sighting,
    Step,
    Timing,
    acts_for_s,
    expires_in_s,
    sight,
    step,
)

TIMING = Timing()


def record(holder: str = "other", *, lease_s: float = 15.0, version: str = "1") -> LeaseRecord:
    """A stored Lease."""
    return LeaseRecord(holder=holder, lease_s=lease_s, version=version, transitions=3)


def seen(holder: str = "other", *, since_s: float = 100.0) -> Sighting:
    """A Lease that has not changed since then."""
    return Sighting(record=record(holder), since_s=since_s)


@pytest.mark.parametrize(
    ("lease", "now_s", "wanted"),
    [
        (None, 0.0, Step.CREATE),
        (seen("me"), 100.0, Step.RENEW),
        (seen("me"), 900.0, Step.RENEW),
        (seen(""), 100.0, Step.TAKE),
        (seen("other"), 115.0, Step.TAKE),
        (seen("other"), 114.9, Step.WAIT),
        (seen("other"), 100.0, Step.WAIT),
    ],
)
def test_the_step_of_a_candidate(lease: Sighting | None, now_s: float, wanted: Step) -> None:
    assert step(lease, me="me", now_s=now_s) is wanted


def test_every_write_of_the_holder_starts_the_wait_anew() -> None:
    first = sight(None, record(version="1"), 100.0)
    again = sight(first, record(version="1"), 107.0)
    renewed = sight(again, record(version="2"), 109.0)
    assert [item.since_s for item in (first, again, renewed)] == [100.0, 100.0, 109.0]


@pytest.mark.parametrize(("lease_s", "expires_s"), [(-5.0, 0.0), (1e9, LONGEST_LEASE_S)])
def test_a_strange_duration_is_bounded(lease_s: float, expires_s: float) -> None:
    assert expires_in_s(Sighting(record=record(lease_s=lease_s), since_s=100.0), 100.0) == expires_s


@pytest.mark.parametrize(
    ("renewed_s", "now_s", "left_s"), [(None, 5.0, 0.0), (100.0, 100.0, 10.0), (100.0, 109.0, 1.0), (100.0, 200.0, 0.0)]
)
def test_a_holder_acts_until_the_deadline_of_its_last_renewal(
    renewed_s: float | None, now_s: float, left_s: float
) -> None:
    assert acts_for_s(renewed_s, TIMING, now_s) == left_s


times = st.floats(min_value=0, max_value=1e6)


@given(sent_s=times, stored_after_s=st.floats(0, 100), seen_after_s=st.floats(0, 100), offset_s=st.floats(-1e6, 1e6))
def test_nobody_may_take_the_lease_while_its_holder_may_act(
    sent_s: float, stored_after_s: float, seen_after_s: float, offset_s: float
) -> None:
    """The other one's clock is `offset_s` away, and it sees the renewal only after it was stored."""
    sighted_s = sent_s + stored_after_s + seen_after_s + offset_s
    theirs = Sighting(record=record("me", lease_s=TIMING.lease_s), since_s=sighted_s)
    taken_s = sighted_s + max(0.0, expires_in_s(theirs, sighted_s)) - offset_s  # the earliest, by the holder's clock
    assert step(theirs, me="other", now_s=taken_s + offset_s - 0.01) is Step.WAIT
    assert acts_for_s(sent_s, TIMING, taken_s) == 0.0
