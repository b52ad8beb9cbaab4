"""Until when does the client wait? Pure: the clock on the wall is an argument."""

from __future__ import annotations

import math
from datetime import datetime

# A number up to this many is seconds left, above it seconds since 1970: nobody waits for a year.
LONGEST_WAIT_S = 366 * 24 * 3600.0


class NotADeadline(ValueError):
    """The header says no time."""


def deadline_left_s(text: str, *, wall_s: float) -> float:
    """Seconds that `x-request-deadline` leaves, negative when it has passed.

    | text                          | meaning                    |
    | ----------------------------- | -------------------------- |
    | number up to a year           | seconds left               |
    | larger number                 | seconds since 1970         |
    | RFC 3339 with its offset or Z | that moment                |
    | anything else                 | NotADeadline               |
    """
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return _moment_s(text) - wall_s
    if not math.isfinite(number) or number < 0:
        raise NotADeadline(text)
    return number if number <= LONGEST_WAIT_S else number - wall_s


def read_timeout_s(text: str) -> float | None:
    """Seconds of `x-stainless-read-timeout`, which the OpenAI clients send by themselves; None if it says nothing.

    Lenient on purpose: the user has not written this header and could not correct it.
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number <= LONGEST_WAIT_S else None


def _moment_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotADeadline(text) from None
    if moment.tzinfo is None:
        raise NotADeadline(text)
    return moment.timestamp()
