"""The one job that a worker process has: its answer, its listener and its signs of life."""

import asyncio
import logging
from collections.abc import Callable

from imageedit_server.logs import fields
from imageedit_server.worker.protocol import EditJob, EditResult

StepCallback = Callable[[int, int], None]

LOOK_S = 1.0
"""Between two looks at a silent edit. One that comes later than that again comes from a process that stood still."""

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

    # | since the last sign of life                      | it hangs |
    # | the limit has passed while this process ran      | yes      |
    # | it has passed, but this process stood still      | not yet  |
    # | the job was answered                             | no       |
    # A frozen container or machine stops both processes: what was not heard then may come as soon as they go on.
    async def hangs(self) -> bool:
        """Wait until the job is answered (False) or nothing was heard of it for too long (True)."""
        loop = asyncio.get_running_loop()
        while not self.answer.done():
            began_s = loop.time()
            left_s = self._last_sign_at_s + self.silence_limit_s - began_s
            if left_s <= 0:
                return True
            asked_s = min(left_s, LOOK_S)
            await asyncio.wait([self.answer], timeout=asked_s)
            late_s = loop.time() - began_s - asked_s
            if late_s > LOOK_S:
                self._last_sign_at_s = min(loop.time(), self._last_sign_at_s + late_s)
        return False
