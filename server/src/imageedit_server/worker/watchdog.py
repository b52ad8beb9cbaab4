"""Notices a worker that says nothing about its edit any more."""

import asyncio
from collections.abc import Callable

from imageedit_server.worker.protocol import Warmed
from imageedit_server.worker.running_edit import RunningEdit


class Watchdog:
    """Watches edits that the worker does.

    Args:
        factor: how many times the longest silence of its shape's warm-up an edit may be silent;
        floor_s: but always this long.
        on_hang: called with an edit that is silent for longer.
    """

    def __init__(self, *, factor: float, floor_s: float, on_hang: Callable[[RunningEdit], None]) -> None:
        self._factor = factor
        self._floor_s = floor_s
        self._on_hang = on_hang
        self._tasks: set[asyncio.Task[None]] = set()

    def limit_s(self, warmed: Warmed | None) -> float:
        """How long an edit of a shape may be silent."""
        return max(self._floor_s, self._factor * (0.0 if warmed is None else warmed.silence_s))

    def watch(self, edit: RunningEdit) -> None:
        """Watch an edit until it is answered."""

        async def call_if_it_hangs() -> None:
            if await edit.hangs():
                self._on_hang(edit)

        task = asyncio.create_task(call_if_it_hangs(), name="worker-watchdog")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self) -> None:
        """Watch no more."""
        for task in list(self._tasks):
            task.cancel()
