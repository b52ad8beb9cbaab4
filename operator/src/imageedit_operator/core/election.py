"""Which of several operators acts: the decision about the Lease, from what was seen of it and one's own clock.

Another machine wrote the times in the Lease, so they decide nothing. What counts is for how long
the Lease has not changed, by a monotonic clock of one's own: clocks may differ, and may jump.

The holder stops acting `renew_deadline_s` after it sent its last good renewal. Nobody else saw that
renewal earlier than it was sent, and everybody else waits `lease_s` from there: the gap between the
two is how long a request of the old holder may still be on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LONGEST_LEASE_S = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """How patient everybody is; the rule lease > renew deadline > retry keeps two from acting at once."""

    lease_s: float = 15.0
    """A Lease that has not changed for this long is free."""
    renew_deadline_s: float = 10.0
    """The holder stops acting when its last good renewal is this old."""
    retry_s: float = 2.0
    """Time between two renewals; who waits looks twice as often."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRecord:
    """The Lease as it is stored."""

    holder: str
    """Empty = released."""
    lease_s: float
    version: str
    """Differs after every write."""
    transitions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """A record, and since when it has been seen unchanged, by our monotonic clock."""

    record: LeaseRecord
    since_s: float


class Step(Enum):
    """What a candidate does next."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def sight(before: Sighting | None, record: LeaseRecord, now_s: float) -> Sighting:
    """What is known after another look at the Lease."""
    if before is not None and before.record.version == record.version:
        return before
    return Sighting(record=record, since_s=now_s)


# The first row that fits decides.
# | # | Lease   | holder   | unchanged for         | step   |
# | 1 | absent  |          |                       | CREATE |
# | 2 | present | me       | any                   | RENEW  |
# | 3 | present | nobody   | any                   | TAKE   |
# | 4 | present | another  | its duration or more  | TAKE   |
# | 5 | present | another  | less                  | WAIT   |
def step(seen: Sighting | None, *, me: str, now_s: float) -> Step:
    """The next step of a candidate; every write has the seen version as its precondition."""
    if seen is None:
        return Step.CREATE
    if seen.record.holder == me:
        return Step.RENEW
    if not seen.record.holder or expires_in_s(seen, now_s) <= 0:
        return Step.TAKE
    return Step.WAIT


def expires_in_s(seen: Sighting, now_s: float) -> float:
    """Seconds until another candidate may take the Lease, when it does not change; what a stranger wrote is bounded."""
    return seen.since_s + min(LONGEST_LEASE_S, max(0.0, seen.record.lease_s)) - now_s


def acts_for_s(renewed_s: float | None, timing: Timing, now_s: float) -> float:
    """Seconds for which the holder may still act; `renewed_s` is when it sent its last good renewal, None = never."""
    if renewed_s is None:
        return 0.0
    return max(0.0, renewed_s + timing.renew_deadline_s - now_s)
