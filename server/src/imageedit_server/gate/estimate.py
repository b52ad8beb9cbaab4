"""How long will the work in front take? Pure: the last edits' seconds are the only memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

# The median of the last twenty follows a change of sizes within a few edits and ignores one outlier.
REMEMBERED_EDITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Edits on the card (0 or 1) and edits that wait for it."""

    running: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTimes:
    """Seconds of the last edits, oldest first; before the first edit the warm-up's seconds speak."""

    recent_s: tuple[float, ...] = ()
    warm_s: tuple[float, ...] = ()


def warmed(times: EditTimes, edits_s: Iterable[float]) -> EditTimes:
    """Take over what a warm-up measured."""
    return replace(times, warm_s=tuple(edits_s))


def observed(times: EditTimes, edit_s: float) -> EditTimes:
    """Remember one more edit."""
    return replace(times, recent_s=(*times.recent_s, edit_s)[-REMEMBERED_EDITS:])


def typical_edit_s(times: EditTimes) -> float:
    """Median seconds of an edit: of the last edits, else of the warm-up, else 1."""
    known = times.recent_s or times.warm_s
    return median(known) if known else 1.0


def retry_after_s(load: Load, edit_s: float) -> int:
    """Whole seconds until the work that is in now is done, at least 1."""
    return max(1, math.ceil((load.running + load.waiting) * edit_s))
