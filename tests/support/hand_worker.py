"""A worker whose edits end when the test says so."""

from __future__ import annotations

import asyncio

from imageedit_server.api.queue import OnStep
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.shapes import Size

LOST = WorkerFailure(reason="WorkerLost", message="gone", sticky=True)
CANCELLED = WorkerFailure(reason="Cancelled", message="cancelled", sticky=False)


def job(name: str, *, steps: int = 4, seed: int = 0) -> EditJob:
    return EditJob(job_id=name, picture=b"", size=Size(32, 32), prompt="p", steps=steps, seed=seed)


class HandWorker:
    """Counts what runs at once. Like the real one it ends a cancelled job at its next step, and no other."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.steps: list[int] = []
        self.cancelled: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.running: EditJob | None = None
        self._end: asyncio.Future[EditResult] | None = None
        self._on_step: OnStep | None = None

    async def edit(self, wanted: EditJob, on_step: OnStep) -> EditResult:
        self.started.append(wanted.job_id)
        self.steps.append(wanted.steps)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.running, self._on_step = wanted, on_step
        self._end = asyncio.get_running_loop().create_future()
        try:
            return await self._end
        finally:
            self.at_once -= 1
            self.running = None

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)

    def step(self, number: int = 1) -> None:
        assert self.running is not None
        assert self._on_step is not None
        if self.running.job_id in self.cancelled:
            self.fail(WorkerError(CANCELLED))
        else:
            self._on_step(number, self.running.steps)

    def finish(self, picture: bytes = b"") -> None:
        assert self.running is not None
        assert self._end is not None
        name, steps = self.running.job_id, self.running.steps
        self._end.set_result(EditResult(job_id=name, picture=picture or name.encode(), seconds=1.0, steps=steps))

    def fail(self, error: Exception) -> None:
        assert self._end is not None
        self._end.set_exception(error)


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)
