"""Keeps one worker process loaded and warm, from inside the API process; never blocks its event loop.

start ─▶ STARTING ─▶ LOADING ─▶ WARMING ─▶ READY
            ▲                                │ the process is gone, hangs, or has a sticky fault
            └────────── RESTARTING ◀─────────┘
the model or the device is unusable, or too many losses ─▶ FAILED (for good)
"""

import asyncio
import contextlib
import logging
from asyncio.subprocess import Process
from collections.abc import Callable
from enum import Enum

from imageedit_server.logs import fields
from imageedit_server.worker.failures import CANCELLED, away, lost, too_slow
from imageedit_server.worker.framing import pack, read_message
from imageedit_server.worker.process import describe_exit, end_process, start_process
from imageedit_server.worker.protocol import (
    CancelJob,
    EditJob,
    EditResult,
    EngineSettings,
    JobFailed,
    Loading,
    LoadReport,
    NotStarted,
    Reason,
    StepDone,
    ToWorker,
    WarmReport,
    WorkerError,
    WorkerFailure,
)
from imageedit_server.worker.restarts import may_restart
from imageedit_server.worker.running_edit import RunningEdit, StepCallback
from imageedit_server.worker.shared import Areas

_EXIT_GRACE_S = 0.5  # between the end of a worker's pipe, or its last word, and its exit

log = logging.getLogger("imageedit.supervisor")


