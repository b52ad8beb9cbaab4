"""Keeps the watches running, and lists the versions of everything now and then.

A run of kopf can end for reasons that the next run does not meet (an etcd leader change, an HTTP
410), so it is started again with growing pauses; a run that cannot be kept up ends the process.
The resync finds what the watches missed: kopf loses deletions that happen while a watch is down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from imageedit_operator.errors import ApiError
from imageedit_operator.hearing import Hearing
from imageedit_operator.kube import versions
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.first_look import FirstLook
from imageedit_operator.watching import WatchEnded
from imageedit_operator.workqueue import Key

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
GOOD_RUN_S = 300.0
MOST_FAILURES = 10
DEAF_S = 60.0
DOUBT_S = 30.0
LISTEN_S = 5.0
BEGUN_S = 10.0
"""So long after the watches began they have listed what they watch."""

Compare: TypeAlias = Callable[[Mapping[Key, versions.Family], Mapping[Key, versions.Family]], set[Key]]


async def _at_once(_stop: asyncio.Event) -> bool:
    return False


class WatchesLost(Exception):
    """The watches could not be kept up; only a new process can help."""


async def supervise(
    run: Callable[[asyncio.Event], Awaitable[None]],
    stop: asyncio.Event,
    *,
    stopwatch: Callable[[], float],
    on_restart: Callable[[], None],
    ready: Callable[[asyncio.Event], Awaitable[bool]] = _at_once,
) -> None:
    """Runs `run(stop)` until `stop` is set; raises WatchesLost after MOST_FAILURES short runs in a row.

    `ready` is awaited before each run; True says that the run before it could not have been kept up.
    """
    failures = 0
    while not stop.is_set():
        if await ready(stop):
            failures = 0
        if stop.is_set():
            return
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


async def unless_deaf(
    run: Callable[[asyncio.Event], Awaitable[None]],
    hearing: Hearing,
    stop: asyncio.Event,
    *,
    stopwatch: Callable[[], float],
    look: Callable[[Key], None] = lambda _key: None,
) -> None:
    """One run of the watches, ended with WatchEnded when it owes an event for DEAF_S: the next run lists anew.

    Before that it asks for a `look` at what is owed: a resource that went before the run began is owed for ever.
    """
    began_s = stopwatch()
    looked = set[Key]()
    running = asyncio.ensure_future(run(stop))
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=LISTEN_S)
            now_s = stopwatch()
            doubted = hearing.owed(now_s, for_s=DOUBT_S) if now_s - began_s >= DOUBT_S else set()
            for key in doubted - looked:
                looked.add(key)
                look(key)
            deaf_s = min(hearing.deaf_s(now_s), now_s - began_s)
            if deaf_s >= DEAF_S and not stop.is_set() and not running.done():
                raise WatchEnded(f"a list shows what the watches have not told for {deaf_s:.0f} s")
        running.result()
    finally:
        running.cancel()
        await asyncio.wait({running})


async def resync(
    kube: Kube,
    namespaces: tuple[str, ...],
    stop: asyncio.Event,
    *,
    period_s: float,
    random: Callable[[], float],
    known: Callable[[], Iterable[Key]],
    unheard: Compare,
    on_key: Callable[[Key], None],
    on_complete: Callable[[Mapping[Key, str]], None],
    on_missing: Callable[[], None] = lambda: None,
    first: FirstLook | None = None,
    vanished: Compare = lambda _before, _now: set(),
    began: asyncio.Event | None = None,
) -> None:
    """Each period (±10 %) adds the resources whose versions are news, and those that we know and no list shows.

    `unheard` tells the news of a list and the one before, at first an empty one. `on_complete` gets the
    version of each resource; `on_missing` is called when the kind itself is not served, and then the resources
    that we know are gone. `first` is shown the objects of the first list that comes to its end. `began` is set
    whenever the watches begin: what went before their own lists they never tell, so a list soon after that is asked
    for what has `vanished` since the last list of a period.
    """
    before: Mapping[Key, versions.Family] | None = None
    due_s = now_s()
    while not stop.is_set():
        due = now_s() >= due_s
        try:
            if first is not None:
                first.begin()
            listed = await versions.read(kube, namespaces, show=first.show if first is not None else None)
        except ApiError as error:
            if error.not_found:
                before = None
                on_missing()
                for key in tuple(known()):
                    on_key(key)
            else:
                logger.error("resync failed: %s", error)
            await sleep_unless(stop, min(period_s, max(5.0, error.retry_after_s)))
            continue
        news = set(listed.resources)
        if first is not None:
            first.end(whole=listed.families is not None)  # a resource without its pods looks as if it had lost them
        if listed.families is not None and (due or before is None):
            news, before = unheard(before or {}, listed.families), listed.families
        elif listed.families is not None and before is not None:
            news = vanished(before, listed.families)
        for key in news | (set(known()) - listed.resources.keys()):
            on_key(key)
        on_complete(listed.resources)
        first = None
        if due:
            due_s = now_s() + period_s * (0.9 + 0.2 * random())
        await _until_next(stop, began or asyncio.Event(), due_s)


# | the watches                                  | the next list comes                      |
# | began, since the last list or meanwhile      | a little later, if it is not due by then |
# | did not                                      | when it is due                           |
async def _until_next(stop: asyncio.Event, began: asyncio.Event, due_s: float) -> None:
    either = [asyncio.ensure_future(event.wait()) for event in (stop, began)]
    try:
        await asyncio.wait(either, timeout=due_s - now_s(), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in either:
            waiting.cancel()
    if began.is_set():
        began.clear()
        await sleep_unless(stop, min(due_s - now_s(), BEGUN_S))


def now_s() -> float:
    """The running loop's time."""
    return asyncio.get_running_loop().time()


async def sleep_unless(stop: asyncio.Event, seconds: float) -> None:
    """Waits, but not longer than until `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
