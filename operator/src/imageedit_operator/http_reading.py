"""Reading answers of pods and of Prometheus, which may send anything."""

from __future__ import annotations

import aiohttp


async def read_bounded(answer: aiohttp.ClientResponse, longest_bytes: int) -> bytes:
    """The whole body; raises ValueError when it is longer than `longest_bytes`."""
    body = bytearray()
    async for chunk in answer.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > longest_bytes:
            raise ValueError(f"the answer is longer than {longest_bytes} bytes")
    return bytes(body)
