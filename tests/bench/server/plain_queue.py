"""The queue that most servers have: fifty places, first come first served, nobody's patience known.

The same engine and image code as everywhere here. A client that has left keeps its place, because nothing looks.
`python -m bench.server.plain_queue PORT SECONDS`
"""

from __future__ import annotations

import asyncio
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bench.server import engine

PLACES = 50


def app(edit_s: float) -> Starlette:
    """The application."""
    slot, holds = asyncio.Lock(), engine.fixed_engine(edit_s)
    waiting = 0

    async def edit(request: Request) -> Response:
        nonlocal waiting
        if waiting > PLACES:
            return JSONResponse({"error": {"code": "queue_full"}}, status_code=429, headers={"retry-after": "1"})
        waiting += 1
        try:
            job, plan = await asyncio.to_thread(engine.decoded, await request.json())
            async with slot:
                result = await asyncio.to_thread(engine.edited, holds, job)
            return JSONResponse(await asyncio.to_thread(engine.encoded, result, plan))
        finally:
            waiting -= 1

    return Starlette(routes=[Route("/v1/edit", edit, methods=["POST"])])


def main() -> None:
    port, edit_s = int(sys.argv[1]), float(sys.argv[2])
    uvicorn.run(app(edit_s), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
