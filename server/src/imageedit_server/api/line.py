"""Who is on the card and who waits for it, and how long all that will take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from imageedit_server.api.ticket import Ticket
from imageedit_server.gate.admission import Work, too_late
from imageedit_server.gate.estimate import Load, ahead_s, remaining_s
from imageedit_server.worker.protocol import EditJob


class Line:
    """The tickets of one card; the queue moves them, everybody may look.

    Args:
        now_s: monotonic seconds.
        expected_s: seconds that a job is expected to take.
    """

    def __init__(self, *, now_s: Callable[[], float], expected_s: Callable[[EditJob], float]) -> None:
        self._now_s = now_s
        self._expected_s = expected_s
        self.running: Ticket | None = None
        self.waiting: deque[Ticket] = deque()

    @property
    def load(self) -> Load:
        """What runs and what waits now."""
        return Load(running=int(self.running is not None), waiting=len(self.waiting))

    @property
    def work(self) -> Work:
        """All that is in now, as admission looks at it."""
        lefts = [(self.running, self.running_left_s), *((one, self._expected_s(one.job)) for one in self.waiting)]
        of_jobs = [left_s for ticket, left_s in lefts if ticket is not None and ticket.of_job]
        ahead_s = sum(left_s for _, left_s in lefts)
        return Work(load=self.load, ahead_s=ahead_s, jobs=len(of_jobs), jobs_s=sum(of_jobs))

    @property
    def running_left_s(self) -> float:
        """Seconds until the card is through with the edit that runs."""
        return self._left_s(0)

    @property
    def ahead_s(self) -> float:
        """Seconds until the card is through with all that is in now."""
        return self._left_s(len(self.waiting))

    def place(self, ticket: Ticket) -> int | None:
        """How many edits are before this one, the running one included; None when it waits no more."""
        if ticket not in self.waiting:
            return None
        return self.waiting.index(ticket) + int(self.running is not None)

    def starts_in_s(self, ticket: Ticket) -> float:
        """Seconds until a ticket's turn; 0 when it waits no more."""
        return self._left_s(self.waiting.index(ticket)) if ticket in self.waiting else 0.0

    def too_late(self, ticket: Ticket, *, after_s: float) -> bool:
        """Whether a turn that comes after so many seconds would end too late for all who wait for it."""
        left_s = ticket.deadline_s - self._now_s() - after_s
        return too_late(left_s=left_s, own_s=self._expected_s(ticket.job), others_wait=bool(self.waiting))

    def _left_s(self, count: int) -> float:
        """Seconds until the card is through with the running edit and the first `count` that wait."""
        running, left_s = self.running, 0.0
        if running is not None:
            started_s = self._now_s() if running.started_s is None else running.started_s
            left_s = remaining_s(expected_s=self._expected_s(running.job), elapsed_s=self._now_s() - started_s)
        waiting = (ticket for _, ticket in zip(range(count), self.waiting, strict=False))
        return ahead_s(running_left_s=left_s, waiting_s=(self._expected_s(ticket.job) for ticket in waiting))
