"""Clients of the played servers: they edit all the time, and every edit that a server accepted must get its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faults.invariants import Observer
from faults.node import Node, condition

EVERY_S = 0.2
EDIT_S = 0.8


async def _edit(node: Node, observer: Observer, uid: str) -> None:
    """One edit of a server that accepted it; what the test itself does to the server is not held against anyone."""
    server, began = node.servers[uid], node.restarts.get(uid, 0)
    server.running += 1
    await asyncio.sleep(EDIT_S)
    server.running -= 1
    if not server.deaf and node.restarts.get(uid, 0) == began:
        observer.answered(uid, lives=uid not in node.ended)


@asynccontextmanager
async def editing(node: Node, observer: Observer) -> AsyncIterator[None]:
    """Sends to each pod that was Ready a moment ago, as endpoints tell it, for as long as the context lasts."""

    async def send() -> None:
        async with asyncio.TaskGroup() as edits:
            while True:
                for pod in node.seen:
                    uid, goes = pod["metadata"]["uid"], "deletionTimestamp" in pod["metadata"]
                    if condition(pod, "Ready") == "True" and not goes and node.servers[uid].accepts:
                        edits.create_task(_edit(node, observer, uid))
                await asyncio.sleep(EVERY_S)

    sending = asyncio.create_task(send())
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.wait({sending})
        if not sending.cancelled():
            sending.result()
