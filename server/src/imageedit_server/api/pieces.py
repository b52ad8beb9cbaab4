"""Answers that carry files, in pieces: a result of sixteen megapixels is sixty megabytes of base64.

Made or written in one call, it keeps everything else of this process waiting.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from imageedit_server.api.slices import slices


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """Bytes that stand in JSON as base64."""

    data: bytes = field(repr=False)


def json_pieces(body: Mapping[str, object]) -> list[bytes]:
    """JSON of values among which are files. Blocking: call it in a thread."""
    files: list[bytes] = []
    slot = secrets.token_hex(16)

    def stand_in(value: object) -> str:
        if not isinstance(value, File):
            raise TypeError(f"{type(value).__name__} cannot stand in JSON")
        files.append(value.data)
        return slot

    first, *others = json.dumps(body, default=stand_in).encode().split(slot.encode())
    found = [first]
    for data, following in zip(files, others, strict=True):
        found += base64_pieces(data)
        found.append(following)
    return found


def base64_pieces(data: bytes) -> list[bytes]:
    """Plain base64, as answers carry it. Blocking: call it in a thread."""
    return [base64.b64encode(part) for part in slices(data)]


class PiecesResponse(Response):
    """Sends a body in pieces, with its length."""

    def __init__(self, pieces: Sequence[bytes], *, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        length = sum(len(piece) for piece in pieces)
        super().__init__(media_type=media_type, headers={**(headers or {}), "content-length": str(length)})
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Sending waits only for a client that is slow.
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def json_answer(body: Mapping[str, object]) -> PiecesResponse:
    """The answer with this body, whose files become base64."""
    return PiecesResponse(await asyncio.to_thread(json_pieces, body), media_type="application/json")
