"""May one more edit in? Pure: the work that is in, and the state of worker and drain, are arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from imageedit_server.gate.drain import DrainPhase
from imageedit_server.gate.estimate import Load

# One edit takes seconds to minutes, and a client that hears 503 should find another pod at once.
DRAINING_RETRY_AFTER_S = 1
# Loading and warming take tens of seconds to minutes, and a restart about as long.
# Often enough not to idle, rarely enough not to hammer.
NOT_READY_RETRY_AFTER_S = 5
# `--max-wait auto`, in edits at the first size.
AUTO_MAX_WAIT_EDITS = 10
# The OpenAI clients ignore a longer Retry-After and come back at once, unless they are told not to.
LONGEST_RETRY_AFTER_S = 120
# An idle card loses nothing by trying, and learns; an edit that takes twice as long as its client waits is hopeless.
HOPELESS_FACTOR = 2.0
# Estimates are off by a few percent, and after the card the picture is encoded and sent.
MARGIN = 1.05


class Refusal(Enum):
    """Why an edit is not admitted; the value is the error code and the metric's label."""

    DRAINING = "draining"
    NOT_READY = "not_ready"
    QUEUE_FULL = "queue_full"
    WAIT_TOO_LONG = "wait_too_long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not admitted; `retry_after_s` is when another try makes sense, and `should_retry` is False where a client
    should not do so by itself."""

    reason: Refusal
    retry_after_s: int
    should_retry: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one more edit would need: its own seconds, and the seconds that its client still waits (None: any)."""

    own_s: float = 0.0
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is in: edits, and the seconds until the card is through with them; `jobs` of them are no requests, and are
    `jobs_s` of the seconds."""

    load: Load
    ahead_s: float
    jobs: int = 0
    jobs_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Most edits that wait, and the longest estimated wait for the card; None is no limit."""

    hard_limit: int
    max_wait_s: float | None = None


# The first row that holds decides; "in" is running + waiting, "open" is accepting or propagating, ahead + own is taken
# with a margin of a twentieth. For hard limit and max wait jobs do not count: they have a place of their own, and jobs
# without a pause would keep every request out where such a limit is less than one job.
#
# | drain         | worker ready | in               | time                   | verdict       | retry after            |
# | ------------- | ------------ | ---------------- | ---------------------- | ------------- | ---------------------- |
# | refusing, idle| any          | any              | any                    | draining      | 1 s                    |
# | open          | no           | any              | any                    | not_ready     | 5 s                    |
# | open          | yes          | >= 1 + hardLimit | any                    | queue_full    | the work that is in    |
# | open          | yes          | less             | ahead > max wait       | wait_too_long | ahead - max wait       |
# | open          | yes          | less             | own > 2 * deadline     | wait_too_long | own, by hand only      |
# | open          | yes          | 1 or more        | ahead + own > deadline | wait_too_long | ahead + own - deadline |
# | open          | yes          | less             | anything else          | admitted      |                        |
def refusal(*, drain: DrainPhase, worker_ready: bool, work: Work, limits: Limits, ask: Ask) -> Refused | None:
    """Why one more edit is refused, or None when it may in.

    The sum counts, not the waiting alone: between two edits nothing runs for a moment,
    and the next to run still counts as waiting.
    """
    if drain in (DrainPhase.REFUSING, DrainPhase.IDLE):
        return Refused(reason=Refusal.DRAINING, retry_after_s=DRAINING_RETRY_AFTER_S)
    if not worker_ready:
        return Refused(reason=Refusal.NOT_READY, retry_after_s=NOT_READY_RETRY_AFTER_S)
    if work.load.running + work.load.waiting - work.jobs >= 1 + limits.hard_limit:
        return _later(Refusal.QUEUE_FULL, work.ahead_s)
    requests_s = work.ahead_s - work.jobs_s
    if limits.max_wait_s is not None and requests_s > limits.max_wait_s:
        return _later(Refusal.WAIT_TOO_LONG, requests_s - limits.max_wait_s)
    return None if ask.deadline_s is None else _misses_deadline(work, ask.own_s, ask.deadline_s)


def _misses_deadline(work: Work, own_s: float, deadline_s: float) -> Refused | None:
    if own_s > HOPELESS_FACTOR * deadline_s:
        return Refused(reason=Refusal.WAIT_TOO_LONG, retry_after_s=whole_seconds(own_s), should_retry=False)
    late_s = MARGIN * (work.ahead_s + own_s) - deadline_s
    if work.load.running + work.load.waiting and late_s > 0:
        return _later(Refusal.WAIT_TOO_LONG, late_s)
    return None


def auto_max_wait_s(first_size_edit_s: float) -> float:
    """`--max-wait auto`: what ten edits at the first size take."""
    return AUTO_MAX_WAIT_EDITS * first_size_edit_s


def whole_seconds(seconds: float) -> int:
    """Seconds for Retry-After: rounded up, at least 1."""
    # Sums of floats end in ...0001, and a client need not wait a whole second for that.
    return max(1, math.ceil(seconds - 1e-6))


# | left until the deadline | others wait | seconds of its own | verdict |
# | ----------------------- | ----------- | ------------------ | ------- |
# | none                    | any         | any                | drop    |
# | some                    | yes         | > left             | drop    |
# | some                    | no          | > 2 * left         | drop    |
# | some                    | any         | less               | run     |
def too_late(*, left_s: float, own_s: float, others_wait: bool) -> bool:
    """Whether an edit whose turn has come is dropped, because it could not end before its client stops waiting."""
    return left_s <= 0 or own_s > left_s * (1.0 if others_wait else HOPELESS_FACTOR)


def _later(reason: Refusal, retry_after_s: float) -> Refused:
    whole = whole_seconds(retry_after_s)
    return Refused(reason=reason, retry_after_s=whole, should_retry=False if whole > LONGEST_RETRY_AFTER_S else None)
