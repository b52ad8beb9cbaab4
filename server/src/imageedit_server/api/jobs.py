"""Edits that nobody holds a connection for: accepted, kept on disk, run one after the other, fetched later.

What the routes and the life cycle call. The parts: `job_ledger` knows the jobs and keeps them on disk, `job_runner`
runs them in their order, `job_edits` makes them edits of this pod, `gate.turns` says when one gets in.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from imageedit_server.api.clock import steady_clock
from imageedit_server.api.job_edits import ServiceEditor
from imageedit_server.api.job_ledger import JobLedger, NewJob
from imageedit_server.api.job_runner import JobRunner
from imageedit_server.api.service import Service
from imageedit_server.errors import Conflict
from imageedit_server.gate import jobs as states
from imageedit_server.gate.admission import whole_seconds
from imageedit_server.gate.job_book import JobLimits
from imageedit_server.gate.jobs import Job, JobState
from imageedit_server.settings import Settings

SWEEP_S = 60.0


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

    def __init__(
        self,
        service: Service,
        folder: Path,
        *,
        limits: JobLimits | None = None,
        now_s: Callable[[], float] | None = None,
    ) -> None:
        self._service = service
        self._editor = ServiceEditor(service)
        self._ledger = JobLedger(
            folder, limits or limits_of(service.settings), now_s=now_s or steady_clock(), on_change=self._count
        )
        self._runner = JobRunner(self._ledger, self._editor)

    async def load(self) -> None:
        """Take over the jobs of the process before; one that ran when it died counts that death.

        Raises:
            SettingsInvalid: what is there cannot be read.
        """
        await self._ledger.load()

    async def submit(self, body: bytes, *, key: str | None) -> Job:
        """Accept one job; with a key that is known, the job of that key.

        Raises:
            InvalidInput: the body is wrong.
            Conflict: the key is that of another body.
            Overloaded: too many jobs.
            StorageUnusable: the disk does not take it.
        """
        digest = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
        received = await self._editor.checked(body)
        # No await between asking for the key and adding the job.
        earlier = await self._ledger.of_key(key, digest)
        if earlier is not None:
            return earlier
        expected_s = self._service.costs.expected_s(received.job)
        job = await self._ledger.add(
            NewJob(body=body, digest=digest, key=key, seed=received.job.seed, expected_s=expected_s)
        )
        self._runner.wake()
        return job

    def standing(self, job_id: str) -> Standing:
        """Where a job stands.

        Raises:
            NotFound: there is no such job.
        """
        job = self._ledger.known(job_id)
        edit = None if job.ended else self._runner.edit_of(job_id)
        if edit is not None:
            return Standing(job=job, place=edit.place, starts_in_s=edit.starts_in_s, step=edit.step, steps=edit.steps)
        if job.state is not JobState.QUEUED:
            return Standing(job=job, place=None, starts_in_s=None, step=0, steps=None)
        before = [one for one in self._ledger.book.before(job) if self._runner.edit_of(one.job_id) is None]
        queue, load = self._service.queue, self._service.load
        return Standing(
            job=job,
            place=load.running + load.waiting + len(before),
            starts_in_s=queue.line.ahead_s + sum(one.expected_s for one in before),
            step=0,
            steps=None,
        )

    async def result(self, job_id: str) -> bytes:
        """The answer of a job that is done.

        Raises:
            NotFound: there is no such job.
            Conflict: it has no result, yet or ever.
            StorageUnusable: it cannot be read now.
        """
        standing = self.standing(job_id)
        job = standing.job
        if not job.ended:
            left_s = (standing.starts_in_s or 0.0) + job.expected_s
            raise Conflict("The job is not done yet.", code="job_not_done", retry_after_s=whole_seconds(left_s))
        answer = await self._ledger.result(job)
        if answer is None:
            why = f": {job.error_message}" if job.error_message else ", and its result is gone; send it again"
            why = "" if job.state is JobState.CANCELLED else why
            raise Conflict(f"The job is {job.state.value}{why}.", code="job_without_result", should_retry=False)
        return answer

    async def cancel(self, job_id: str) -> Job:
        """End a job that waits or runs, the latter at its next step; delete one that has ended already.

        Raises:
            NotFound: there is no such job.
            StorageUnusable: it could not be deleted.
        """
        job = self._ledger.known(job_id)
        if job.ended:
            await self._ledger.delete(job_id)
            return job
        # First the card: it is not to work on while the disk writes.
        edit = self._runner.edit_of(job_id)
        if edit is not None:
            edit.give_up()
        await self._ledger.cancelled(job_id)
        return self._ledger.book.get(job_id) or job

    async def run(self) -> None:
        """Run the jobs one after the other, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._runner.run())
            tasks.create_task(self._sweep())

    async def settle(self) -> None:
        """Return once the job that was in the card's queue is on disk; call it when nothing runs there any more."""
        await self._runner.settle()

    async def close(self) -> None:
        """Write what is on its way, and let go of the folder."""
        await self._ledger.close()

    async def sweep(self) -> None:
        """Forget the ended jobs whose time is over."""
        await self._ledger.sweep()

    async def _sweep(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(SWEEP_S)

    def _count(self, before: Job | None, after: Job | None) -> None:
        telemetry = self._service.telemetry
        for state in (JobState.QUEUED, JobState.RUNNING):
            telemetry.jobs.labels(state.value).set(self._ledger.book.count(state))
        if before is not None and after is not None and after.ended and not before.ended:
            ended = after.error_code if after.error_code == states.QUARANTINED else after.state.value
            telemetry.jobs_ended.labels(ended).inc()


def limits_of(settings: Settings) -> JobLimits:
    """The limits that are set."""
    return JobLimits(
        keep_s=settings.jobs_ttl_s,
        max_open=settings.jobs_max_open,
        max_kept=settings.jobs_max_count,
        max_bytes=settings.jobs_max_bytes,
    )
