"""`/warmz` and `/drain` for every pod of the range, from one process that hardly costs anything.

All resources of a run are of one spec but for their names, so that there is one revision and one answer.
"""

from __future__ import annotations

import asyncio
import json

from bench.operator.fleet import HASH
from imageedit_operator.kube.warmz import PROBES_PORT

REPORT = {
    "warm": True,
    "model": "m",
    "revision": "1",
    "revisionHash": HASH,
    "digest": "sha256:9f",
    "instance": "i",
    "warmupSeconds": 2.5,
    "sizes": {"768x768": 0.4},
    "check": {"ok": True, "message": "a picture"},
    "draining": False,
    "accepting": True,
    "running": 0,
    "waiting": 0,
    "error": None,
}


def _answer(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


WARM = _answer("200 OK", json.dumps(REPORT).encode())
DRAINS = _answer("202 Accepted", b"{}")


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection; the operator's requests have no body."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(DRAINS if head.startswith((b"POST", b"DELETE")) else WARM)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(_serve, "0.0.0.0", PROBES_PORT, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
