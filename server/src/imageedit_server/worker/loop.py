"""What runs inside the worker process: load, warm every size, then edit one picture after the other.

The main thread owns the device from first to last (an NPU context belongs to a thread). A second thread only reads
the pipe: when it closes, the API process is gone and this process ends at once, in the middle of an edit too.
"""

import logging
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import BinaryIO, NoReturn

from imageedit_server import logs
from imageedit_server.engine.base import EditEngine
from imageedit_server.engine.faults import classify
from imageedit_server.engine.select import build_engine
from imageedit_server.engine.warmup import warm_up
from imageedit_server.logs import fields
from imageedit_server.worker.child import become_child, claim_pipes
from imageedit_server.worker.failures import CANCELLED, WorkerError, WorkerFailure
from imageedit_server.worker.framing import pack, read_message_blocking
from imageedit_server.worker.protocol import (
    CancelJob,
    EditJob,
    EngineSettings,
    FromWorker,
    JobFailed,
    Loading,
    StepDone,
    ToWorker,
)
from imageedit_server.worker.shared import Areas, opened

EXIT_CANNOT_SERVE = 1
EXIT_STICKY_FAULT = 2
# One job runs and one is in hand; the names of earlier ones are of no use any more.
_CANCELLED_AT_ONCE = 4
_OUT_OF_MEMORY_IN_A_ROW = 2  # after the second one later results cannot be trusted

log = logging.getLogger("imageedit.worker")


class _Pipe:
    """The worker's end of the two pipes, and of the memory beside them."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO, areas: Areas) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._areas = areas

    def send(self, message: FromWorker) -> None:
        self._outgoing.write(pack(message, self._areas.outgoing))
        self._outgoing.flush()

    def receive_settings(self) -> EngineSettings:
        settings = read_message_blocking(self._incoming)
        assert isinstance(settings, EngineSettings)
        return settings

    def orders(self) -> "Orders":
        """Start the reading thread and return what it fills."""
        orders = Orders()

        def read_until_closed() -> None:
            try:
                while True:
                    orders.take(read_message_blocking(self._incoming, self._areas.incoming))
            finally:
                os._exit(0)  # no clean-up: the device may hang, and nobody is left to wait for it

        threading.Thread(target=read_until_closed, name="pipe", daemon=True).start()
        return orders


class Orders:
    """The jobs to do, and those that shall end early; filled by one thread and read by another."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[EditJob] = queue.SimpleQueue()
        self._cancelled: deque[str] = deque(maxlen=_CANCELLED_AT_ONCE)

    def take(self, message: ToWorker) -> None:
        """Note what arrived."""
        if isinstance(message, CancelJob):
            self._cancelled.append(message.job_id)
        else:
            self._jobs.put(message)

    def next_job(self) -> EditJob:
        """Wait for the next job."""
        return self._jobs.get()

    def cancelled(self, job_id: str) -> bool:
        """Whether this job shall end."""
        return job_id in self._cancelled


def main(parent_pid: int, to_worker: int, from_worker: int) -> NoReturn:
    """Run the worker until the pipe closes or it cannot serve; the last two are descriptors of shared memory."""
    become_child(parent_pid)
    exit_code = _load_and_serve(_Pipe(*claim_pipes(), opened(outgoing=from_worker, incoming=to_worker)))
    sys.stderr.flush()
    os._exit(exit_code)  # threads and drivers that hang must not hold up the replacement


def _load_and_serve(pipe: _Pipe) -> int:
    settings = pipe.receive_settings()
    logs.set_up(level=settings.log_level, pod=settings.pod)
    orders = pipe.orders()
    pipe.send(Loading())
    try:
        engine = build_engine(settings)
        _prepare(engine, settings, pipe)
    except WorkerError as error:
        pipe.send(error.failure)
        return EXIT_CANNOT_SERVE
    return serve(engine, orders.next_job, pipe.send, cancelled=orders.cancelled)


def _prepare(engine: EditEngine, settings: EngineSettings, pipe: _Pipe) -> None:
    loaded = engine.load()
    pipe.send(loaded)
    report = warm_up(engine, settings, loaded.capabilities, clock_s=time.monotonic)
    pipe.send(report)
    if not report.check_ok:
        raise WorkerError(WorkerFailure(reason="WarmupFailed", message=report.check_message, sticky=True))


def serve(
    engine: EditEngine,
    next_job: Callable[[], EditJob],
    send: Callable[[FromWorker], None],
    *,
    cancelled: Callable[[str], bool] = lambda job_id: False,
) -> int:
    """Run jobs until one leaves the device unusable; return the exit code.

    | the edit | answer | this process |
    | --- | --- | --- |
    | gave a picture | EditResult | goes on |
    | was cancelled | JobFailed | goes on |
    | failed, not sticky | JobFailed | goes on |
    | ran out of memory, the second time in a row | JobFailed, sticky | ends |
    | failed, sticky | JobFailed | ends |
    """
    out_of_memory_in_a_row = 0
    while True:
        last_chance = out_of_memory_in_a_row + 1 >= _OUT_OF_MEMORY_IN_A_ROW
        failure = _run(engine, next_job(), send, cancelled, last_chance=last_chance)
        if failure is not CANCELLED:  # it proves nothing about the memory
            full = failure is not None and failure.reason == "OutOfMemory"
            out_of_memory_in_a_row = out_of_memory_in_a_row + 1 if full else 0
        if failure is not None and failure.sticky:
            log.error("worker_ends", extra=fields(reason=failure.reason))
            return EXIT_STICKY_FAULT


def _run(
    engine: EditEngine,
    job: EditJob,
    send: Callable[[FromWorker], None],
    cancelled: Callable[[str], bool],
    *,
    last_chance: bool,
) -> WorkerFailure | None:
    def end_if_cancelled() -> None:
        if cancelled(job.job_id):
            raise WorkerError(CANCELLED)

    def on_step(step: int, steps: int) -> None:
        send(StepDone(job_id=job.job_id, step=step, steps=steps))
        end_if_cancelled()

    try:
        end_if_cancelled()
        result = engine.edit(job, on_step)
        log.debug("edit_done", extra=fields(job_id=job.job_id, steps=result.steps, **asdict(result.stages)))
        send(result)
        return None
    except Exception as error:  # whatever a model or a driver raises must not end the worker unclassified
        failure = classify(error)
        if failure is CANCELLED:
            log.info("edit_cancelled", extra=fields(job_id=job.job_id))
        else:
            log.exception("edit_failed", extra=fields(job_id=job.job_id, reason=failure.reason))
    if failure.reason == "OutOfMemory" and last_chance:
        failure = replace(failure, sticky=True)
    if not failure.sticky:
        engine.release_memory()
    send(JobFailed(job_id=job.job_id, failure=failure))
    return failure
