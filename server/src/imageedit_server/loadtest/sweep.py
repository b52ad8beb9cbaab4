"""One level after the other: a number of clients that each ask again as soon as they have their answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from imageedit_server.loadtest.asking import Asking, edit
from imageedit_server.loadtest.http import HttpClient
from imageedit_server.loadtest.outcomes import Fate, Outcome
from imageedit_server.loadtest.statistics import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long each level sends requests, and how many it may send at most."""

    seconds: float
    max_requests: int


async def sweep(
    asked: Asking,
    concurrencies: Sequence[int],
    bounds: Bounds,
    *,
    stop: asyncio.Event,
    on_level: Callable[[Level], None] = lambda _: None,
) -> list[Level]:
    """Measure each level in turn; when `stop` is set, return what was measured until then."""
    levels = []
    numbers = itertools.count(1)
    for concurrency in concurrencies:
        if stop.is_set():
            break
        level = await _level(asked, concurrency, bounds, stop, numbers)
        levels.append(level)
        on_level(level)
    return levels


async def _level(
    asked: Asking, concurrency: int, bounds: Bounds, stop: asyncio.Event, numbers: itertools.count[int]
) -> Level:
    seen: list[tuple[float, Outcome]] = []
    started_s = time.monotonic()
    left = itertools.repeat(None, bounds.max_requests)

    async def client() -> None:
        http = HttpClient(asked.address)
        try:
            while time.monotonic() - started_s < bounds.seconds and next(left, stop) is not stop:
                result = await edit(http, asked, next(numbers))
                seen.append((time.monotonic(), result))
                await asyncio.sleep(result.pause_s)
        finally:
            http.close()

    clients = [asyncio.create_task(client()) for _ in range(concurrency)]
    whole = await _all_or_stop(clients, stop)
    return _summed(concurrency, started_s, seen, whole=whole)


async def _all_or_stop(clients: Sequence[asyncio.Task[None]], stop: asyncio.Event) -> bool:
    """Wait for the clients' last answers; False when they were stopped before."""
    stopped = asyncio.create_task(stop.wait())
    everyone = asyncio.ensure_future(asyncio.gather(*clients))
    await asyncio.wait((everyone, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if everyone.done():
        await everyone
        return True
    everyone.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await everyone
    return False


def _summed(concurrency: int, started_s: float, seen: Sequence[tuple[float, Outcome]], *, whole: bool) -> Level:
    answered = [(at_s, one) for at_s, one in seen if one.fate is Fate.ANSWERED]
    # Until the last answer, not until the end of the time: the edits on their way then are counted, so is their time.
    end_s = max((at_s for at_s, _ in answered), default=max((at_s for at_s, _ in seen), default=started_s))
    return Level(
        concurrency=concurrency,
        elapsed_s=end_s - started_s,
        latencies_s=tuple(one.seconds for _, one in answered),
        refused=Counter(one.reason for _, one in seen if one.fate is Fate.REFUSED),
        failed=Counter(one.reason for _, one in seen if one.fate is Fate.FAILED),
        whole=whole,
    )
