"""What the routes, the probes and the life cycle share: the worker, the queue before it, and the drain."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from imageedit_server.api.body import Uploads
from imageedit_server.api.clock import steady_clock
from imageedit_server.api.costs import Costs
from imageedit_server.api.draining import Draining
from imageedit_server.api.edit_errors import refusal_error
from imageedit_server.api.files import result_files
from imageedit_server.api.keys import ApiKeys
from imageedit_server.api.prompts import token_count
from imageedit_server.api.queue import EditQueue, OnStep
from imageedit_server.api.retries import Retries
from imageedit_server.engine.checkpoint import resolve_model_dir
from imageedit_server.errors import ApiError
from imageedit_server.gate.admission import Ask, Limits, Refused, auto_max_wait_s, refusal
from imageedit_server.gate.dedupe import By
from imageedit_server.gate.estimate import Load
from imageedit_server.gate.refusals import reason_of
from imageedit_server.gate.steps import dynamic_steps
from imageedit_server.logs import fields
from imageedit_server.safety.hook import Safety
from imageedit_server.settings import Settings
from imageedit_server.telemetry import Telemetry
from imageedit_server.tracing import trace_turn, traces_from
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.supervisor import Worker

log = logging.getLogger("imageedit.service")

# Decoding fifty million pixels takes a few hundred megabytes.
# Two at a time keep the next edit ready; more only cost memory.
CONCURRENT_DECODES = 2


class Service:
    """One serving process. All methods belong to its event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.instance = str(uuid.uuid4())
        self.traces = traces_from(settings, instance=self.instance)
        self.started_at = int(time.time())
        self.telemetry = Telemetry(
            namespace=settings.namespace,
            deployment=settings.deployment,
            revision_hash=settings.revision_hash,
            sizes=[str(size) for size in settings.sizes],
        )
        self.worker = Worker(
            settings.engine(),
            start_deadline_s=settings.start_deadline_s,
            on_change=self._worker_changed,
            on_failure=lambda reason: self.telemetry.worker_failures.labels(reason).inc(),
        )
        self.costs = Costs(on_error=self.telemetry.cost_error.observe)
        self.queue = EditQueue(
            edit=self._edit,
            cancel=self.worker.cancel,
            now_s=time.monotonic,
            expected_s=self.costs.expected_s,
            steps=self._steps,
            on_change=self._load_changed,
            on_start=self.telemetry.waited,
            on_turn=partial(trace_turn, self.traces),
            on_drop=lambda why: self.telemetry.dropped.labels(why).inc(),
        )
        self.retries = Retries(now_s=time.monotonic)
        self.count_tokens = token_count(resolve_model_dir(settings.model_dir))
        self.uploads = Uploads(settings.max_body_bytes)
        self.decoding = asyncio.Semaphore(CONCURRENT_DECODES)
        self.encoding = asyncio.Semaphore(CONCURRENT_DECODES)
        # Files that masked edits need again at their end.
        self.kept = Uploads(settings.max_body_bytes)
        self.files = result_files(settings, now_s=steady_clock())
        self.api_keys = ApiKeys(Path(settings.api_keys_file)) if settings.api_keys_file else None
        self.safety = Safety(settings, self.telemetry, stage=self.stage, on_change=self._warmth_changed)
        self.worker_failed = asyncio.Event()
        self.drain = Draining(
            propagation_s=settings.drain_propagation_s,
            load=lambda: self.load,
            on_change=self.telemetry.draining.set,
        )
        self._cold_since_s = time.monotonic()
        self.became_warm_in_s = 0.0
        """From the start of the process, or the loss of a worker, until warm: what a replacement costs."""

    @property
    def load(self) -> Load:
        """What runs and what waits."""
        return self.queue.line.load

    @property
    def warm(self) -> bool:
        """The model is loaded, every size ran, the checked edit was good, and the safety hook can look."""
        report = self.worker.warm
        warmed = self.worker.phase is WorkerPhase.READY and report is not None and report.check_ok
        return warmed and self.safety.ready

    async def wait_drained(self) -> None:
        """Return once a drain that has begun refuses new edits and has finished the accepted ones."""
        await self.drain.propagated()
        await self.queue.wait_idle()

    @property
    def max_wait_s(self) -> float:
        """Longest estimated wait for the card that is accepted."""
        if self.settings.max_wait_s is not None:
            return self.settings.max_wait_s
        return auto_max_wait_s(self.costs.plain_s(self.settings.sizes[0], self.settings.steps))

    def refusal(self, ask: Ask) -> Refused | None:
        """Why one more edit is refused now, if it is."""
        return refusal(
            drain=self.drain.phase,
            worker_ready=self.warm,
            work=self.queue.line.work,
            limits=Limits(hard_limit=self.settings.queue_hard_limit, max_wait_s=self.max_wait_s),
            ask=ask,
        )

    def refused(self, refused: Refused) -> ApiError:
        """Count a refusal; the answer that it is."""
        error = refusal_error(
            refused,
            waiting=self.load.waiting,
            ahead_s=self.queue.line.ahead_s,
            not_ready=self.safety.why_not_ready() or f"worker {self.worker.phase.value}",
        )
        self.count_refusal(error)
        return error

    def check_admission(self, ask: Ask | None = None) -> None:
        """Raise why one more edit is refused now.

        Raises:
            Overloaded: the queue is full, or too long.
            Unavailable: loading, restarting or draining.
        """
        refused = self.refusal(ask or Ask())
        if refused is not None:
            raise self.refused(refused)

    def attached(self, by: By) -> None:
        """Count a request that attached to an edit that was here."""
        self.telemetry.attached.labels(by.value).inc()
        self.traces.note("imageedit.attached_by", by.value)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage of an edit, for the metric and for the trace."""
        with self.traces.span(name), self.telemetry.stage_s.labels(name).time():
            yield

    @contextmanager
    def counting_refusals(self) -> Iterator[None]:
        """Count a request that is refused while it is read among the refused."""
        try:
            yield
        except ApiError as error:
            self.count_refusal(error)
            raise

    def count_refusal(self, error: ApiError) -> None:
        """Count an error that refuses an edit, by its reason; other errors are counted elsewhere."""
        reason = reason_of(error.code)
        if reason is not None:
            self.telemetry.refused.labels(reason).inc()

    async def _edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        result = await self.worker.edit(job, on_step=on_step)
        self.costs.edited(job, result)
        self.telemetry.edit_s.labels(str(job.size)).observe(result.seconds)
        self.telemetry.edited(result)
        return result

    def _steps(self, job: EditJob, waiting: int) -> int:
        """Steps of a job whose client did not choose them."""
        if not self.settings.dynamic_steps:
            return job.steps
        return dynamic_steps(waiting=waiting, standard=job.steps, high=self.settings.steps_high)

    def _load_changed(self, load: Load) -> None:
        self.telemetry.running.set(load.running)
        self.telemetry.waiting.set(load.waiting)
        self.telemetry.work_ahead_s.set(self.queue.line.ahead_s)

    def _worker_changed(self, phase: WorkerPhase) -> None:
        log.info("worker_changed", extra=fields(phase=phase.value))
        self._warmth_changed()
        self.telemetry.worker_up.set(phase is WorkerPhase.READY)
        match phase:
            case WorkerPhase.READY:
                self._worker_ready()
            case WorkerPhase.FAILED:
                self._worker_gone_for_good()
            case WorkerPhase.RESTARTING:
                self.queue.hold()
                self._cold_since_s = time.monotonic()
                self.telemetry.worker_restarts.inc()
            case _:
                self.queue.hold()

    def _warmth_changed(self) -> None:
        self.telemetry.warm.set(self.warm)

    def _worker_ready(self) -> None:
        self.drain.note_ready()
        self.became_warm_in_s = time.monotonic() - self._cold_since_s
        load, warm = self.worker.load, self.worker.warm
        if load is not None:
            self.telemetry.model_info.clear()
            self.telemetry.model_info.labels(self.settings.model_name, self.settings.model_revision, load.digest).set(1)
        if warm is not None:
            self.costs.warmed(warm, steps=self.settings.steps)
            self.telemetry.warmup_s.set(self.became_warm_in_s)
            self.telemetry.warmed(warm)
        self.queue.release()

    def _worker_gone_for_good(self) -> None:
        if self.worker.failure is not None:
            self.queue.fail_all(self.worker.failure)
        self.worker_failed.set()
