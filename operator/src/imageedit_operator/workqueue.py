"""The work queue: each key at most once, never in two hands at a time, later when asked.

`Schedule` is the bookkeeping, with time as an argument; `WorkQueue` adds the waiting.
The rules are those of client-go's queue: a key that is added while it is worked on runs
again afterwards; of several delayed adds the earliest wins; failures back off key by key.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import NamedTuple

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 120.0


class Key(NamedTuple):
    """The namespace and name of one ImageEditDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def backoff_s(failures: int, random: float) -> float:
    """Seconds to wait after the n-th failure in a row; `random` in [0, 1) takes up to half of it away."""
    longest = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 30))
    return longest * (1.0 - 0.5 * random)


class Schedule:
    """Which key is due when. Not safe for threads; every time is in seconds of one clock."""

    def __init__(self) -> None:
        self._ready: dict[Key, float] = {}  # in order of arrival, with the time since when it waits
        self._processing: set[Key] = set()
        self._again: dict[Key, float] = {}  # added while in processing
        self._delayed: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []  # over _delayed; entries that were moved or dropped stay in it
        self._failures: dict[Key, int] = {}

    def add(self, key: Key, now: float) -> None:
        """The key is due now."""
        if key in self._processing:
            self._again.setdefault(key, now)
        else:
            self._ready.setdefault(key, now)

    def add_at(self, key: Key, due: float) -> None:
        """The key is due at `due`, or earlier when it already is."""
        if due < self._delayed.get(key, float("inf")):
            self._delayed[key] = due
            heapq.heappush(self._heap, (due, key))

    def add_failed(self, key: Key, now: float, random: float, at_least_s: float = 0.0) -> float:
        """The key failed: due after its back-off, which is returned in seconds; `at_least_s` is what a server asked."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least_s, backoff_s(self._failures[key], random))
        self.add_at(key, now + delay)
        return delay

    def forgive(self, key: Key) -> None:
        """The key succeeded: its next failure starts with the shortest back-off."""
        self._failures.pop(key, None)

    def take(self, now: float) -> Key | None:
        """The key that has waited longest, now in processing; None when none is due."""
        self._promote(now)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._delayed.pop(key, None)  # the pass that starts now decides anew when to look again
        self._processing.add(key)
        return key

    def done(self, key: Key, now: float) -> None:
        """The pass over the key ended; it is due again at once when it was added meanwhile."""
        self._processing.discard(key)
        since = self._again.pop(key, None)
        if since is not None:
            self._ready.setdefault(key, since)
        self._promote(now)

    def forget(self, key: Key) -> None:
        """The resource is gone: drop what is known of the key, except an add that came meanwhile."""
        self._failures.pop(key, None)
        self._delayed.pop(key, None)

    def next_due(self) -> float | None:
        """When the next delayed key is due; None when none is delayed."""
        while self._heap and self._delayed.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return len(self._ready) + len(self._again)

    def oldest_s(self, now: float) -> float:
        """Age in seconds of the key that waits longest, 0 when none waits."""
        waiting = [*self._ready.values(), *self._again.values()]
        return max(0.0, now - min(waiting)) if waiting else 0.0

    def failures(self, key: Key) -> int:
        """Failures of the key in a row."""
        return self._failures.get(key, 0)

    def _promote(self, now: float) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, key = heapq.heappop(self._heap)
            del self._delayed[key]
            self.add(key, due)


class WorkQueue:
    """A `Schedule` that workers wait on, within one event loop; `clock` is in seconds, `random` in [0, 1)."""

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._schedule = Schedule()
        self._clock = clock
        self._random = random
        self._waiters: set[asyncio.Future[None]] = set()
        self._closed = False

    async def get(self) -> Key | None:
        """The next due key; waits for one. None once the queue is closed."""
        while not self._closed:
            now = self._clock()
            key = self._schedule.take(now)
            if key is not None:
                self._wake_one()  # who takes a key leaves the rest, and the next time that is due, to another
                return key
            due = self._schedule.next_due()
            await self._wait(None if due is None else due - now)
        return None

    def add(self, key: Key) -> None:
        """The key is due now."""
        self._schedule.add(key, self._clock())
        self._wake_one()

    def add_after(self, key: Key, delay_s: float) -> None:
        """The key is due in `delay_s` seconds, or earlier when it already is."""
        if delay_s <= 0:
            self.add(key)
            return
        self._schedule.add_at(key, self._clock() + delay_s)
        self._wake_one()

    def add_failed(self, key: Key, *, at_least_s: float = 0.0) -> float:
        """The key failed: due after its back-off, which is returned in seconds."""
        return self._schedule.add_failed(key, self._clock(), self._random(), at_least_s)

    def forgive(self, key: Key) -> None:
        """The key succeeded."""
        self._schedule.forgive(key)

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._schedule.forget(key)

    def done(self, key: Key) -> None:
        """The pass over the key ended."""
        self._schedule.done(key, self._clock())
        self._wake_one()

    def close(self) -> None:
        """Hand out no key any more; every waiting and later `get` answers None."""
        self._closed = True
        for waiter in self._waiters:
            _wake(waiter)

    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return self._schedule.depth()

    def oldest_s(self) -> float:
        """Age in seconds of the key that waits longest, 0 when none waits."""
        return self._schedule.oldest_s(self._clock())

    async def _wait(self, timeout_s: float | None) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter
        except TimeoutError:
            return
        finally:
            self._waiters.discard(waiter)

    def _wake_one(self) -> None:
        """One waiter looks anew; to wake all for each key was as much work as a pass at many workers."""
        for waiter in self._waiters:
            if not waiter.done():
                _wake(waiter)
                return


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
