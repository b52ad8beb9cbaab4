"""The edits that were sent to the worker and are not answered: the one that it does, and the one in its hand.

The worker goes from the first to the second by itself, so that the card need not wait for this process.
"""

import asyncio
from collections.abc import Callable

from imageedit_server.worker.failures import CANCELLED, NotStarted, Reason, WorkerError, away, lost
from imageedit_server.worker.running_edit import RunningEdit


class SentEdits:
    """At most two edits. All methods belong to one event loop.

    Args:
        on_begin: called with each edit that the worker begins.
    """

    def __init__(self, *, on_begin: Callable[[RunningEdit], None]) -> None:
        self._on_begin = on_begin
        self._running: RunningEdit | None = None
        self._in_hand: RunningEdit | None = None
        self._wait_for_room: set[str] = set()

    async def room_for(self, job_id: str) -> None:
        """Wait until there is no more than one.

        Raises:
            WorkerError: it was called off meanwhile.
        """
        self._wait_for_room.add(job_id)
        try:
            while self._running is not None and self._in_hand is not None:
                await asyncio.wait([self._running.answer])
            if job_id not in self._wait_for_room:
                raise WorkerError(CANCELLED)
        finally:
            self._wait_for_room.discard(job_id)

    def add(self, edit: RunningEdit) -> None:
        """One more is sent, for which there is room."""
        if self._running is None:
            self._begin(edit)
        else:
            self._in_hand = edit

    def call_off(self, job_id: str) -> bool:
        """One that waits for room needs none any more; True for one that was sent, which the worker must be told."""
        self._wait_for_room.discard(job_id)
        return job_id in [edit.job.job_id for edit in (self._running, self._in_hand) if edit is not None]

    def heard_of(self, job_id: str) -> RunningEdit | None:
        """Note a sign of life of the edit that the worker does; None for one that was answered before."""
        edit = self._running
        if edit is None or edit.job.job_id != job_id:
            return None
        edit.heard()
        return edit

    def ended(self) -> None:
        """The worker has ended an edit, and begins the one in its hand."""
        self._running, following, self._in_hand = None, self._in_hand, None
        if following is not None:
            self._begin(following)

    def lost(self, reason: Reason, why: str) -> None:
        """The worker answers nothing any more; the one in its hand may be done by another."""
        running, self._running = self._running, None
        if running is not None and not running.answer.done():
            failure = lost(f"the worker was lost during the edit: {why}", reason=reason)
            running.answer.set_exception(WorkerError(failure))
        in_hand, self._in_hand = self._in_hand, None
        if in_hand is not None and not in_hand.answer.done():
            in_hand.answer.set_exception(NotStarted(away(f"the worker was lost before the edit began: {why}")))

    def _begin(self, edit: RunningEdit) -> None:
        self._running = edit
        edit.heard()
        self._on_begin(edit)
