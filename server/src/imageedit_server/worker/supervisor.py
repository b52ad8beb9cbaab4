"""Keeps one worker process loaded and warm, from inside the API process; never blocks its event loop."""

import asyncio
import contextlib
import logging
from asyncio.subprocess import Process
from collections.abc import Callable

from imageedit_server.logs import fields
from imageedit_server.worker.channel import Channel
from imageedit_server.worker.failures import NotStarted, Reason, WorkerError, WorkerFailure, away, lost, too_slow
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.process import describe_exit, end_process, start_process
from imageedit_server.worker.protocol import (
    CancelJob,
    EditJob,
    EditResult,
    EngineSettings,
    JobFailed,
    Loading,
    LoadReport,
    StepDone,
    WarmReport,
)
from imageedit_server.worker.restarts import may_restart
from imageedit_server.worker.running_edit import RunningEdit, StepCallback
from imageedit_server.worker.sent_edits import SentEdits
from imageedit_server.worker.watchdog import Watchdog

_EXIT_GRACE_S = 0.5  # between the end of a worker's pipe, or its last word, and its exit

log = logging.getLogger("imageedit.supervisor")


class Worker:
    """One worker process, replaced when it is lost. All methods belong to one event loop.

    `max_restarts` within `restart_window_s` are allowed. A worker that is silent about an edit for longer than
    `hang_factor` times the longest silence of that shape's warm-up (a step, or what comes before and after them), and
    at least `hang_floor_s`, is killed; so is one that is not warm after `start_deadline_s`. `on_change` is called with
    each new phase, `on_failure` with the reason of each failed edit and each lost worker, once for each.
    """

    def __init__(
        self,
        settings: EngineSettings,
        *,
        max_restarts: int = 3,
        restart_window_s: float = 300.0,
        hang_factor: float = 10.0,
        hang_floor_s: float = 30.0,
        start_deadline_s: float = 1800.0,
        on_change: Callable[[WorkerPhase], None] = lambda _: None,
        on_failure: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._max_restarts = max_restarts
        self._restart_window_s = restart_window_s
        self._start_deadline_s = start_deadline_s
        self._on_change = on_change
        self._on_failure = on_failure
        self._process: Process | None = None
        self._channel: Channel | None = None
        self._task: asyncio.Task[None] | None = None
        self._watchdog = Watchdog(factor=hang_factor, floor_s=hang_floor_s, on_hang=self._kill)
        self._edits = SentEdits(on_begin=self._watchdog.watch)
        self._losses_at_s: list[float] = []
        self._why_killed: str | None = None
        self.phase = WorkerPhase.STARTING
        self.load: LoadReport | None = None
        self.warm: WarmReport | None = None
        self.failure: WorkerFailure | None = None
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """Process id of the worker that lives now."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    async def start(self) -> None:
        """Start the worker and return at once; it loads and warms in the background."""
        self._task = asyncio.create_task(self._keep_one_alive(), name="worker-supervisor")

    async def edit(self, job: EditJob, *, on_step: StepCallback | None = None) -> EditResult:
        """Run one edit.

        One at a time, and one more that the worker has in its hand meanwhile, so that the card need not wait for it;
        a third waits here. A caller that is cancelled leaves its job running.

        Raises:
            NotStarted: no worker is ready, or it was lost before it began this edit.
            WorkerError: the edit failed or was cancelled, or the worker was lost while it ran.
        """
        await self._edits.room_for(job.job_id)
        if self.phase is not WorkerPhase.READY or self.pid is None or self._channel is None or self.warm is None:
            raise NotStarted(self.failure or away(f"the worker is {self.phase.value}; try again in a moment"))
        edit = RunningEdit(job, on_step, silence_limit_s=self._watchdog.limit_s(self.warm.warmed(job.shape)))
        self._edits.add(edit)
        with contextlib.suppress(ConnectionError):  # a worker that just died is answered for by the supervising task
            await self._channel.send(job)
        return await asyncio.shield(edit.answer)

    def cancel(self, job_id: str) -> None:
        """End the running job at its next step, or one that waits before its first: its `edit` raises `Cancelled`, and
        the worker goes on.

        A job that is neither, or whose last step is done, ends by itself.
        """
        if not self._edits.call_off(job_id) or self.pid is None or self._channel is None:
            return
        with contextlib.suppress(ConnectionError):
            self._channel.write(CancelJob(job_id=job_id))

    async def stop(self) -> None:
        """End the worker process and wait until it is gone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._edits.lost("WorkerLost", "the server is stopping")
        self._watchdog.end()

    async def _keep_one_alive(self) -> None:
        try:
            failure = await self._run_one_process()
            while failure is None and self._may_restart():
                self.restarts += 1
                failure = await self._run_one_process()
            if failure is not None:
                self._on_failure(failure.reason)
        except Exception as error:  # a supervisor that ends in silence would leave a pod that waits for ever
            log.exception("supervisor_failed")
            failure = lost(f"the worker cannot be supervised: {type(error).__name__}: {error}")
        self._fail(failure or lost(f"the worker was lost {self.restarts + 1} times; its log says why each time"))

    def _may_restart(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        self._losses_at_s.append(now_s)
        return may_restart(
            self._losses_at_s, now_s=now_s, max_restarts=self._max_restarts, window_s=self._restart_window_s
        )

    async def _run_one_process(self) -> WorkerFailure | None:
        """Start a process and follow it to its end; return a failure only if a new one would fail alike."""
        self._why_killed = None
        self.warm = None
        process, areas = await start_process(self._settings)
        channel = Channel(process, areas)
        self._process, self._channel = process, channel
        try:
            failure = await self._follow_in_time(channel)
            await end_process(process, grace_s=_EXIT_GRACE_S)
        finally:
            await end_process(process)
            self._channel = None
            channel.close()
        if failure is None:
            why = self._why_killed or f"it ended with {describe_exit(process.returncode or 0)}"
            log.error("worker_lost", extra=fields(pid=process.pid, why=why))
            if self._why_killed is None:
                self._on_failure("WorkerLost")
            self._edits.lost("WorkerLost", why)
        return failure

    async def _follow_in_time(self, channel: Channel) -> WorkerFailure | None:
        try:
            async with asyncio.timeout(self._start_deadline_s) as deadline:
                return await self._follow(channel, when_ready=lambda: deadline.reschedule(None))
        except TimeoutError:
            return too_slow(self._start_deadline_s, warming=self.phase is WorkerPhase.WARMING)

    async def _follow(self, channel: Channel, *, when_ready: Callable[[], None]) -> WorkerFailure | None:
        while True:
            try:
                message = await channel.receive()
            except EOFError:
                self._enter(WorkerPhase.RESTARTING)
                return None
            match message:
                case Loading():
                    self._enter(WorkerPhase.LOADING)
                case LoadReport():
                    self.load = message
                    self._enter(WorkerPhase.WARMING)
                case WarmReport():
                    self.warm = message
                    if message.check_ok:
                        when_ready()
                        self._enter(WorkerPhase.READY)
                case StepDone() | EditResult() | JobFailed():
                    self._hear(message)
                case WorkerFailure():
                    return message

    def _hear(self, message: StepDone | EditResult | JobFailed) -> None:
        edit = self._edits.heard_of(message.job_id)
        if edit is None:
            return
        match message:
            case StepDone(step=step, steps=steps):
                edit.report(step, steps)
            case EditResult():
                self._edits.ended()
                edit.answer.set_result(message)
            case JobFailed(failure=failure):
                self._hear_failure(edit, failure)

    def _hear_failure(self, edit: RunningEdit, failure: WorkerFailure) -> None:
        if failure.reason != "Cancelled":
            self._on_failure(failure.reason)
        edit.answer.set_exception(WorkerError(failure))
        if failure.sticky:
            self._give_up("WorkerLost", failure.message)
        else:
            self._edits.ended()

    def _kill(self, edit: RunningEdit) -> None:
        self._on_failure("Hung")
        # A process that hangs inside a driver may outlive even SIGKILL: answer before it is gone.
        self._give_up("Hung", f"nothing was heard of it for {edit.silence_limit_s:.1f} s")
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None:
                self._process.kill()

    def _give_up(self, reason: Reason, why: str) -> None:
        """This process takes no further edit, whenever it ends."""
        self._why_killed = why
        self._enter(WorkerPhase.RESTARTING)
        self._edits.lost(reason, why)

    def _fail(self, failure: WorkerFailure) -> None:
        log.error("worker_failed", extra=fields(reason=failure.reason, message=failure.message))
        self.failure = failure
        self._edits.lost("WorkerLost", failure.message)
        self._enter(WorkerPhase.FAILED)

    def _enter(self, phase: WorkerPhase) -> None:
        if phase is self.phase:
            return
        self.phase = phase
        self._on_change(phase)
