"""`/healthz` and `/metrics` on the operator's own port, from a thread of their own.

A process that answers HTTP may still do no work: its loop can be stuck, its watches deaf, its
workers hanging. So health is judged by progress alone. The loop that works posts its progress each
second; the thread that answers judges the last post and its age, so that it can say what is stuck.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from aiohttp import web

from imageedit_operator.telemetry import CONTENT_TYPE

logger = logging.getLogger(__name__)

POST_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What the process has done lately."""

    leading: bool
    """It acts; else it waits for the Lease."""
    since_contact_s: float
    """Seconds since the last completed resync, or, while waiting, since the Lease could be read."""
    since_watch_s: float = 0.0
    """Seconds since the watches' own loop gave a sign of life."""
    oldest_waiting_s: float = 0.0
    """Age of the due resource that waits longest for a worker."""
    longest_pass_s: float = 0.0
    """Age of the pass that runs longest."""
    notice: str = ""
    """What people should know although the process is well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """From when on progress is too slow to be called healthy."""

    since_contact_s: float
    since_watch_s: float = 120.0
    oldest_waiting_s: float = 300.0
    longest_pass_s: float = 120.0
    since_post_s: float = 30.0


class Board:
    """The last posted progress; written by one thread and read by another."""

    def __init__(self, first: Progress, *, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._last = (first, stopwatch())

    def post(self, progress: Progress) -> None:
        """The loop is alive, and this is its progress."""
        self._last = (progress, self._stopwatch())

    def read(self) -> tuple[Progress, float]:
        """The last post, and its age in seconds."""
        progress, posted_s = self._last
        return progress, self._stopwatch() - posted_s


async def keep_posting(board: Board, progress: Callable[[], Progress]) -> None:
    """Posts each second until it is cancelled."""
    while True:
        board.post(progress())
        await asyncio.sleep(POST_S)


# The first row that fits decides.
# | what is older than its limit       | said to be stuck   |
# | the last post                      | the event loop     |
# | the last resync or look at a Lease | the apiserver      |
# | the watches' last sign of life     | the watches        |
# | the pass that runs longest         | a worker           |
# | the resource that waits longest    | the workers        |
def stuck(progress: Progress, since_post_s: float, limits: Limits) -> str:
    """Why the process does not progress; empty while it does."""
    if since_post_s > limits.since_post_s:
        return f"the event loop is stuck for {since_post_s:.0f} s (limit {limits.since_post_s:.0f} s)"
    if progress.since_contact_s > limits.since_contact_s:
        what = "resync completed" if progress.leading else "look at the Lease succeeded"
        return (
            f"no {what} for {progress.since_contact_s:.0f} s (limit {limits.since_contact_s:.0f} s): "
            "is the apiserver reachable, and are the chart's roles bound?"
        )
    if progress.since_watch_s > limits.since_watch_s:
        return (
            f"the watches gave no sign of life for {progress.since_watch_s:.0f} s (limit {limits.since_watch_s:.0f} s)"
        )
    if progress.longest_pass_s > limits.longest_pass_s:
        return (
            f"a pass runs for {progress.longest_pass_s:.0f} s (limit {limits.longest_pass_s:.0f} s) "
            "and could not be ended: its worker is lost"
        )
    if progress.oldest_waiting_s > limits.oldest_waiting_s:
        return (
            f"a resource waits for a worker for {progress.oldest_waiting_s:.0f} s "
            f"(limit {limits.oldest_waiting_s:.0f} s): raise --workers, or look for slow passes in the log"
        )
    return ""


@asynccontextmanager
async def serve(port: int, *, board: Board, limits: Limits, render: Callable[[], bytes]) -> AsyncIterator[int]:
    """Serves on IPv4 and IPv6 for as long as the context lasts; yields the port. Raises OSError when it is taken."""
    started: concurrent.futures.Future[int] = concurrent.futures.Future()
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    serving = _serve(port, _application(board, limits, render), started, over)
    thread = threading.Thread(target=_run, args=(loop, serving), name="health", daemon=True)
    thread.start()
    try:
        yield await asyncio.wrap_future(started)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(over.set)
        await asyncio.to_thread(thread.join)


def _application(board: Board, limits: Limits, render: Callable[[], bytes]) -> web.Application:
    told: list[str] = []

    async def healthz(_: web.Request) -> web.Response:
        progress, since_post_s = board.read()
        why = stuck(progress, since_post_s, limits)
        if why and not told:
            told.append(why)
            logger.error("not healthy: %s", why, extra={"stack": _main_stack()})
        body = {
            "status": "stuck" if why else "ok",
            "message": why or progress.notice,
            "role": "leader" if progress.leading else "standby",
            **{_camel(name): round(value, 1) for name, value in asdict(progress).items() if name.endswith("_s")},
        }
        return web.json_response(body, status=503 if why else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=render(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    return app


def _run(loop: asyncio.AbstractEventLoop, serving: asyncio.Future[None]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(serving)
    finally:
        loop.close()


async def _serve(port: int, app: web.Application, started: concurrent.futures.Future[int], over: asyncio.Event) -> None:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        # With port 0 the two families get different ports; an IPv4 address is a pair, an IPv6 address is longer.
        started.set_result(
            next((address[1] for address in runner.addresses if len(address) == 2), runner.addresses[0][1])
        )
        await over.wait()
    except Exception as error:
        started.set_exception(error)
    finally:
        await runner.cleanup()


def _main_stack() -> list[str]:
    """Where the main thread is now: what holds up a stuck loop."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return [line.strip() for line in traceback.format_stack(frame)] if frame is not None else []


def _camel(name: str) -> str:
    first, *others = name.removesuffix("_s").split("_")
    return first + "".join(word.title() for word in others) + "Seconds"
