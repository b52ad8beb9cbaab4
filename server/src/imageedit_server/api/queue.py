"""First come, first served: the asyncio side of the gate. One edit runs, the others wait in order.

Whether an edit may in is decided before, by `gate.admission`; here nothing is refused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from imageedit_server.gate.estimate import Load
from imageedit_server.worker.protocol import EditJob, EditResult, WorkerError, WorkerFailure


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ticket:
    """A place in the queue; `answer` gets the result or the error."""

    job: EditJob
    submitted_s: float
    answer: asyncio.Future[EditResult]


class EditQueue:
    """The queue in front of one worker.

    Args:
        edit: runs one job on the card.
        now_s: monotonic seconds.
        on_change: called after each change of the load.
        on_start: called with the seconds that a job waited.
    """

    def __init__(
        self,
        *,
        edit: Callable[[EditJob], Awaitable[EditResult]],
        now_s: Callable[[], float],
        on_change: Callable[[Load], None] = lambda _: None,
        on_start: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._edit = edit
        self._now_s = now_s
        self._on_change = on_change
        self._on_start = on_start
        self._waiting: deque[Ticket] = deque()
        self._running: Ticket | None = None
        self._work = asyncio.Event()
        self._open = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def load(self) -> Load:
        """What runs and what waits now."""
        return Load(running=int(self._running is not None), waiting=len(self._waiting))

    def submit(self, job: EditJob) -> Ticket:
        """Put a job at the end of the queue."""
        answer: asyncio.Future[EditResult] = asyncio.get_running_loop().create_future()
        # A client that left looks at no error; looking here keeps asyncio from reporting it.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        ticket = Ticket(job=job, submitted_s=self._now_s(), answer=answer)
        self._waiting.append(ticket)
        self._changed()
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Drop a job that still waits; one that runs is left to finish: the card cannot be interrupted safely."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            ticket.answer.cancel()
            self._changed()

    def hold(self) -> None:
        """Start no further job: the worker is away."""
        self._open.clear()

    def release(self) -> None:
        """Start jobs: the worker is ready."""
        self._open.set()

    def fail_all(self, failure: WorkerFailure) -> None:
        """Answer every waiting job with an error: the worker does not come back."""
        self.hold()
        for ticket in self._waiting:
            ticket.answer.set_exception(WorkerError(failure))
        self._waiting.clear()
        self._changed()

    async def wait_idle(self) -> None:
        """Return once nothing runs or waits."""
        await self._idle.wait()

    async def run(self) -> None:
        """Run the jobs one after the other, for ever."""
        while True:
            await self._work.wait()
            await self._open.wait()
            if self._waiting:
                await self._run_one(self._waiting.popleft())

    async def _run_one(self, ticket: Ticket) -> None:
        self._running = ticket
        self._changed()
        self._on_start(self._now_s() - ticket.submitted_s)
        try:
            result = await self._edit(ticket.job)
        except Exception as error:
            # Not swallowed: it is the answer, and the edge that awaits it decides about log and status.
            if not ticket.answer.done():
                ticket.answer.set_exception(error)
        else:
            if not ticket.answer.done():
                ticket.answer.set_result(result)
        finally:
            self._running = None
            self._changed()

    def _changed(self) -> None:
        load = self.load
        self._set(self._work, load.waiting > 0)
        self._set(self._idle, load.running + load.waiting == 0)
        self._on_change(load)

    @staticmethod
    def _set(event: asyncio.Event, value: bool) -> None:
        if value:
            event.set()
        else:
            event.clear()
