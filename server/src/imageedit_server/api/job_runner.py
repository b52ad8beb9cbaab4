"""Runs the jobs of a ledger in their order, on whatever makes edits: the worker of this pod, or the pods of a gateway.

While one job is on the card, the next one is read and the one before is written: two lanes take turns, so that the
card waits for neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from imageedit_server.api.job_ledger import JobLedger
from imageedit_server.errors import ApiError, StorageUnusable
from imageedit_server.gate.jobs import LOST_BODY, UNWRITTEN_RESULT, Job
from imageedit_server.logs import fields
from imageedit_server.worker.failures import WorkerError, WorkerFailure

log = logging.getLogger("imageedit.jobs")

T = TypeVar("T")

LANES = 2
# How often a runner that may not run looks again; nothing is lost by a quarter of a second here.
POLL_S = 0.25
# A disk that is full or away is tried this often, and so many times before a job is given up: five minutes.
DISK_RETRY_S = 5.0
DISK_TRIES = 60


class NotNow(Exception):
    """The job's turn came when it may not run any more; it waits for the next process."""


class JobEdit(Protocol):
    """One job, read and checked, on its way to the card."""

    @property
    def place(self) -> int | None:
        """How many edits are before it; None when it waits no more."""

    @property
    def starts_in_s(self) -> float:
        """Seconds until its turn."""

    @property
    def step(self) -> int:
        """Steps that are done."""

    @property
    def steps(self) -> int:
        """Steps in all."""

    async def run(self, before_start: Callable[[], Awaitable[None]]) -> bool:
        """Stand in line, and return when the card is free again: False when it was given up.

        Raises:
            WorkerError: it failed.
            NotNow: it may not run any more.
            StorageUnusable: of `before_start`, which is awaited when its turn has come.
        """

    async def answer(self) -> bytes:
        """The result, after a run."""

    def give_up(self) -> None:
        """End it, at its next step if it runs."""


class Editor(Protocol):
    """What makes edits of jobs."""

    def may_start(self) -> bool:
        """Whether the first job that waits may get in line now."""

    def span(self, job: Job) -> AbstractContextManager[object]:
        """Entered around all that is done for one run of a job."""

    async def prepared(self, job: Job, body: bytes) -> JobEdit:
        """Read a job.

        Raises:
            ApiError: its body is not taken (any more).
        """


