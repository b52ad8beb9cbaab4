"""A place in the queue."""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Awaitable, Callable

from imageedit_server.worker.protocol import EditJob, EditResult


class TooLate(Exception):
    """The edit's turn came when its client could no longer get it in time; it was not run."""


class Ticket:
    """A place in the queue; `answer` gets the result or the error, and `job` is what runs or ran.

    Args:
        deadline_s: monotonic time until which the first holder waits; infinite for any time.
        steps_open: the client did not choose the steps.
        linger_s: how long the edit is kept when nobody holds it, for a retry that attaches.
        before_start: awaited when the edit's turn has come, before it goes to the card.
        of_job: it is no request's, and takes none of their places.
    """

    def __init__(
        self,
        job: EditJob,
        *,
        submitted_s: float,
        deadline_s: float,
        steps_open: bool,
        linger_s: float,
        before_start: Callable[[], Awaitable[None]] | None,
        of_job: bool = False,
    ) -> None:
        self.job = job
        self.submitted_s = submitted_s
        self.steps_open = steps_open
        self.linger_s = linger_s
        self.before_start = before_start
        self.of_job = of_job
        self.started_s: float | None = None
        self.step = 0
        self.answer: asyncio.Future[EditResult] = asyncio.get_running_loop().create_future()
        # A client that left looks at no error; looking here keeps asyncio from reporting it.
        self.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.holders: list[float] = [deadline_s]
        """Deadline of each request that waits for the answer."""
        self.lingering: asyncio.TimerHandle | None = None
        self.asked_in = contextvars.copy_context()
        """The context of who asked first: what is told of this edit belongs to its trace."""

    @property
    def deadline_s(self) -> float:
        """Until when somebody waits."""
        return max(self.holders, default=-math.inf)

    def stay(self) -> None:
        """Not to be given up after its time to linger: somebody holds it again, or it is answered."""
        if self.lingering is not None:
            self.lingering.cancel()
            self.lingering = None

    def settle(self, answer: EditResult | Exception) -> None:
        """Answer everybody who waits for it, unless it was given up."""
        self.stay()
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)
