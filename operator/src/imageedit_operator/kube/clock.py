"""The time by the apiserver's clock, which wrote the times that a plan compares with.

The clock of our own machine may be wrong, and may be set while a pod drains: a day forward would end every
drain at once, an hour back would make each one longer. So it is read once; from then on a monotonic clock counts,
and the `Date` of each answer corrects it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

logger = logging.getLogger(__name__)

TOLERANCE_S = 2.0
"""Apiservers of one cluster may differ by so much, and nothing is timed more closely."""
TOLD_S = 30.0
"""A correction of so much is told."""


class ClusterClock:
    """UTC epoch seconds; `wall` is asked once, `stopwatch` is monotonic."""

    def __init__(self, *, wall: Callable[[], float], stopwatch: Callable[[], float]) -> None:
        self.stopwatch = stopwatch
        self._offset_s = wall() - stopwatch()

    def now(self) -> float:
        """The time at the apiserver, as far as its answers tell."""
        return self.stopwatch() + self._offset_s

    # The answer was written between the request and now, and `Date` has whole seconds.
    # | our time           | then                                     |
    # | fits within 2 s    | stays                                    |
    # | does not           | is the middle of what the answer allows  |
    def heard(self, headers: Mapping[str, str], sent_s: float) -> None:
        """An answer to the request that was sent at `sent_s` by the stopwatch; one without a date tells nothing."""
        try:
            date_s = parsedate_to_datetime(headers.get("Date", "")).timestamp()
        except ValueError:
            return
        least_s, most_s = date_s - self.stopwatch(), date_s + 1.0 - sent_s
        if least_s - TOLERANCE_S <= self._offset_s <= most_s + TOLERANCE_S:
            return
        before_s, self._offset_s = self._offset_s, (least_s + most_s) / 2
        if abs(self._offset_s - before_s) >= TOLD_S:
            logger.warning(
                "the clock here is %.0f s off the apiserver's, which counts; set the clock of this node",
                before_s - self._offset_s,
            )
