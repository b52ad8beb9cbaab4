"""A real HTTP server on loopback, for the clients of pods and of Prometheus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[tuple[aiohttp.ClientSession, int]]:
    """A client, and the port of a server that answers every request with `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port: int = runner.addresses[0][1]
        async with aiohttp.ClientSession() as http:
            yield http, port
    finally:
        await runner.cleanup()
