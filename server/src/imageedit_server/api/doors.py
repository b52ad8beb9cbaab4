"""How many connections one listener has, and what each of them may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from imageedit_server.errors import ApiError


# | what                                                        | bound by                   | answer                 |
# | ----------------------------------------------------------- | -------------------------- | ---------------------- |
# | bytes and headers of a head                                 | `head_bytes`, `headers`    | 431                    |
# | a head that does not come to its end                        | `head_s`                   | 408                    |
# | a connection without any request                            | `head_s`                   | closed                 |
# | no HTTP, broken chunks, endless trailers and extensions     | at once, `head_bytes`      | 400                    |
# | a body in tiny chunks                                       | `tiny_chunks`              | 400                    |
# | requests before the answer to the first                     | `pipelined`                | closed after the last  |
# | the rest of a body after its answer                         | `rest_s`                   | closed                 |
# | an answer that is not taken                                 | `unsent_s`                 | closed                 |
# | open connections: the one longest without a request goes    | `connections`              | 503 if all are at work |
# | a request that is being answered; its body: see `body`      | nothing                    | -                      |
@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one listener allows. `tiny_chunks` may come before chunks must have `chunk_bytes` on average."""

    connections: int
    head_bytes: int = 32 * 1024
    headers: int = 100
    head_s: float = 15.0
    rest_s: float = 120.0
    unsent_s: float = 60.0
    pipelined: int = 8
    tiny_chunks: int = 1000
    chunk_bytes: int = 64


class Door:
    """What the connections of one listener share.

    Args:
        on_refused: called with each answer to what never became a request.
    """

    def __init__(self, bounds: Bounds, *, on_refused: Callable[[ApiError], None] = lambda _: None) -> None:
        self.bounds = bounds
        self.on_refused = on_refused
        # The one that is without a request for longest first.
        self._idle: dict[asyncio.Transport, None] = {}

    def idle(self, transport: asyncio.Transport) -> None:
        """A connection is without a request from now on."""
        self._idle[transport] = None

    def busy(self, transport: asyncio.Transport) -> None:
        """A connection has a request, or is gone."""
        self._idle.pop(transport, None)

    def make_room(self) -> bool:
        """Close the connection that is without a request for longest; False when all are at work."""
        longest = next(iter(self._idle), None)
        if longest is None:
            return False
        del self._idle[longest]
        longest.abort()
        return True


def within_descriptors(wanted: int, *, of_all: int, descriptors: int | None) -> int:
    """What a listener may have of the connections that all of them want; None: descriptors have no limit.

    A quarter of the process's descriptors are left for files, the worker and the listeners themselves.
    """
    if descriptors is None:
        return wanted
    return max(1, min(wanted, descriptors * 3 // 4 * wanted // of_all))
