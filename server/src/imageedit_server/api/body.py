"""Reading bodies: each up to a limit that holds with and without Content-Length, all together up to another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect, Request

from imageedit_server.errors import BodyTooLarge, ClientGone, Overloaded, TooSlow

# Uploads are slow beside decoding, so several are under way at once; together they must fit the pod's memory.
LARGEST_BODIES_AT_ONCE = 4
RETRY_AFTER_S = 1
# Four bodies that stand still would keep everyone out. 60 MiB in two minutes is 4 Mbit/s.
BODY_STALL_S = 15.0
BODY_TOTAL_S = 120.0


class Uploads:
    """The bytes of all bodies that are being read or decoded, held below a limit.

    Args:
        max_body_bytes: the largest single body.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._max_all_bytes = LARGEST_BODIES_AT_ONCE * max_body_bytes
        self._held_bytes = 0

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Room for one body; given back at the end of the context."""
        room = Room(self)
        try:
            yield room
        finally:
            self._held_bytes -= room.held_bytes

    def check(self, size_bytes: int) -> None:
        """Raise BodyTooLarge for a single body of more than the limit."""
        if size_bytes > self._max_body_bytes:
            raise BodyTooLarge(
                f"The body is larger than {self._max_body_bytes} bytes; send a smaller picture.", code="body_too_large"
            )

    def take(self, count: int) -> None:
        """Claim bytes.

        Raises:
            Overloaded: they would be too many together.
        """
        if self._held_bytes + count > self._max_all_bytes:
            raise Overloaded(
                f"Too many pictures are being sent at once; try again in {RETRY_AFTER_S} s.",
                code="too_many_uploads",
                retry_after_s=RETRY_AFTER_S,
            )
        self._held_bytes += count


class Room:
    """The bytes that one body has claimed."""

    def __init__(self, uploads: Uploads) -> None:
        self.uploads = uploads
        self.held_bytes = 0

    def grow_to(self, size_bytes: int) -> None:
        """Claim what is missing to a body of that size.

        Raises:
            BodyTooLarge: for one body.
            Overloaded: for all bodies together.
        """
        self.uploads.check(size_bytes)
        if size_bytes > self.held_bytes:
            self.uploads.take(size_bytes - self.held_bytes)
            self.held_bytes = size_bytes


async def read_body(
    request: Request, room: Room, *, stall_s: float = BODY_STALL_S, total_s: float = BODY_TOTAL_S
) -> bytes:
    """The whole body.

    Raises:
        BodyTooLarge: it is, or says that it is, longer than allowed; the rest is not kept.
        Overloaded: too many bodies at once.
        ClientGone: the client left before the end.
        TooSlow: nothing came for `stall_s`, or not all of it within `total_s`.
    """
    stated = request.headers.get("content-length", "")
    if stated.isascii() and stated.isdecimal():
        # Checked, not claimed: whoever only announces a large body must not keep others out.
        room.uploads.check(int(stated))
    body = bytearray()
    clock = asyncio.get_running_loop()
    end_s = clock.time() + total_s
    try:
        async with asyncio.timeout_at(min(end_s, clock.time() + stall_s)) as patience:
            async for chunk in request.stream():
                room.grow_to(len(body) + len(chunk))
                body += chunk
                patience.reschedule(min(end_s, clock.time() + stall_s))
    except ClientDisconnect:
        raise ClientGone from None
    except TimeoutError:
        message = f"The body stopped coming for {stall_s:g} s, or took more than {total_s:g} s; send it again."
        raise TooSlow(message, code="upload_too_slow") from None
    return bytes(body)
