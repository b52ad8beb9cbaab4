"""First come, first served: the asyncio side of the gate. One edit runs, the others wait in order.

Whether an edit may in is decided before, by `gate.admission`. Several requests can hold one ticket (retries that
attached); each lets go of it once, and when nobody holds it any more the edit is given up.

From the middle of an edit on the worker has the next one in its hand, and begins it by itself: the card does not wait
until this process has heard of the end. It still counts as waiting here, and what is decided when its turn comes is
decided then: dropped, it ends at its first step.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

from imageedit_server.api.in_hand import InHand
from imageedit_server.api.line import Line
from imageedit_server.api.ticket import Ticket, TooLate
from imageedit_server.gate.estimate import Load
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.protocol import EditJob, EditResult

OnStep = Callable[[int, int], None]
Edit = Callable[[EditJob, OnStep], Awaitable[EditResult]]


class EditQueue:
    """The queue in front of one worker; `line` is for those who look at it.

    Args:
        edit: runs one job on the card, and tells each step.
        cancel: ends the job on the card at its next step.
        now_s: monotonic seconds.
        expected_s: seconds that a job is expected to take.
        steps: steps of a job whose client did not choose, given how many wait behind it.
        on_change: called after each change of the load.
        on_start: called with the seconds that a job waited.
        on_turn: called when a turn is over, with the ticket and the time, in the context of who asked.
        on_drop: called for each job that was dropped: "too_late" when its turn came; for nobody any more:
            "client_gone" while it waited, "cancelled" while it ran.
    """

    def __init__(
        self,
        *,
        edit: Edit,
        now_s: Callable[[], float],
        cancel: Callable[[str], None] = lambda _: None,
        expected_s: Callable[[EditJob], float] = lambda _: 0.0,
        steps: Callable[[EditJob, int], int] = lambda job, _: job.steps,
        on_change: Callable[[Load], None] = lambda _: None,
        on_start: Callable[[float], None] = lambda _: None,
        on_turn: Callable[[Ticket, float], None] = lambda *_: None,
        on_drop: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._edit = edit
        self._cancel = cancel
        self._now_s = now_s
        self._steps = steps
        self._on_change = on_change
        self._on_start = on_start
        self._on_turn = on_turn
        self._on_drop = on_drop
        self.line = Line(now_s=now_s, expected_s=expected_s)
        self._in_hand = InHand(edit=self._sent, cancel=cancel)
        self._work = asyncio.Event()
        self._open = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def now_s(self) -> float:
        """The queue's clock, in which deadlines are given."""
        return self._now_s()

    def submit(
        self,
        job: EditJob,
        *,
        deadline_s: float = math.inf,
        steps_open: bool = False,
        linger_s: float = 0.0,
        before_start: Callable[[], Awaitable[None]] | None = None,
        of_job: bool = False,
    ) -> Ticket:
        """Put a job at the end of the queue; the arguments are those of `Ticket`."""
        ticket = Ticket(
            job,
            submitted_s=self._now_s(),
            deadline_s=deadline_s,
            steps_open=steps_open,
            linger_s=linger_s,
            before_start=before_start,
            of_job=of_job,
        )
        self.line.waiting.append(ticket)
        self._changed()
        self._hand_over()
        return ticket

    def attach(self, ticket: Ticket, *, deadline_s: float = math.inf) -> None:
        """One more request holds the ticket."""
        ticket.holders.append(deadline_s)
        ticket.stay()

    def withdraw(self, ticket: Ticket, *, deadline_s: float = math.inf) -> None:
        """One request lets go of the ticket. When it was the last, the edit is given up: one that waits is dropped,
        one that runs ends at its next step. With a time to linger, that happens when it is over."""
        with contextlib.suppress(ValueError):
            ticket.holders.remove(deadline_s)
        if ticket.holders or ticket.answer.done() or ticket.lingering is not None:
            return
        if ticket.linger_s > 0:
            loop = asyncio.get_running_loop()
            ticket.lingering = loop.call_later(ticket.linger_s, self._give_up, ticket)
        else:
            self._give_up(ticket)

    def hold(self) -> None:
        """Start no further job: the worker is away."""
        self._open.clear()

    def release(self) -> None:
        """Start jobs: the worker is ready."""
        self._open.set()

    def fail_all(self, failure: WorkerFailure) -> None:
        """Answer every waiting job with an error: the worker does not come back."""
        self.hold()
        for ticket in self.line.waiting:
            ticket.settle(WorkerError(failure))
        self.line.waiting.clear()
        self._in_hand.forget()
        self._changed()

    async def wait_idle(self) -> None:
        """Return once nothing runs or waits."""
        await self._idle.wait()

    async def run(self) -> None:
        """Run the jobs one after the other, for ever."""
        while True:
            await self._work.wait()
            await self._open.wait()
            if self.line.waiting:
                await self._run_one(self.line.waiting.popleft())

    async def _run_one(self, ticket: Ticket) -> None:
        self.line.running = ticket
        try:
            if self._may_start(ticket):
                self._changed()
                await self._prepare(ticket)
                # Its last holder may have let go meanwhile.
                if not ticket.answer.done():
                    ticket.settle(await self._on_card(ticket))
        except Exception as error:
            # Not swallowed: it is the answer, and the edge that awaits it decides about log and status.
            ticket.settle(error)
        finally:
            ticket.asked_in.run(self._on_turn, ticket, self._now_s())
            self.line.running = None
            self._changed()

    async def _prepare(self, ticket: Ticket) -> None:
        if ticket.before_start is not None:
            await ticket.before_start()
        if ticket.steps_open and not self._in_hand.holds(ticket):
            ticket.job = replace(ticket.job, steps=self._steps(ticket.job, len(self.line.waiting)))

    async def _on_card(self, ticket: Ticket) -> EditResult:
        ticket.started_s = self._now_s()
        self._on_start(ticket.started_s - ticket.submitted_s)
        return await self._in_hand.done(ticket)

    def _sent(self, ticket: Ticket) -> Awaitable[EditResult]:
        def on_step(step: int, _steps: int) -> None:
            ticket.step = step
            self._hand_over()

        return self._edit(ticket.job, on_step)

    # | the running edit | the first that waits            | the worker gets it |
    # | ---------------- | ------------------------------- | ------------------ |
    # | none, first half | any                             | no                 |
    # | second half      | must note its start on disk     | no, at its turn    |
    # | second half      | would come too late             | no, at its turn    |
    # | second half      | other                           | yes                |
    def _hand_over(self) -> None:
        """Let the worker have the next edit while it still does this one."""
        line, running = self.line, self.line.running
        if running is None or not self._in_hand.empty or not line.waiting or not self._open.is_set():
            return
        if 2 * running.step < running.job.steps:
            return
        ticket = line.waiting[0]
        if ticket.before_start is not None or not ticket.holders or line.too_late(ticket, after_s=line.running_left_s):
            return
        if ticket.steps_open:
            ticket.job = replace(ticket.job, steps=self._steps(ticket.job, len(line.waiting) - 1))
        self._in_hand.give(ticket)

    def _may_start(self, ticket: Ticket) -> bool:
        if not ticket.holders:
            self._in_hand.take_back(ticket)
            self._drop(ticket, "client_gone")
            return False
        if self.line.too_late(ticket, after_s=0.0):
            self._in_hand.take_back(ticket)
            ticket.settle(TooLate())
            self._on_drop("too_late")
            return False
        return True

    def _give_up(self, ticket: Ticket) -> None:
        ticket.lingering = None
        if ticket.holders or ticket.answer.done():
            return
        if ticket in self.line.waiting:
            self.line.waiting.remove(ticket)
            self._in_hand.take_back(ticket)
            self._drop(ticket, "client_gone")
            self._changed()
        elif ticket is self.line.running:
            self._cancel(ticket.job.job_id)
            self._drop(ticket, "cancelled")

    def _drop(self, ticket: Ticket, why: str) -> None:
        """Nobody looks at the answer, and no later request may attach to it."""
        ticket.answer.cancel()
        self._on_drop(why)

    def _changed(self) -> None:
        load = self.line.load
        self._set(self._work, load.waiting > 0)
        self._set(self._idle, load.running + load.waiting == 0)
        self._on_change(load)

    @staticmethod
    def _set(event: asyncio.Event, value: bool) -> None:
        if value:
            event.set()
        else:
            event.clear()
