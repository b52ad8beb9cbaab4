"""Jobs on the worker of this pod: how a body becomes an edit in the queue, and its result an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from imageedit_server.api import edits, requests, responses
from imageedit_server.api.edits import Edited
from imageedit_server.api.job_runner import NotNow
from imageedit_server.api.pieces import File, json_pieces
from imageedit_server.api.preparing import Received
from imageedit_server.api.service import Service
from imageedit_server.api.ticket import Ticket
from imageedit_server.api.turn import Done
from imageedit_server.errors import Unavailable
from imageedit_server.gate.jobs import Job
from imageedit_server.gate.turns import job_may_enter


class ServiceEditor:
    """Edits of jobs by the service of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def may_start(self) -> bool:
        """Whether the first job that waits may get in line now."""
        return may_run(self._service, jobs_in=self._service.queue.line.work.jobs)

    def span(self, job: Job) -> AbstractContextManager[object]:
        """The trace of a run, around all that is done for it."""
        return self._service.traces.span("job", {"imageedit.job": job.job_id})

    async def checked(self, body: bytes) -> Received:
        """Read a body as it is sent, to say at once what is wrong with it.

        Raises:
            ApiError: something in it is wrong.
        """
        return await edits.decoded(self._service, body, requests.from_json)

    async def prepared(self, job: Job, body: bytes) -> ServiceEdit:
        """Read a job.

        Raises:
            ApiError: its body is not taken (any more).
            NotNow: the safety hook cannot look at its pictures; it could when the job was left.
        """
        try:
            received = await self.checked(body)
        except Unavailable as error:
            raise NotNow from error
        return ServiceEdit(self._service, replace(received, job=replace(received.job, seed=job.seed)))


class ServiceEdit:
    """One job on its way to the card."""

    def __init__(self, service: Service, received: Received) -> None:
        self._service = service
        self._received = received
        self._ticket: Ticket | None = None

    @property
    def place(self) -> int | None:
        """How many edits are before it; None when it waits no more."""
        return None if self._ticket is None else self._service.queue.line.place(self._ticket)

    @property
    def starts_in_s(self) -> float:
        """Seconds until its turn."""
        return 0.0 if self._ticket is None else self._service.queue.line.starts_in_s(self._ticket)

    @property
    def step(self) -> int:
        """Steps that are done."""
        return 0 if self._ticket is None else self._ticket.step

    @property
    def steps(self) -> int:
        """Steps in all."""
        return self._received.job.steps if self._ticket is None else self._ticket.job.steps

    async def run(self, before_start: Callable[[], Awaitable[None]]) -> bool:
        """Stand in line, and return when the card is free again: False when it was given up.

        Raises:
            WorkerError: it failed.
            NotNow: it may not run any more.
        """

        async def when_its_turn_comes() -> None:
            if not may_run(self._service, jobs_in=0):
                raise NotNow
            await before_start()

        queue = self._service.queue
        if not may_run(self._service, jobs_in=queue.line.work.jobs):
            raise NotNow
        ticket = self._ticket = queue.submit(
            self._received.job,
            steps_open=not self._received.wish.steps_given,
            before_start=when_its_turn_comes,
            of_job=True,
        )
        try:
            await asyncio.wait([ticket.answer])
        finally:
            queue.withdraw(ticket)
        if ticket.answer.cancelled():
            return False
        ticket.answer.result()
        return True

    async def answer(self) -> bytes:
        """What `POST /v1/edit` would have answered, after a run."""
        assert self._ticket is not None
        done = Done(job=self._ticket.job, result=self._ticket.answer.result())
        edited = [await edits.finished(self._service, self._received, done)]
        return await asyncio.to_thread(_rendered, self._service, self._received, edited)

    def give_up(self) -> None:
        """End it, at its next step if it runs."""
        if self._ticket is not None:
            self._service.queue.withdraw(self._ticket)


def may_run(service: Service, *, jobs_in: int) -> bool:
    """Whether a job may get in line now, or on."""
    return job_may_enter(drain=service.drain.phase, worker_ready=service.warm, jobs_in=jobs_in)


def _rendered(service: Service, received: Received, edited: list[Edited]) -> bytes:
    output = File(data=edited[0].file)
    return b"".join(json_pieces({"output": output, **responses.facts(service, received, edited)}))
