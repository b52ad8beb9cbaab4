"""The time of day for what must expire in its time."""

from __future__ import annotations

import time
from collections.abc import Callable


def steady_clock(
    wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = time.monotonic
) -> Callable[[], float]:
    """Seconds since 1970 as the clock on the wall says now, going on evenly: setting that clock expires nothing."""
    began_s = wall_s() - monotonic_s()
    return lambda: began_s + monotonic_s()