class JobRunner:
    """Runs jobs for ever, one at a time. All methods belong to one event loop."""

    def __init__(self, ledger: JobLedger, editor: Editor, *, disk_retry_s: float = DISK_RETRY_S) -> None:
        self._ledger = ledger
        self._editor = editor
        self._disk_retry_s = disk_retry_s
        self._in_order = asyncio.Lock()
        self._place = asyncio.Lock()
        self._hand: dict[str, JobEdit | None] = {}
        self._new = asyncio.Event()
        self._empty_handed = asyncio.Event()
        self._empty_handed.set()
        self._ending = asyncio.Event()

    def wake(self) -> None:
        """There is a new job."""
        self._new.set()

    def edit_of(self, job_id: str) -> JobEdit | None:
        """The job on its way to the card or on it, if it is."""
        return self._hand.get(job_id)

    async def run(self) -> None:
        """Run the jobs, for ever."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(LANES):
                lanes.create_task(self._lane())

    async def settle(self) -> None:
        """Return once no job is under way; call it when none may start any more."""
        self._ending.set()
        await self._empty_handed.wait()

    async def _lane(self) -> None:
        while True:
            with contextlib.ExitStack() as span:
                async with self._in_order:
                    job = await self._next()
                    self._take(job.job_id)
                    span.enter_context(self._editor.span(job))
                    edit = await self._settled(job.job_id, self._read(job))
                    if edit is not None:
                        await self._place.acquire()
                if edit is not None:
                    await self._carry_out(job.job_id, edit)
            self._let_go(job.job_id)

    async def _next(self) -> Job:
        """The first job that nobody has in hand, once it may start."""
        while True:
            self._new.clear()
            job = next((job for job in self._ledger.waiting() if job.job_id not in self._hand), None)
            # One that only waits for the job before it is read now, and gets in line after it.
            if job is not None and (self._hand or self._editor.may_start()) and not self._ending.is_set():
                return job
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._new.wait(), None if job is None else POLL_S)

    async def _read(self, job: Job) -> JobEdit | None:
        body = None
        for _ in range(DISK_TRIES):
            with contextlib.suppress(StorageUnusable):
                body = await self._ledger.body(job.job_id)
                break
            if await self._ends_within(self._disk_retry_s):
                raise NotNow
        if body is not None:
            return await self._editor.prepared(job, body)
        message = "Its body is gone or damaged on disk; send it again."
        await self._ledger.failed(job.job_id, code=LOST_BODY, message=message)
        return None

    async def _carry_out(self, job_id: str, edit: JobEdit) -> None:
        try:
            ran = await self._settled(job_id, self._run(job_id, edit))
        finally:
            self._place.release()
        if ran:
            await self._settled(job_id, self._keep(job_id, edit))

    async def _run(self, job_id: str, edit: JobEdit) -> bool:
        job = self._ledger.book.get(job_id)
        # It may have been cancelled while its picture was read.
        if job is None or job.ended:
            return False
        self._hand[job_id] = edit
        return await edit.run(lambda: self._ledger.started(job_id))

    async def _keep(self, job_id: str, edit: JobEdit) -> None:
        answer = await edit.answer()
        for _ in range(DISK_TRIES):
            with contextlib.suppress(StorageUnusable):
                return await self._ledger.succeeded(job_id, answer)
            if await self._ends_within(self._disk_retry_s):
                raise NotNow
        message = "The disk did not take the result; send the job again."
        return await self._ledger.failed(job_id, code=UNWRITTEN_RESULT, message=message)

    # | what ends a step                   | the job then                                        |
    # | ---------------------------------- | --------------------------------------------------- |
    # | the worker was lost under it       | died: queued once, then quarantined                 |
    # | no worker was there                | queued                                              |
    # | the worker says that it fails      | failed (edit_failed)                                |
    # | its turn came, and it may not run  | queued                                              |
    # | the disk does not take its start   | queued, and tried again later                       |
    # | its pictures cannot be looked at   | queued                                              |
    # | its body is not taken              | failed, with the code that a request would get      |
    # | anything else                      | failed (internal_error): one job ends no runner     |
    async def _settled(self, job_id: str, step: Coroutine[Any, Any, T]) -> T | None:
        ledger = self._ledger
        try:
            return await step
        except WorkerError as error:
            await self._worker_failed(job_id, error.failure)
        except NotNow:
            await ledger.put_back(job_id)
        except StorageUnusable:
            await ledger.put_back(job_id)
            await self._ends_within(self._disk_retry_s)
        except ApiError as error:
            await ledger.failed(job_id, code=error.code, message=error.message)
        except Exception as error:
            log.exception("job_crashed", extra=fields(job_id=job_id))
            message = f"An unexpected error: {type(error).__name__}."
            await ledger.failed(job_id, code="internal_error", message=message)
        return None

    async def _worker_failed(self, job_id: str, failure: WorkerFailure) -> None:
        log.warning("job_failed", extra=fields(job_id=job_id, reason=failure.reason, message=failure.message))
        if failure.sticky:
            await self._ledger.died(job_id)
        elif failure.reason == "WorkerLost":
            await self._ledger.put_back(job_id)
        else:
            await self._ledger.failed(job_id, code="edit_failed", message=failure.message)

    async def _ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)
        return self._ending.is_set()

    def _take(self, job_id: str) -> None:
        self._hand[job_id] = None
        self._empty_handed.clear()

    def _let_go(self, job_id: str) -> None:
        self._hand.pop(job_id, None)
        self._new.set()
        if not self._hand:
            self._empty_handed.set()
