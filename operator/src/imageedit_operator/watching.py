"""Wake-up calls from the cluster; with its set-up, the only module that knows kopf.

kopf lists and watches four kinds, and each event that is news becomes a key in the work queue. Nothing
else of kopf is used: no state-keeping handlers, finalizers, timers, indexes or peering, so kopf writes nothing.

kopf runs in a thread with an event loop of its own. It takes every task that was born in its loop
for its own and cancels it when a run ends, it takes over the signals, and after a failed run it sets
a timer that kills the process; in a loop that ends with the run none of this reaches our workers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import kopf

from imageedit_operator.kopf_setup import Scope, build_registry, build_settings
from imageedit_operator.loop_end import end_all, say_in_a_line
from imageedit_operator.wake_ups import Told

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0
ALIVE_S = 5.0
ENDING_S = 7.0
"""kopf gives its tasks 5 s."""


class WatchEnded(Exception):
    """A kopf run ended although nobody asked for it."""


async def watch(
    scope: Scope,
    on_told: Callable[[Told], None],
    stop: asyncio.Event,
    *,
    on_alive: Callable[[], None] = lambda: None,
) -> None:
    """One run of kopf; returns after `stop` was set. Raises WatchEnded when it ends by itself.

    Both are called in the caller's event loop: `on_told` for every event, news or not, `on_alive` every few seconds
    while kopf's loop turns.
    """
    ours = asyncio.get_running_loop()
    ended: asyncio.Future[BaseException | None] = ours.create_future()
    run = _Run(
        scope=scope,
        on_told=lambda told: _tell(ours, on_told, told),
        on_end=lambda error: _tell(ours, finish, error),
        on_alive=lambda: _tell(ours, lambda _: on_alive(), None),
    )

    def finish(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(error)

    thread = threading.Thread(target=run.main, name="kopf", daemon=True)
    thread.start()
    stopped = asyncio.create_task(stop.wait())
    either: set[asyncio.Future[Any]] = {ended, stopped}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            run.stop()
            await asyncio.wait({ended}, timeout=STOP_TIMEOUT_S)
            return
    finally:
        stopped.cancel()
        run.stop()
        if ended.done():
            thread.join()  # it has said its last word and returns at once
    raise WatchEnded(f"the watches ended: {ended.result()!r}")


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[Any], None], argument: object) -> None:
    try:
        loop.call_soon_threadsafe(call, argument)
    except RuntimeError:
        return  # our loop is closed: the process is ending


class _Run:
    """The thread's side of one run."""

    def __init__(
        self,
        *,
        scope: Scope,
        on_told: Callable[[Told], None],
        on_end: Callable[[BaseException | None], None],
        on_alive: Callable[[], None],
    ) -> None:
        self._scope = scope
        self._on_told = on_told
        self._on_end = on_end
        self._on_alive = on_alive
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._stopping = False

    def main(self) -> None:
        """Runs kopf until it ends; every end is reported."""
        error: BaseException | None = None
        try:
            asyncio.run(self._operator())
        except BaseException as caught:
            error = caught
        self._on_end(error)

    def stop(self) -> None:
        """Asks the run to end; safe from any thread, at any time."""
        with self._lock:
            self._stopping = True
            if self._loop is not None and self._stop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _operator(self) -> None:
        with self._lock:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            if self._stopping:
                return
        self._loop.set_exception_handler(say_in_a_line)
        beating = asyncio.create_task(self._beat())  # born before kopf's tasks, so not one of those that it ends
        try:
            roots = await kopf.spawn_tasks(
                registry=build_registry(self._scope, self._on_told),
                settings=build_settings(),
                clusterwide=not self._scope.namespaces,
                namespaces=self._scope.namespaces,
                stop_flag=self._stop,
            )
            await _until_over(set(roots), ours={beating, asyncio.current_task()})
        finally:
            await end_all()

    async def _beat(self) -> None:
        while True:
            self._on_alive()
            await asyncio.sleep(ALIVE_S)


async def _until_over(roots: set[asyncio.Task[Any]], ours: set[asyncio.Task[Any] | None]) -> None:
    """Raises what the first of kopf's root tasks failed with, however long kopf itself takes to end after that."""
    running = asyncio.create_task(kopf.run_tasks(roots, ignored=ours))
    await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({running}, timeout=ENDING_S)
    await asyncio.gather(*(task for task in {running, *roots} if task.done() and not task.cancelled()))
