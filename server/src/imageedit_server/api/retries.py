"""Requests that are here already: the asyncio side of `gate.dedupe`, and how a request is recognised."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace

from starlette.datastructures import Headers

from imageedit_server.api.ticket import Ticket
from imageedit_server.api.wishes import Digests
from imageedit_server.errors import Conflict, InvalidInput
from imageedit_server.gate import dedupe
from imageedit_server.gate.dedupe import Attach, Identity, Register
from imageedit_server.worker.protocol import EditJob, EditResult

# Long enough for a client that sleeps between its tries, short enough to hold no more than a few results.
KEEP_S = 300.0
KEEP_BYTES = 64 * 1024 * 1024
# The OpenAI clients come back within half a second of a timeout, then within one: until then the edit goes on.
LINGER_S = 3.0
MAX_KEY_CHARACTERS = 255


def identity_of(
    headers: Headers,
    job: EditJob,
    *,
    digests: Digests,
    seed_given: bool,
    steps_given: bool,
    request_id: str | None,
    part: int,
) -> Identity:
    """What a request with these digests says about one of its jobs.

    Raises:
        InvalidInput: a key that is too long.
    """
    return Identity(
        scope=scope_of(headers),
        content=_content(job, digests.pictures, seed_given=seed_given, steps_given=steps_given, part=part),
        request=digests.request,
        key=_of_part(key_of(headers, request_id), part),
        request_id=_of_part(_request_id(headers), part),
        retry=headers.get("x-stainless-retry-count", "0") not in ("", "0"),
        may_retry="x-stainless-retry-count" in headers,
    )


def scope_of(headers: Headers) -> str:
    """A digest of the caller's credentials."""
    return hashlib.sha256(headers.get("authorization", "").encode()).hexdigest()


def key_of(headers: Headers, request_id: str | None = None) -> str | None:
    """The key that the client chose; the header wins over the field `request_id` of the body.

    Raises:
        InvalidInput: it is too long.
    """
    key = headers.get("idempotency-key") or request_id
    if key is not None and len(key) > MAX_KEY_CHARACTERS:
        raise InvalidInput(
            f"The idempotency key has {len(key)} characters; at most {MAX_KEY_CHARACTERS} are taken.",
            code="invalid_parameter",
            param="idempotency-key" if "idempotency-key" in headers else "request_id",
        )
    return key


class Retries:
    """Finds the ticket that a request belongs to.

    Args:
        now_s: monotonic seconds.
    """

    def __init__(self, *, now_s: Callable[[], float], keep_s: float = KEEP_S, keep_bytes: int = KEEP_BYTES) -> None:
        self._now_s = now_s
        self._register = Register(keep_s=keep_s, keep_bytes=keep_bytes)
        self._tickets: dict[str, Ticket] = {}

    @property
    def kept_bytes(self) -> int:
        """Bytes of the results that are kept for retries."""
        return self._register.kept_bytes

    @property
    def known(self) -> int:
        """Jobs that a request could attach to."""
        return len(self._register)

    def expects(self, headers: Headers) -> bool:
        """Whether the headers alone name a job that is here: such a request is read even when the queue is full."""
        self._expire()
        return self._register.knows(
            scope=scope_of(headers), key=_of_part(key_of(headers), 0), request_id=_of_part(_request_id(headers), 0)
        )

    def find(self, identity: Identity) -> tuple[Ticket, dedupe.By] | None:
        """The ticket of the job that this request is, and what told so.

        Raises:
            Conflict: its key belongs to another request.
        """
        self._expire()
        found = self._register.find(identity)
        if isinstance(found, Attach):
            ticket = self._tickets[found.job_id]
            # It may have ended without a result in this very moment, and not be forgotten yet.
            return None if _ended_badly(ticket) else (ticket, found.by)
        if found is not None:
            raise Conflict(
                "This idempotency key was sent before with another picture, mask, prompt or parameter; use a new key.",
                code="idempotency_key_reused",
                should_retry=False,
            )
        return None

    def remember(self, ticket: Ticket, identity: Identity) -> None:
        """Later requests may attach to this ticket, and to its result for a while."""
        if not identity.attachable:
            return
        job_id = ticket.job.job_id
        self._register.add(job_id, identity)
        self._tickets[job_id] = ticket

        def ended(_: asyncio.Future[EditResult]) -> None:
            if _ended_badly(ticket):
                self._register.forget(job_id)
                self._tickets.pop(job_id, None)
                return
            # The pictures that went in are of no use any more.
            ticket.job = replace(ticket.job, picture=b"", references=(), mask=b"")
            size_bytes = len(ticket.answer.result().picture)
            for gone in self._register.finished(job_id, result_bytes=size_bytes, now_s=self._now_s()):
                self._tickets.pop(gone, None)

        ticket.answer.add_done_callback(ended)

    def _expire(self) -> None:
        for gone in self._register.expire(self._now_s()):
            self._tickets.pop(gone, None)


def _ended_badly(ticket: Ticket) -> bool:
    answer = ticket.answer
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _content(job: EditJob, pictures: str, *, seed_given: bool, steps_given: bool, part: int) -> str:
    parameters = (
        *(str(job.size), job.prompt, job.negative_prompt, job.true_cfg_scale, job.guidance_scale),
        *(job.seed if seed_given else None, job.steps if steps_given else None, part, pictures),
    )
    # A mask that only puts the result together later is no content: the edit is the same one.
    return hashlib.sha256(repr(parameters).encode() + job.mask).hexdigest()


def _request_id(headers: Headers) -> str | None:
    given = headers.get("x-request-id", "")
    return given if 0 < len(given) <= MAX_KEY_CHARACTERS else None


def _of_part(name: str | None, part: int) -> str | None:
    return None if not name else f"{part} {name}"
