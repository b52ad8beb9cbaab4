"""Edits that nobody holds a connection for: accepted, kept on disk, run one after the other, fetched later.

At most one job is in the queue of the card, behind whoever waits there: jobs fill the gaps between requests. Their
states live in memory and are written through to the store by one thread, so the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from imageedit_server.api import edits, requests, responses
from imageedit_server.api.edits import Edited, Received
from imageedit_server.api.job_store import JobStore
from imageedit_server.api.service import Service
from imageedit_server.api.ticket import Ticket
from imageedit_server.api.turn import Done
from imageedit_server.errors import ApiError, Conflict, NotFound, Overloaded
from imageedit_server.gate import jobs as states
from imageedit_server.gate.admission import Ask, whole_seconds
from imageedit_server.gate.jobs import Job, JobState
from imageedit_server.logs import fields
from imageedit_server.worker.protocol import WorkerError, WorkerFailure

log = logging.getLogger("imageedit.jobs")

T = TypeVar("T")

KEEP_S = 24 * 3600.0
MAX_OPEN_JOBS = 500
MAX_KEPT_JOBS = 5000
MAX_BYTES = 4 * 1024**3
# How often a runner that may not run looks again; nothing is lost by a quarter of a second here.
POLL_S = 0.25
SWEEP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """How long ended jobs are kept; how many wait or run, and are there at all; the bytes of bodies and results."""

    keep_s: float = KEEP_S
    max_open: int = MAX_OPEN_JOBS
    max_kept: int = MAX_KEPT_JOBS
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A job and where it stands now: how many are before it, when it starts, and its steps while it runs."""

    job: Job
    place: int | None
    starts_in_s: float | None
    step: int
    steps: int | None


