"""Keeps the watches running, and lists everything now and then.

A run of kopf can end for reasons that the next run does not meet (an etcd leader change, an HTTP
410), so it is started again with growing pauses; a run that cannot be kept up ends the process.
The resync finds what the watches missed: kopf loses deletions that happen while a watch is down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import IMAGE_EDIT_DEPLOYMENTS, Kube
from imageedit_operator.watching import WatchEnded, keys_for
from imageedit_operator.workqueue import Key

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
GOOD_RUN_S = 300.0
MOST_FAILURES = 10


class WatchesLost(Exception):
    """The watches could not be kept up; only a new process can help."""


async def supervise(
    run: Callable[[asyncio.Event], Awaitable[None]],
    stop: asyncio.Event,
    *,
    stopwatch: Callable[[], float],
    on_restart: Callable[[], None],
) -> None:
    """Runs `run(stop)` until `stop` is set; raises WatchesLost after MOST_FAILURES short runs in a row."""
    failures = 0
    while not stop.is_set():
        started = stopwatch()
        try:
            await run(stop)
            return
        except WatchEnded as ended:
            failures = 1 if stopwatch() - started >= GOOD_RUN_S else failures + 1
            if failures >= MOST_FAILURES:
                raise WatchesLost(f"{failures} runs in a row ended early, the last with: {ended}") from ended
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (failures - 1))
            logger.error("%s; starting them anew in %g s", ended, pause_s)
            on_restart()
        await sleep_unless(stop, pause_s)


async def resync(
    kube: Kube,
    namespaces: tuple[str, ...],
    stop: asyncio.Event,
    *,
    period_s: float,
    random: Callable[[], float],
    known: Callable[[], Iterable[Key]],
    on_key: Callable[[Key], None],
    on_complete: Callable[[], None],
) -> None:
    """Adds every resource each period (±10 %), and those that we know and that no list shows any more."""
    while not stop.is_set():
        try:
            listed = await _list(kube, namespaces)
        except ApiError as error:
            logger.error("resync failed: %s", error)
            await sleep_unless(stop, min(period_s, max(5.0, error.retry_after_s)))
            continue
        for key in listed | set(known()):
            on_key(key)
        on_complete()
        await sleep_unless(stop, period_s * (0.9 + 0.2 * random()))


async def sleep_unless(stop: asyncio.Event, seconds: float) -> None:
    """Waits, but not longer than until `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


async def _list(kube: Kube, namespaces: tuple[str, ...]) -> set[Key]:
    found: set[Key] = set()
    for namespace in namespaces or ("",):
        async for page in kube.pages(IMAGE_EDIT_DEPLOYMENTS, namespace):
            found.update(key for item in page for key in keys_for(IMAGE_EDIT_DEPLOYMENTS, item))
    return found
