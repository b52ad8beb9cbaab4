"""How much is in, and how long will it take? Pure: what runs and waits is an argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# An edit that runs longer than expected ends soon, but not now: saying 0 would let a whole queue in at its end.
OVERDUE_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Edits on the card (0 or 1) and edits that wait for it."""

    running: int = 0
    waiting: int = 0


def remaining_s(*, expected_s: float, elapsed_s: float) -> float:
    """Seconds that an edit on the card still takes."""
    return max(expected_s - elapsed_s, OVERDUE_SHARE * expected_s)


def ahead_s(*, running_left_s: float, waiting_s: Iterable[float]) -> float:
    """Seconds until the card is through with the edit that runs and all that wait."""
    return running_left_s + sum(waiting_s)
