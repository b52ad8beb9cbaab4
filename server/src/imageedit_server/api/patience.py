"""Waiting for the other side of a connection, and no longer than its bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Patience:
    """One wait at a time; a new one ends the one before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Something is waited for."""
        return self._timer is not None

    def wait(self, seconds: float, then: Callable[[], None]) -> None:
        """Call `then` unless the wait ends before."""

        def over() -> None:
            self._timer = None
            then()

        self.end()
        self._timer = self._loop.call_later(seconds, over)

    def end(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Unsent:
    """Gives a connection up whose client takes nothing of what was written."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, *, seconds: float) -> None:
        self._patience = Patience(loop)
        self._transport = transport
        self._seconds = seconds

    def watch(self) -> None:
        """From now on something must go out within each period."""
        left_bytes = self._transport.get_write_buffer_size()

        def look() -> None:
            if self._transport.get_write_buffer_size() < left_bytes:
                self.watch()
            else:
                self._transport.abort()

        self._patience.wait(self._seconds, look)

    def end(self) -> None:
        """All is out, or the connection is gone."""
        self._patience.end()
