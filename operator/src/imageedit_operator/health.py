"""`/healthz` and `/metrics` on the operator's own port.

A process that answers HTTP may still do no work: its watches can be deaf and its workers stuck.
So health is judged by progress alone: how long ago a full resync completed, and how long the
oldest due resource has been waiting for a worker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from imageedit_operator.telemetry import CONTENT_TYPE


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What the process has done lately."""

    since_resync_s: float
    """Seconds since the last completed resync, since the start while there was none."""
    oldest_waiting_s: float
    """Age of the due resource that waits longest for a worker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """From when on progress is too slow to be called healthy."""

    since_resync_s: float
    oldest_waiting_s: float


def stuck(progress: Progress, limits: Limits) -> str:
    """Why the process does not progress; empty while it does."""
    if progress.since_resync_s > limits.since_resync_s:
        return (
            f"no resync completed for {progress.since_resync_s:.0f} s (limit {limits.since_resync_s:.0f} s): "
            "is the apiserver reachable, and may the operator list imageeditdeployments?"
        )
    if progress.oldest_waiting_s > limits.oldest_waiting_s:
        return (
            f"a resource waits for a worker for {progress.oldest_waiting_s:.0f} s "
            f"(limit {limits.oldest_waiting_s:.0f} s): raise --workers, or look for slow passes in the log"
        )
    return ""


@asynccontextmanager
async def serve(
    port: int, *, progress: Callable[[], Progress], limits: Limits, render: Callable[[], bytes]
) -> AsyncIterator[int]:
    """Serves on IPv4 and IPv6 for as long as the context lasts; yields the port. Raises OSError when it is taken."""

    async def healthz(_: web.Request) -> web.Response:
        now = progress()
        why = stuck(now, limits)
        body = {
            "status": "stuck" if why else "ok",
            "message": why,
            "sinceResyncSeconds": round(now.since_resync_s, 1),
            "oldestWaitingSeconds": round(now.oldest_waiting_s, 1),
        }
        return web.json_response(body, status=500 if why else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=render(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, port=port)
        await site.start()
        # With port 0 the two families get different ports; an IPv4 address is a pair, an IPv6 address is longer.
        yield next((address[1] for address in runner.addresses if len(address) == 2), runner.addresses[0][1])
    finally:
        await runner.cleanup()
