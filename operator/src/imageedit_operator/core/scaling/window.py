"""The largest want of a time window, and whether the window is full of good data."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """What scaling remembers in process; empty after a restart, which only delays a scale-down.

    `wants` holds (time, want) with falling wants: a want that a later one reaches can
    never again be the largest, so the memory stays as small as the number of pods.
    """

    wants: tuple[tuple[float, int], ...] = ()
    good_since: float | None = None
    """Begin of the unbroken run of good samples."""
    last_good: float | None = None


def remember(memory: Memory, want: int, *, now: float, hold_s: float) -> Memory:
    """Memory with this want, without the ones that left the window."""
    kept = [(at, past) for at, past in memory.wants if past > want and now - hold_s <= at <= now]
    return replace(memory, wants=(*kept, (now, want)))


def mark_good(memory: Memory, *, now: float, max_gap_s: float) -> Memory:
    """Memory after a good sample; a longer gap than `max_gap_s` begins the window anew."""
    unbroken = memory.last_good is not None and 0 <= now - memory.last_good <= max_gap_s
    since = memory.good_since if unbroken and memory.good_since is not None else now
    return replace(memory, good_since=since, last_good=now)


def largest(memory: Memory) -> int:
    """The largest want in the window, 0 when it is empty."""
    return max((want for _, want in memory.wants), default=0)


def is_full(memory: Memory, *, now: float, hold_s: float) -> bool:
    """Whether good data reaches back over the whole window."""
    return memory.good_since is not None and now - memory.good_since >= hold_s