class Jobs:
    """All jobs of one folder. All methods belong to one event loop; `load` comes first.

    Raises:
        SettingsInvalid: the folder cannot be used.
    """

    def __init__(self, service: Service, folder: Path, *, limits: JobLimits | None = None) -> None:
        self._service = service
        self._limits = limits or JobLimits()
        self._store = JobStore(folder)
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jobs")
        self._jobs: dict[str, Job] = {}
        self._on_card: tuple[str, Ticket] | None = None
        self._work = asyncio.Event()
        self._busy = asyncio.Lock()

    async def load(self) -> None:
        """Take over the jobs of the process before; one that ran when it died counts that death."""
        for job in await self._io(self._store.all):
            self._jobs[job.job_id] = job
            await self._change(job.job_id, lambda one: states.died(one, time.time()))
        self._count()

    async def submit(self, body: bytes, *, key: str | None) -> Job:
        """Accept one job; with a key that is known, the job of that key.

        Raises:
            InvalidInput: the body is wrong.
            Conflict: the key is that of another body.
            Overloaded: too many jobs.
        """
        digest = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
        received = await edits.decoded(self._service, body, requests.from_json)
        earlier = self._of_key(key, digest)
        if earlier is not None:
            return earlier
        self._check_room(len(body))
        job = Job(
            job_id=f"job_{secrets.token_hex(16)}",
            created_s=time.time(),
            body_bytes=len(body),
            digest=digest,
            key=key,
            expected_s=self._service.costs.expected_s(received.job),
        )
        self._jobs[job.job_id] = job
        try:
            await self._io(self._store.add, job, body)
        except BaseException:
            del self._jobs[job.job_id]
            raise
        self._count()
        self._work.set()
        return job

    def standing(self, job_id: str) -> Standing:
        """Where a job stands.

        Raises:
            NotFound: there is no such job.
        """
        job = self._known(job_id)
        if self._on_card is not None and self._on_card[0] == job_id and not job.ended:
            ticket = self._on_card[1]
            place, starts_in_s = self._service.queue.place(ticket), self._service.queue.starts_in_s(ticket)
            return Standing(job=job, place=place, starts_in_s=starts_in_s, step=ticket.step, steps=ticket.job.steps)
        if job.state is not JobState.QUEUED:
            return Standing(job=job, place=None, starts_in_s=None, step=0, steps=None)
        before = [one for one in self._queued() if one.created_s < job.created_s and not self._is_on_card(one)]
        load = self._service.load
        return Standing(
            job=job,
            place=load.running + load.waiting + len(before),
            starts_in_s=self._service.queue.ahead_s + sum(one.expected_s for one in before),
            step=0,
            steps=None,
        )

    async def result(self, job_id: str) -> bytes:
        """The answer of a job that is done.

        Raises:
            NotFound: there is no such job.
            Conflict: it has no result, yet or ever.
        """
        standing = self.standing(job_id)
        job = standing.job
        if not job.ended:
            left_s = (standing.starts_in_s or 0.0) + job.expected_s
            raise Conflict("The job is not done yet.", code="job_not_done", retry_after_s=whole_seconds(left_s))
        answer = await self._io(self._store.result, job_id) if job.state is JobState.SUCCEEDED else None
        if answer is None:
            why = f": {job.error_message}" if job.error_message else ""
            raise Conflict(f"The job is {job.state.value}{why}.", code="job_without_result", should_retry=False)
        return answer

    async def cancel(self, job_id: str) -> Job:
        """End a job that waits or runs, the latter at its next step; forget one that has ended already.

        Raises:
            NotFound: there is no such job.
        """
        job = self._known(job_id)
        if job.ended:
            await self._delete(job_id)
            return job
        await self._change(job_id, lambda one: states.cancelled(one, time.time()))
        if self._on_card is not None and self._on_card[0] == job_id:
            self._service.queue.withdraw(self._on_card[1])
        return self._jobs.get(job_id, job)

    async def run(self) -> None:
        """Run the jobs one after the other, for ever."""
        swept_s = 0.0
        while True:
            if time.monotonic() - swept_s >= SWEEP_S:
                swept_s = time.monotonic()
                await self.sweep()
            job = next(iter(self._queued()), None)
            if job is not None and self._may_run():
                async with self._busy:
                    with self._service.traces.span("job", {"imageedit.job": job.job_id}):
                        await self._run_one(job.job_id)
                continue
            self._work.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._work.wait(), SWEEP_S if job is None else POLL_S)

    async def settle(self) -> None:
        """Return once the job that was in the card's queue is on disk; call it when nothing runs there any more."""
        async with self._busy:
            return

    async def close(self) -> None:
        """Write what is on its way, and let go of the folder."""
        await self._io(self._store.close)
        self._disk.shutdown(wait=False)

    async def _run_one(self, job_id: str) -> None:
        try:
            await self._edit(job_id)
        except WorkerError as error:
            await self._worker_failed(job_id, error.failure)
        except ApiError as error:
            await self._fail(job_id, error.code, error.message)
        except Exception as error:  # one job must not end the runner, and its client must learn of it
            log.exception("job_crashed", extra=fields(job_id=job_id))
            await self._fail(job_id, "internal_error", f"An unexpected error: {type(error).__name__}.")
        finally:
            self._on_card = None

    async def _edit(self, job_id: str) -> None:
        service = self._service
        received = await edits.decoded(service, await self._io(self._store.body, job_id), requests.from_json)
        # It may have been cancelled, and a drain may have begun, while the picture was read.
        if self._jobs[job_id].ended or not self._may_run():
            return
        ticket = service.queue.submit(
            received.job,
            steps_open=not received.wish.steps_given,
            before_start=lambda: self._change(job_id, lambda one: states.started(one, time.time())),
        )
        self._on_card = (job_id, ticket)
        try:
            await asyncio.wait([ticket.answer])
        finally:
            service.queue.withdraw(ticket)
        if ticket.answer.cancelled():
            return
        done = Done(job=ticket.job, result=ticket.answer.result())
        edited = [await edits.finished(service, received, done)]
        answer = await asyncio.to_thread(_rendered, service, received, edited)
        await self._io(self._store.write_result, job_id, answer)
        size_bytes = len(answer)
        await self._change(job_id, lambda one: states.succeeded(one, time.time(), result_bytes=size_bytes))

    async def _worker_failed(self, job_id: str, failure: WorkerFailure) -> None:
        log.warning("job_failed", extra=fields(job_id=job_id, reason=failure.reason, message=failure.message))
        if failure.sticky or failure.reason == "WorkerLost":
            await self._note(job_id, lambda one: states.died(one, time.time()))
        else:
            await self._fail(job_id, "edit_failed", failure.message)

    async def _fail(self, job_id: str, code: str, message: str) -> None:
        await self._note(job_id, lambda one: states.failed(one, time.time(), code=code, message=message))

    async def _note(self, job_id: str, change: Callable[[Job], Job]) -> None:
        """Change a state that holds here even when the disk does not take it."""
        try:
            await self._change(job_id, change)
        except (OSError, sqlite3.Error):
            log.exception("job_not_saved", extra=fields(job_id=job_id))

    async def _change(self, job_id: str, change: Callable[[Job], Job]) -> None:
        """Change a job's state, first here and then on disk; one that was forgotten stays so."""
        before = self._jobs.get(job_id)
        after = None if before is None else change(before)
        if before is None or after is None or after == before:
            return
        self._jobs[job_id] = after
        self._count()
        if after.ended:
            ended = after.error_code if after.error_code == states.QUARANTINED else after.state.value
            self._service.telemetry.jobs_ended.labels(ended).inc()
        await self._io(self._store.save, after)

    async def _delete(self, job_id: str) -> None:
        if self._jobs.pop(job_id, None) is not None:
            await self._io(self._store.delete, job_id)

    async def sweep(self) -> None:
        """Forget the ended jobs whose time is over."""
        now_s = time.time()
        for job in [job for job in self._jobs.values() if states.expired(job, now_s, keep_s=self._limits.keep_s)]:
            try:
                await self._delete(job.job_id)
            except (OSError, sqlite3.Error):
                log.exception("job_not_deleted", extra=fields(job_id=job.job_id))

    def _may_run(self) -> bool:
        return self._service.refusal(Ask()) is None

    def _queued(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.state is JobState.QUEUED]

    def _is_on_card(self, job: Job) -> bool:
        """Whether it is in the card's queue already, and counted there."""
        return self._on_card is not None and self._on_card[0] == job.job_id

    def _known(self, job_id: str) -> Job:
        if job_id not in self._jobs:
            raise NotFound("There is no such job, or no longer.", code="job_not_found")
        return self._jobs[job_id]

    def _of_key(self, key: str | None, digest: str) -> Job | None:
        earlier = next((job for job in self._jobs.values() if key is not None and job.key == key), None)
        if earlier is not None and earlier.digest != digest:
            raise Conflict(
                "This idempotency key was sent before with another body; use a new key.",
                code="idempotency_key_reused",
                should_retry=False,
            )
        return earlier

    def _check_room(self, body_bytes: int) -> None:
        limits, jobs = self._limits, self._jobs.values()
        held_bytes = sum(job.result_bytes + (0 if job.ended else job.body_bytes) for job in jobs)
        waiting = [job for job in jobs if not job.ended]
        if (
            len(waiting) >= limits.max_open
            or len(jobs) >= limits.max_kept
            or held_bytes + body_bytes > limits.max_bytes
        ):
            left_s = sum(job.expected_s for job in waiting)
            raise Overloaded(
                f"{len(waiting)} jobs wait and {len(jobs)} are kept, and no more may;"
                " fetch results and delete their jobs, or try again later.",
                code="too_many_jobs",
                retry_after_s=whole_seconds(min(left_s, limits.keep_s)),
            )

    def _count(self) -> None:
        for state in (JobState.QUEUED, JobState.RUNNING):
            count = sum(job.state is state for job in self._jobs.values())
            self._service.telemetry.jobs.labels(state.value).set(count)

    async def _io(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, lambda: call(*arguments))


def _rendered(service: Service, received: Received, edited: list[Edited]) -> bytes:
    """The body that `POST /v1/edit` would have answered."""
    output = responses.base64_text(edited[0].file)
    return json.dumps({"output": output, **responses.facts(service, received, edited)}).encode()
