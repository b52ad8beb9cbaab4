"""The edit that the worker has beside the one it does, so that it can go on without asking."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from imageedit_server.api.ticket import Ticket
from imageedit_server.worker.failures import NotStarted
from imageedit_server.worker.protocol import EditResult


class InHand:
    """At most one edit that was sent ahead of its turn.

    Args:
        edit: sends it to the worker, and waits for its result.
        cancel: tells the worker not to do it, or to end it at its next step.
    """

    def __init__(self, *, edit: Callable[[Ticket], Awaitable[EditResult]], cancel: Callable[[str], None]) -> None:
        self._edit = edit
        self._cancel = cancel
        self._ticket: Ticket | None = None
        self._result: asyncio.Future[EditResult] | None = None

    @property
    def empty(self) -> bool:
        """Nothing was sent ahead."""
        return self._ticket is None

    def holds(self, ticket: Ticket) -> bool:
        """Whether this edit was sent ahead."""
        return self._ticket is ticket

    def give(self, ticket: Ticket) -> None:
        """Send an edit ahead."""
        self._ticket, self._result = ticket, asyncio.ensure_future(self._edit(ticket))
        # Nobody may be left to look at its error.
        self._result.add_done_callback(lambda done: done.cancelled() or done.exception())

    def take_back(self, ticket: Ticket) -> None:
        """This edit shall not be done, if it was sent ahead."""
        if self.holds(ticket) and self._result is not None:
            # It may still be on its way: the worker takes no third one. Nobody waits for its result any more.
            self._result.cancel()
            self.forget()
            self._cancel(ticket.job.job_id)

    def forget(self) -> None:
        """There is no worker any more."""
        self._ticket = self._result = None

    async def done(self, ticket: Ticket) -> EditResult:
        """The result of an edit whose turn has come, sent ahead or not.

        One that was sent ahead to a worker that was lost before it came to it is done by the next worker.
        """
        if self.holds(ticket) and self._result is not None:
            result = self._result
            self.forget()
            try:
                return await result
            except NotStarted:
                pass
        return await self._edit(ticket)
