"""One job's turn on the card, on behalf of one request: attach or admit, wait, and let go when the client has left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from imageedit_server.api.costs import Costs
from imageedit_server.api.deadlines import deadline_of, left_s
from imageedit_server.api.edit_errors import failure_error, too_late_error
from imageedit_server.api.queue import EditQueue
from imageedit_server.api.retries import LINGER_S, Retries, identity_of
from imageedit_server.api.service import Service
from imageedit_server.api.ticket import Ticket, TooLate
from imageedit_server.api.wishes import Digests
from imageedit_server.errors import ClientGone, Conflict
from imageedit_server.gate.admission import Ask, Refusal
from imageedit_server.gate.dedupe import By, Identity
from imageedit_server.logs import fields
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.protocol import EditJob, EditResult

log = logging.getLogger("imageedit.edits")

TIME_REFUSALS = (Refusal.QUEUE_FULL, Refusal.WAIT_TOO_LONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished job: the one that really ran. Its seed and steps can be others than those of the job that was asked
    for, when the request attached to an earlier one or the steps were left to the server."""

    job: EditJob
    result: EditResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One job that a request asks for; `deadline_s` is in monotonic seconds, infinite for any time."""

    job: EditJob
    identity: Identity
    deadline_s: float
    steps_open: bool


class Gate(Protocol):
    """What a turn needs of the service."""

    @property
    def queue(self) -> EditQueue: ...

    @property
    def retries(self) -> Retries: ...

    @property
    def costs(self) -> Costs: ...

    def check_admission(self, ask: Ask) -> None:
        """Raise why one more edit is refused now."""

    def attached(self, by: By) -> None:
        """Note that a request attached to an edit that was here."""


def check_early(service: Service, request: Request) -> None:
    """Refuse what would be refused anyway before its body is read: a full server must not spend memory on it.

    A retry is let through, although there is no place for another job: its own may be here already.

    Raises:
        ApiError: no place for it.
    """
    with service.counting_refusals():
        if service.retries.expects(request.headers):
            return
        deadline_s = deadline_of(request)
    refused = service.refusal(Ask(deadline_s=left_s(deadline_s, service.queue.now_s)))
    retry = request.headers.get("x-stainless-retry-count", "0") not in ("", "0")
    if refused is not None and not (retry and refused.reason in TIME_REFUSALS):
        raise service.refused(refused)


async def turn(
    service: Service,
    request: Request,
    job: EditJob,
    *,
    digests: Digests,
    seed_given: bool = True,
    steps_given: bool = True,
    request_id: str | None = None,
    part: int = 0,
    on_place: Callable[[Ticket], None] = lambda _: None,
) -> Done:
    """Run a job when its turn comes.

    Args:
        digests: of the request.
        seed_given: the client chose the seed; else any seed will do, also that of an equal job.
        steps_given: the client chose the steps (or a quality); else dynamic steps may choose.
        request_id: field `request_id` of the body.
        part: number of this job among those of one request (`n` > 1).
        on_place: called with the place in the queue, once there is one.

    Raises:
        ApiError: the job is not admitted, or it failed.
        ClientGone: the client left while the job waited or ran.
    """
    with service.counting_refusals():
        identity = identity_of(
            request.headers,
            job,
            digests=digests,
            seed_given=seed_given,
            steps_given=steps_given,
            request_id=request_id,
            part=part,
        )
        deadline_s = deadline_of(request)
    asked = Asked(job=job, identity=identity, deadline_s=deadline_s, steps_open=not steps_given)
    try:
        return await take_turn(service, asked, gone=_disconnected(request), on_place=on_place)
    except Conflict as error:
        service.count_refusal(error)
        raise
    except TooLate:
        raise too_late_error(ahead_s=service.queue.line.ahead_s) from None
    except WorkerError as error:
        failure = error.failure
        log.warning(
            "edit_failed",
            extra=fields(
                request_id=request.state.request_id,
                job_id=job.job_id,
                reason=failure.reason,
                message=failure.message,
            ),
        )
        raise failure_error(failure) from error


async def take_turn(
    gate: Gate,
    asked: Asked,
    *,
    gone: Coroutine[None, None, None],
    on_place: Callable[[Ticket], None] = lambda _: None,
) -> Done:
    """The part of a turn that knows nothing of HTTP; `gone` returns when the client has left.

    Raises:
        ApiError: not admitted.
        WorkerError, TooLate: admitted, and not done.
        ClientGone: nobody waits for it.
    """
    left = asyncio.create_task(gone)
    ticket = None
    try:
        # No await from here until the job is in: what was checked must still hold.
        ticket = _earlier(gate, asked) or _admitted(gate, asked)
        on_place(ticket)
        await asyncio.wait((left, ticket.answer), return_when=asyncio.FIRST_COMPLETED)
        if not ticket.answer.done():
            raise ClientGone
        return Done(job=ticket.job, result=ticket.answer.result())
    finally:
        left.cancel()
        if ticket is not None:
            gate.queue.withdraw(ticket, deadline_s=asked.deadline_s)


def _earlier(gate: Gate, asked: Asked) -> Ticket | None:
    found = gate.retries.find(asked.identity)
    if found is None:
        return None
    ticket, by = found
    gate.queue.attach(ticket, deadline_s=asked.deadline_s)
    gate.attached(by)
    return ticket


def _admitted(gate: Gate, asked: Asked) -> Ticket:
    gate.check_admission(
        Ask(own_s=gate.costs.expected_s(asked.job), deadline_s=left_s(asked.deadline_s, gate.queue.now_s))
    )
    ticket = gate.queue.submit(
        asked.job,
        deadline_s=asked.deadline_s,
        steps_open=asked.steps_open,
        linger_s=LINGER_S if asked.identity.attachable else 0.0,
    )
    gate.retries.remember(ticket, asked.identity)
    return ticket


async def _disconnected(request: Request) -> None:
    """The body is read, so the only message that is left says that the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
