"""The one job that a worker process has: its answer, its listener and its signs of life."""

import asyncio
import logging
from collections.abc import Callable

from imageedit_server.logs import fields
from imageedit_server.worker.protocol import EditJob, EditResult

StepCallback = Callable[[int, int], None]

log = logging.getLogger("imageedit.supervisor")


class RunningEdit:
    """A job that was sent to the worker and is not answered yet."""

    def __init__(self, job: EditJob, on_step: StepCallback | None, *, silence_limit_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.job = job
        self.on_step = on_step
        self.silence_limit_s = silence_limit_s
        self.answer: asyncio.Future[EditResult] = loop.create_future()
        # A caller that went away leaves nobody to look at the error; looking here keeps asyncio from reporting it.
        self.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        self._last_sign_at_s = loop.time()

    def heard(self) -> None:
        """Note a sign of life."""
        self._last_sign_at_s = asyncio.get_running_loop().time()

    def report(self, step: int, steps: int) -> None:
        """Tell the listener about a step."""
        if self.on_step is None:
            return
        try:
            self.on_step(step, steps)
        except Exception:  # a faulty listener costs its own progress, not the worker
            log.exception("step_listener_failed", extra=fields(job_id=self.job.job_id))
            self.on_step = None

    async def hangs(self) -> bool:
        """Wait until the job is answered (False) or nothing was heard of it for too long (True)."""
        while not self.answer.done():
            left_s = self._last_sign_at_s + self.silence_limit_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return True
            await asyncio.wait([self.answer], timeout=left_s)
        return False
