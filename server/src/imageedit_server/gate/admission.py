"""May one more edit in? Pure: what runs and waits, and the state of worker and drain, are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from imageedit_server.gate.drain import DrainPhase
from imageedit_server.gate.estimate import Load, retry_after_s

# One edit takes seconds to minutes, and a client that hears 503 should find another pod at once.
DRAINING_RETRY_AFTER_S = 1
# Loading and warming take tens of seconds to minutes, and a restart about as long.
# Often enough not to idle, rarely enough not to hammer.
NOT_READY_RETRY_AFTER_S = 5


class Refusal(Enum):
    """Why an edit is not admitted; the value is the error code and the metric's label."""

    DRAINING = "draining"
    NOT_READY = "not_ready"
    QUEUE_FULL = "queue_full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not admitted; `retry_after_s` is an honest guess of when another try makes sense."""

    reason: Refusal
    retry_after_s: int


# | drain                | worker ready | running + waiting    | verdict                                  |
# | -------------------- | ------------ | -------------------- | ---------------------------------------- |
# | refusing, idle       | any          | any                  | draining, retry after 1 s                |
# | accepting, propagat. | no           | any                  | not_ready, retry after 5 s               |
# | accepting, propagat. | yes          | < 1 + hard limit     | admitted                                 |
# | accepting, propagat. | yes          | >= 1 + hard limit    | queue_full, retry after the work in front |
def refusal(*, drain: DrainPhase, worker_ready: bool, load: Load, hard_limit: int, edit_s: float) -> Refused | None:
    """Why one more edit is refused, or None when it may in.

    The sum counts, not the waiting alone: between two edits nothing runs for a moment,
    and the next to run still counts as waiting.
    """
    if drain in (DrainPhase.REFUSING, DrainPhase.IDLE):
        return Refused(reason=Refusal.DRAINING, retry_after_s=DRAINING_RETRY_AFTER_S)
    if not worker_ready:
        return Refused(reason=Refusal.NOT_READY, retry_after_s=NOT_READY_RETRY_AFTER_S)
    if load.running + load.waiting >= 1 + hard_limit:
        return Refused(reason=Refusal.QUEUE_FULL, retry_after_s=retry_after_s(load, edit_s))
    return None
