"""The jobs of one folder: known in memory, and written through to the disk by one thread.

It knows neither worker nor queue, so a gateway keeps its jobs by it as well. What is in memory holds; a state that the
disk did not take is written later (`job_unsaved`). All methods belong to one event loop, which never waits for a disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from imageedit_server.api.job_disk import JobDisk
from imageedit_server.api.job_recovery import take_over
from imageedit_server.api.job_unsaved import Unsaved
from imageedit_server.errors import Conflict, NotFound, Overloaded, StorageUnusable
from imageedit_server.gate import jobs as states
from imageedit_server.gate.admission import whole_seconds
from imageedit_server.gate.job_book import JobBook, JobLimits
from imageedit_server.gate.jobs import Job, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What is known of a job when it is sent."""

    body: bytes
    digest: str
    key: str | None
    seed: int
    expected_s: float


class JobLedger:
    """All jobs of a folder; `load` comes first.

    Args:
        now_s: seconds since 1970 that go on evenly, so that a clock that is set expires nothing.
        on_change: called after each change with the job before (None: it is new) and after (None: it is deleted).

    Raises:
        SettingsInvalid: the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        limits: JobLimits,
        *,
        now_s: Callable[[], float],
        on_change: Callable[[Job | None, Job | None], None] = lambda _before, _after: None,
    ) -> None:
        self.book = JobBook()
        self._limits = limits
        self._now_s = now_s
        self._on_change = on_change
        self._disk = JobDisk(folder)
        self._unsaved = Unsaved(self._disk, now=self.book.get)
        self._adding: dict[str, asyncio.Future[None]] = {}

    async def load(self) -> None:
        """Take over the jobs of the process before.

        Raises:
            SettingsInvalid: what is there cannot be read.
        """
        for one in await take_over(self._disk, self._now_s()):
            self._put(one.job, before=one.left)

    def known(self, job_id: str) -> Job:
        """A job.

        Raises:
            NotFound: there is none of that id.
        """
        job = self.book.get(job_id)
        if job is None:
            raise NotFound("There is no such job, or no longer.", code="job_not_found")
        return job

    async def of_key(self, key: str | None, digest: str) -> Job | None:
        """The job of an idempotency key, once it is on disk.

        Raises:
            Conflict: that job has another body.
            StorageUnusable: the disk did not take it.
        """
        earlier = None if key is None else self.book.of_key(key)
        if earlier is None:
            return None
        if earlier.digest != digest:
            raise Conflict(
                "This idempotency key was sent before with another body; use a new key.",
                code="idempotency_key_reused",
                should_retry=False,
            )
        if (adding := self._adding.get(earlier.job_id)) is not None:
            await asyncio.shield(adding)
        return self.known(earlier.job_id)

    async def add(self, new: NewJob) -> Job:
        """Accept one job: when this returns, it survives the death of the process.

        Raises:
            Overloaded: too many jobs.
            StorageUnusable: the disk does not take it; nothing of it is left.
        """
        self._check_room(len(new.body))
        job = Job(
            job_id=f"job_{secrets.token_hex(16)}",
            number=self.book.next_number,
            created_s=self._now_s(),
            body_bytes=len(new.body),
            digest=new.digest,
            seed=new.seed,
            key=new.key,
            expected_s=new.expected_s,
        )
        self._put(job)
        adding = self._adding[job.job_id] = asyncio.create_task(self._written(job, new.body))
        # A client that left looks at no error; looking here keeps asyncio from reporting it.
        adding.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(adding)
        return job

    def waiting(self) -> Iterator[Job]:
        """The jobs that wait in their order, without those that are not on disk yet."""
        return (job for job in self.book.queued() if job.job_id not in self._adding)

    async def body(self, job_id: str) -> bytes | None:
        """The body that was sent, or None when it is not there as it was.

        Raises:
            StorageUnusable: it cannot be read now.
        """
        body = await self._disk.call(self._disk.store.body, job_id)
        if body is None:
            return None
        digest = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
        return body if digest == self.known(job_id).digest else None

    async def result(self, job: Job) -> bytes | None:
        """The answer of a job, if it has one."""
        return await self._disk.call(self._disk.store.result, job.job_id) if job.state is JobState.SUCCEEDED else None

    async def started(self, job_id: str) -> None:
        """Its edit goes to the card now.

        Raises:
            StorageUnusable: not written, so that a worker that dies under it would not count.
        """
        if self._become(job_id, lambda job: states.started(job, self._now_s())):
            await self._disk.call(self._disk.store.save, self.known(job_id))

    async def succeeded(self, job_id: str, answer: bytes) -> None:
        """Keep the result. One that nobody wants any more is not kept.

        Raises:
            StorageUnusable: not written.
        """
        await self._disk.call(self._disk.store.write_result, job_id, answer)
        await self.change(job_id, lambda job: states.succeeded(job, self._now_s(), result_bytes=len(answer)))
        job = self.book.get(job_id)
        if job is None or job.state is not JobState.SUCCEEDED:
            await self._disk.call(self._disk.store.discard_result, job_id)

    async def failed(self, job_id: str, *, code: str, message: str) -> None:
        """It cannot be done."""
        await self.change(job_id, lambda job: states.failed(job, self._now_s(), code=code, message=message))

    async def died(self, job_id: str) -> None:
        """The worker died under it."""
        await self.change(job_id, lambda job: states.died(job, self._now_s()))

    async def put_back(self, job_id: str) -> None:
        """It waits again, and it was not its fault."""
        await self.change(job_id, lambda job: states.put_back(job, self._now_s()))

    async def cancelled(self, job_id: str) -> None:
        """Its client wants it no more."""
        await self.change(job_id, lambda job: states.cancelled(job, self._now_s()))

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> None:
        """Change a state, which holds here even when the disk does not take it; one that was deleted stays so."""
        if self._become(job_id, change):
            self._unsaved.note(job_id)
            await self._unsaved.save()

    async def delete(self, job_id: str) -> None:
        """Forget a job with its files.

        Raises:
            StorageUnusable: it is still there.
        """
        with self._unsaved.leaving(job_id):
            await self._disk.call(self._disk.store.delete, job_id)
        self._drop(job_id)

    async def sweep(self) -> None:
        """Delete the ended jobs whose time is over, and write what could not be written before."""
        await self._unsaved.save()
        with contextlib.suppress(StorageUnusable):
            for job in self.book.expired(self._now_s(), keep_s=self._limits.keep_s):
                await self.delete(job.job_id)

    async def close(self) -> None:
        """Write what is on its way, and let go of the folder."""
        await self._unsaved.save()
        await self._disk.close()

    def _become(self, job_id: str, change: Callable[[Job], Job]) -> bool:
        before = self.book.get(job_id)
        after = None if before is None else change(before)
        if after is None or after == before:
            return False
        self._put(after, before=before)
        return True

    async def _written(self, job: Job, body: bytes) -> None:
        """Bring a new job to the disk, also when its client does not wait for that: what the disk has decides."""
        try:
            await self._disk.call(self._disk.store.add, job, body)
        except StorageUnusable:
            self._drop(job.job_id)
            raise
        finally:
            del self._adding[job.job_id]

    def _put(self, job: Job, *, before: Job | None = None) -> None:
        self.book.put(job)
        self._on_change(before, job)

    def _drop(self, job_id: str) -> None:
        before = self.book.get(job_id)
        self.book.drop(job_id)
        self._on_change(before, None)

    def _check_room(self, body_bytes: int) -> None:
        if self.book.has_room(self._limits, body_bytes=body_bytes):
            return
        raise Overloaded(
            f"{self.book.open} jobs wait and {len(self.book)} are kept, and no more may;"
            " fetch results and delete their jobs, or try again later.",
            code="too_many_jobs",
            retry_after_s=whole_seconds(min(self.book.open_s, self._limits.keep_s)),
        )
