"""What the answers of a sweep say: percentiles, throughput, the plateau. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# A level that reaches this share of the best throughput is as good: more clients only wait longer.
PLATEAU_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one number of clients got.

    `elapsed_s` is from the first request to the last answer, `latencies_s` are those of answered edits in any order;
    `refused` and `failed` count by reason. `whole` is False when the level was cut short.
    """

    concurrency: int
    elapsed_s: float
    latencies_s: Sequence[float]
    refused: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    whole: bool = True

    @property
    def answered(self) -> int:
        """Edits that came back with a picture."""
        return len(self.latencies_s)

    @property
    def throughput_per_s(self) -> float:
        """Answered edits a second."""
        return self.answered / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def refused_count(self) -> int:
        """Requests that were not admitted."""
        return sum(self.refused.values())

    @property
    def failed_count(self) -> int:
        """Requests that ended without a picture though they were not refused."""
        return sum(self.failed.values())

    def latency_s(self, share: float) -> float | None:
        """The latency that this share of the answered edits did not exceed; None without any."""
        return percentile(self.latencies_s, share) if self.latencies_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """`concurrency` clients are enough for (nearly) all that the service can do, `capacity_per_s` is the most seen."""

    concurrency: int
    throughput_per_s: float
    capacity_per_s: float


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank: a value that occurred, at least this share of all values are no larger.

    Raises:
        ValueError: no values, or a share outside 0 to 1.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError("a percentile needs values, and a share from 0 to 1")
    # Rounded, because 0.95 * 20 is a little more than 19 as a float.
    rank = math.ceil(round(share * len(values), 9))
    return sorted(values)[max(rank, 1) - 1]


# | levels                                    | plateau                                           |
# | ----------------------------------------- | ------------------------------------------------- |
# | none, or none with an answer              | none                                              |
# | throughput still grows at the last one    | the last one: there may be more beyond it         |
# | throughput levels off                     | the fewest clients with 95 % of the best          |
# | throughput falls after its best           | the same; the levels after it do not matter       |
def plateau(levels: Sequence[Level]) -> Plateau | None:
    """The fewest clients that reach `PLATEAU_SHARE` of the best throughput."""
    answered = [level for level in levels if level.answered]
    if not answered:
        return None
    capacity_per_s = max(level.throughput_per_s for level in answered)
    enough = (level for level in answered if level.throughput_per_s >= PLATEAU_SHARE * capacity_per_s)
    first = min(enough, key=lambda level: level.concurrency)
    return Plateau(
        concurrency=first.concurrency, throughput_per_s=first.throughput_per_s, capacity_per_s=capacity_per_s
    )


def may_grow(levels: Sequence[Level]) -> bool:
    """Whether the most clients reached the plateau first: then more of them may do more."""
    found = plateau(levels)
    return found is not None and found.concurrency == max(level.concurrency for level in levels)