class WorkerPhase(Enum):
    """Where the worker stands; the values are the words of `/healthz`."""

    STARTING = "starting"
    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"


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
        on_change: Callable[[WorkerPhase], None] | None = None,
        on_failure: Callable[[Reason], None] | None = None,
    ) -> None:
        self._settings = settings
        self._max_restarts = max_restarts
        self._restart_window_s = restart_window_s
        self._hang_factor = hang_factor
        self._hang_floor_s = hang_floor_s
        self._start_deadline_s = start_deadline_s
        self._on_change = on_change
        self._on_failure = on_failure
        self._process: Process | None = None
        self._areas: Areas | None = None
        self._task: asyncio.Task[None] | None = None
        self._running: RunningEdit | None = None
        self._in_hand: RunningEdit | None = None
        self._wait_for_room: set[str] = set()
        self._watchdogs: set[asyncio.Task[None]] = set()
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
        await self._room_for(job.job_id)
        if self.phase is not WorkerPhase.READY or self.pid is None or self.warm is None:
            raise NotStarted(self.failure or away(f"the worker is {self.phase.value}; try again in a moment"))
        warmed = self.warm.warmed(job.shape)
        silence_s = warmed.silence_s if warmed is not None else 0.0
        running = RunningEdit(job, on_step, silence_limit_s=max(self._hang_floor_s, self._hang_factor * silence_s))
        if self._running is None:
            self._begin(running)
        else:
            self._in_hand = running
        with contextlib.suppress(ConnectionError):  # a worker that just died is answered for by the supervising task
            await self._send(job)
        return await asyncio.shield(running.answer)

    def cancel(self, job_id: str) -> None:
        """End the running job at its next step, or one that waits before its first: its `edit` raises `Cancelled`, and
        the worker goes on.

        A job that is neither, or whose last step is done, ends by itself.
        """
        self._wait_for_room.discard(job_id)
        known = [one.job.job_id for one in (self._running, self._in_hand) if one is not None]
        if job_id not in known or self.pid is None:
            return
        with contextlib.suppress(ConnectionError):
            self._write(CancelJob(job_id=job_id))

    async def stop(self) -> None:
        """End the worker process and wait until it is gone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._answer_lost("WorkerLost", "the server is stopping")
        for watchdog in list(self._watchdogs):
            watchdog.cancel()

    async def _keep_one_alive(self) -> None:
        try:
            failure = await self._run_one_process()
            while failure is None and self._may_restart():
                self.restarts += 1
                failure = await self._run_one_process()
            if failure is not None:
                self._count(failure.reason)
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
        self._process, self._areas = process, areas
        try:
            failure = await self._follow_in_time(process, areas)
            await end_process(process, grace_s=_EXIT_GRACE_S)
        finally:
            await end_process(process)
            self._areas = None
            areas.close()
        if failure is None:
            why = self._why_killed or f"it ended with {describe_exit(process.returncode or 0)}"
            log.error("worker_lost", extra=fields(pid=process.pid, why=why))
            if self._why_killed is None:
                self._count("WorkerLost")
            self._answer_lost("WorkerLost", why)
        return failure

    async def _follow_in_time(self, process: Process, areas: Areas) -> WorkerFailure | None:
        try:
            async with asyncio.timeout(self._start_deadline_s) as deadline:
                return await self._follow(process, areas, when_ready=lambda: deadline.reschedule(None))
        except TimeoutError:
            return too_slow(self._start_deadline_s, warming=self.phase is WorkerPhase.WARMING)

    async def _follow(self, process: Process, areas: Areas, *, when_ready: Callable[[], None]) -> WorkerFailure | None:
        assert process.stdout is not None
        while True:
            try:
                message = await read_message(process.stdout, areas.incoming)
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
        running = self._running
        if running is None or running.job.job_id != message.job_id:
            return
        running.heard()
        match message:
            case StepDone(step=step, steps=steps):
                running.report(step, steps)
            case EditResult():
                self._begin_what_is_in_hand()
                running.answer.set_result(message)
            case JobFailed(failure=failure):
                if failure.reason != "Cancelled":
                    self._count(failure.reason)
                if failure.sticky:
                    self._running = None
                    self._enter(WorkerPhase.RESTARTING)
                    self._why_killed = failure.message
                    self._answer_lost("WorkerLost", failure.message)
                else:
                    self._begin_what_is_in_hand()
                running.answer.set_exception(WorkerError(failure))

    async def _room_for(self, job_id: str) -> None:
        """Wait until the worker has no more than one edit."""
        self._wait_for_room.add(job_id)
        try:
            while self._running is not None and self._in_hand is not None:
                await asyncio.wait([self._running.answer])
            if job_id not in self._wait_for_room:
                raise WorkerError(CANCELLED)
        finally:
            self._wait_for_room.discard(job_id)

    def _begin(self, running: RunningEdit) -> None:
        self._running = running
        running.heard()
        self._watch(running)

    def _begin_what_is_in_hand(self) -> None:
        """The worker has ended an edit and goes on with the next by itself."""
        self._running, following, self._in_hand = None, self._in_hand, None
        if following is not None:
            self._begin(following)

    async def _send(self, job: EditJob) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._write(job)
        await self._process.stdin.drain()

    def _write(self, message: ToWorker) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        area = None if self._areas is None else self._areas.outgoing
        self._process.stdin.write(pack(message, area))

    def _watch(self, running: RunningEdit) -> None:
        async def kill_if_it_hangs() -> None:
            if await running.hangs() and self._process is not None:
                self._why_killed = f"nothing was heard of it for {running.silence_limit_s:.1f} s"
                self._enter(WorkerPhase.RESTARTING)
                self._count("Hung")
                # A process that hangs inside a driver may outlive even SIGKILL: answer before it is gone.
                self._answer_lost("Hung", self._why_killed)
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()

        watchdog = asyncio.create_task(kill_if_it_hangs(), name="worker-watchdog")
        self._watchdogs.add(watchdog)
        watchdog.add_done_callback(self._watchdogs.discard)

    def _answer_lost(self, reason: Reason, why: str) -> None:
        running, self._running = self._running, None
        if running is not None and not running.answer.done():
            failure = lost(f"the worker was lost during the edit: {why}", reason=reason)
            running.answer.set_exception(WorkerError(failure))
        in_hand, self._in_hand = self._in_hand, None
        if in_hand is not None and not in_hand.answer.done():
            in_hand.answer.set_exception(NotStarted(away(f"the worker was lost before the edit began: {why}")))

    def _count(self, reason: Reason) -> None:
        if self._on_failure is not None:
            self._on_failure(reason)

    def _fail(self, failure: WorkerFailure) -> None:
        log.error("worker_failed", extra=fields(reason=failure.reason, message=failure.message))
        self.failure = failure
        self._answer_lost("WorkerLost", failure.message)
        self._enter(WorkerPhase.FAILED)

    def _enter(self, phase: WorkerPhase) -> None:
        if phase is self.phase:
            return
        self.phase = phase
        if self._on_change is not None:
            self._on_change(phase)
