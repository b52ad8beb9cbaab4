"""The drain of a pod as a state machine over time: accept, propagate, refuse, idle. Pure: the time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from imageedit_server.gate.estimate import Load


class DrainPhase(Enum):
    """Where the drain stands."""

    ACCEPTING = "accepting"
    PROPAGATING = "propagating"
    REFUSING = "refusing"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A drain that has begun at `started_s` (monotonic seconds), or has not begun.

    `propagation_s` is the time in which requests are still accepted, because endpoints change later than the pod knows.
    """

    propagation_s: float
    started_s: float | None = None


def begin(drain: Drain, now_s: float) -> Drain:
    """Start the drain; a second start changes nothing."""
    return drain if drain.started_s is not None else replace(drain, started_s=now_s)


# | begun | seconds since    | running + waiting | phase       |
# | ----- | ---------------- | ----------------- | ----------- |
# | no    | any              | any               | accepting   |
# | yes   | < propagation    | any               | propagating |
# | yes   | >= propagation   | > 0               | refusing    |
# | yes   | >= propagation   | 0                 | idle        |
def phase(drain: Drain, load: Load, now_s: float) -> DrainPhase:
    """Where the drain stands at `now_s`."""
    if drain.started_s is None:
        return DrainPhase.ACCEPTING
    if now_s - drain.started_s < drain.propagation_s:
        return DrainPhase.PROPAGATING
    return DrainPhase.REFUSING if load.running + load.waiting else DrainPhase.IDLE


def propagation_left_s(drain: Drain, now_s: float) -> float:
    """Seconds until the drain refuses; 0 when it has not begun or already does."""
    if drain.started_s is None:
        return 0.0
    return max(0.0, drain.started_s + drain.propagation_s - now_s)
