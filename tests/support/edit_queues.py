"""A queue that runs before a worker that the test moves by hand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Protocol

from imageedit_server.api.queue import EditQueue, OnStep
from imageedit_server.worker.protocol import EditJob, EditResult


class Edits(Protocol):
    """What a queue needs of a worker."""

    def edit(self, job: EditJob, on_step: OnStep, /) -> Awaitable[EditResult]:
        """Run one edit."""

    def cancel(self, job_id: str, /) -> None:
        """End it at its next step."""


@contextlib.asynccontextmanager
async def running(worker: Edits, **options: Any) -> AsyncIterator[EditQueue]:
    """The queue, open, at a clock that stands still unless the test gives another."""
    options.setdefault("now_s", lambda: 0.0)
    queue = EditQueue(edit=worker.edit, cancel=worker.cancel, **options)
    queue.release()
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
