"""Keeps one classifier process loaded, from inside the API process, and asks it about one picture at a time.

start ─▶ LOADING ─▶ READY ─▶ (the process is gone, or silent about a picture) RESTARTING ─▶ READY
the checkpoint is unusable, or too many losses ─▶ FAILED (for good)

While it is away nothing is let through.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio.subprocess import Process
from collections.abc import Callable
from enum import Enum

from imageedit_server.errors import FailureReason
from imageedit_server.logs import fields
from imageedit_server.safety.protocol import CannotClassify, ClassifierReady, ClassifierSettings, Look, Verdict
from imageedit_server.worker.framing import pack, read_message
from imageedit_server.worker.process import describe_exit, end_process, start_child
from imageedit_server.worker.restarts import may_restart

log = logging.getLogger("imageedit.safety")

MODULE = "imageedit_server.safety.loop"
MAX_RESTARTS = 3
RESTART_WINDOW_S = 300.0
# A large model takes seconds on few processors; what is silent for longer hangs.
SILENCE_S = 30.0
# With others before it and a restart in between.
PATIENCE_S = 90.0
# A picture that ends two processes ends a third one too.
ATTEMPTS = 2
_EXIT_GRACE_S = 0.5


class ClassifierPhase(Enum):
    """Where the classifier stands; the values are words of `/healthz`."""

    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"


class ClassifierAway(Exception):
    """Nothing is known about the picture."""


class _Lost(Exception):
    """The process ended during a look."""


class Classifier:
    """One classifier process, replaced when it is lost. All methods belong to one event loop.

    Args:
        on_change: called after each change of the phase.
        silence_s: how long a look may take.
        patience_s: how long a caller waits for its answer, with all that is before it.
    """

    def __init__(
        self,
        settings: ClassifierSettings,
        *,
        start_deadline_s: float,
        on_change: Callable[[], None] = lambda: None,
        silence_s: float = SILENCE_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._settings = settings
        self._start_deadline_s = start_deadline_s
        self._on_change = on_change
        self._silence_s = silence_s
        self._patience_s = patience_s
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._number = 0
        self._answer: asyncio.Future[bool | None] | None = None
        self._losses_at_s: list[float] = []
        self.phase = ClassifierPhase.LOADING
        self.failed = asyncio.Event()
        self.failure: tuple[FailureReason, str] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the classifier that lives now."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    def start(self) -> None:
        """Start the process; it loads in the background."""
        self._task = asyncio.create_task(self._keep_one_alive(), name="classifier-supervisor")

    async def stop(self) -> None:
        """End the process and wait until it is gone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._lose()

    async def refuses(self, rgb: bytes, *, width_px: int, height_px: int) -> bool:
        """Whether a picture is refused.

        Raises:
            ClassifierAway: nothing is known, and the picture must not pass.
        """
        try:
            async with asyncio.timeout(self._patience_s), self._one_at_a_time:
                for _ in range(ATTEMPTS):
                    with contextlib.suppress(_Lost):
                        refused = await self._look(rgb, width_px, height_px)
                        if refused is None:
                            break
                        return refused
        except TimeoutError:
            log.warning("classifier_too_slow", extra=fields(phase=self.phase.value, waited_s=self._patience_s))
        raise ClassifierAway

    async def _look(self, rgb: bytes, width_px: int, height_px: int) -> bool | None:
        # In a loop: between the event and this task's turn the process may be gone again.
        while not self._ready.is_set():
            await self._ready.wait()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self._number += 1
        answer: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._answer = answer
        look = Look(number=self._number, width_px=width_px, height_px=height_px, rgb=rgb)
        try:
            async with asyncio.timeout(self._silence_s):
                # One that just died is answered for by the supervising task.
                with contextlib.suppress(ConnectionError):
                    process.stdin.write(pack(look))
                    await process.stdin.drain()
                return await answer
        except TimeoutError:
            log.error("classifier_hangs", extra=fields(pid=process.pid, silent_s=self._silence_s))
            if process is self._process:
                self._enter(ClassifierPhase.RESTARTING)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise _Lost from None
        finally:
            self._answer = None

    async def _keep_one_alive(self) -> None:
        try:
            while self.failure is None:
                self.failure = await self._run_one_process() or self._too_many_losses()
        except Exception as error:  # a supervisor that ends in silence would leave a pod that waits for ever
            log.exception("classifier_supervisor_failed")
            self.failure = (FailureReason.WORKER_LOST, f"the classifier cannot be supervised: {type(error).__name__}")
        reason, message = self.failure
        log.error("classifier_failed", extra=fields(reason=reason.value, message=message))
        self._enter(ClassifierPhase.FAILED)
        self.failed.set()

    async def _run_one_process(self) -> tuple[FailureReason, str] | None:
        """Start a process and follow it to its end; return a failure only if a new one would fail alike."""
        process = self._process = await start_child(self._settings, module=MODULE)
        try:
            async with asyncio.timeout(self._start_deadline_s) as deadline:
                last_word = await self._follow(process, when_ready=lambda: deadline.reschedule(None))
            await end_process(process, grace_s=_EXIT_GRACE_S)
        except TimeoutError:
            return FailureReason.SETTINGS_INVALID, (
                f"--safety-classifier was not loaded within {self._start_deadline_s:g} s (--start-deadline)"
            )
        finally:
            await end_process(process)
        if last_word is not None:
            return FailureReason.SETTINGS_INVALID, f"--safety-classifier: {last_word.message}"
        why = describe_exit(process.returncode or 0)
        log.error("classifier_lost", extra=fields(pid=process.pid, why=why))
        return None

    async def _follow(self, process: Process, *, when_ready: Callable[[], None]) -> CannotClassify | None:
        assert process.stdout is not None
        while True:
            try:
                message = await read_message(process.stdout)
            except EOFError:
                self._enter(ClassifierPhase.RESTARTING)
                self._lose()
                return None
            match message:
                case ClassifierReady():
                    when_ready()
                    self._enter(ClassifierPhase.READY)
                case Verdict() if self._answer is not None and message.number == self._number:
                    if not self._answer.done():
                        self._answer.set_result(message.refused)
                case CannotClassify():
                    return message

    def _too_many_losses(self) -> tuple[FailureReason, str] | None:
        now_s = asyncio.get_running_loop().time()
        self._losses_at_s.append(now_s)
        if may_restart(self._losses_at_s, now_s=now_s, max_restarts=MAX_RESTARTS, window_s=RESTART_WINDOW_S):
            return None
        return FailureReason.WORKER_LOST, (
            f"the safety classifier was lost {len(self._losses_at_s)} times; its log says why each time"
        )

    def _lose(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(_Lost())

    def _enter(self, phase: ClassifierPhase) -> None:
        if phase is ClassifierPhase.READY:
            self._ready.set()
        else:
            self._ready.clear()
        if phase is not self.phase:
            self.phase = phase
            log.info("classifier_changed", extra=fields(phase=phase.value))
            self._on_change()
