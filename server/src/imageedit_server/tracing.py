"""What the server tells of a request's way, as spans; without an OpenTelemetry endpoint nothing is told.

The API process times every part itself, also those of the worker process: no trace context crosses the pipe.
Spans carry sizes, steps and seeds, never prompts or pictures. `docs/reference/tracing.md` names them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from imageedit_server.api.ticket import Ticket
from imageedit_server.logs import fields
from imageedit_server.settings import Settings

log = logging.getLogger("imageedit.tracing")

Attribute = str | int | float | bool


class Span(Protocol):
    """One part of a request's way that is under way."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits, or nothing where no trace is made."""

    def set(self, name: str, value: Attribute) -> None:
        """Add or change an attribute."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed; `kind` is one of a few words, never a message."""


class Traces(Protocol):
    """Where spans go. No call blocks or raises."""

    def request(self, *, method: str, route: str, headers: Mapping[str, str]) -> AbstractContextManager[Span]:
        """The span of one HTTP request, below the caller's `traceparent` if it sent one."""

    def span(self, name: str, attributes: Mapping[str, Attribute] | None = None) -> AbstractContextManager[Span]:
        """A part of what is under way in this task, or the root of a trace; an exception marks it as failed."""

    def past(
        self,
        name: str,
        *,
        start_s: float,
        end_s: float,
        attributes: Mapping[str, Attribute] | None = None,
        failed: str | None = None,
    ) -> None:
        """A part that is over, by its monotonic seconds."""

    def note(self, name: str, value: Attribute) -> None:
        """Add an attribute to the span that is under way in this task."""

    async def close(self) -> None:
        """Send what is left, for at most two seconds."""


class _NoSpan:
    trace_id = ""

    def set(self, name: str, value: Attribute) -> None:
        return

    def fail(self, kind: str) -> None:
        return


class _NoTraces:
    @contextmanager
    def request(self, *, method: str, route: str, headers: Mapping[str, str]) -> Iterator[Span]:
        yield _NoSpan()

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Attribute] | None = None) -> Iterator[Span]:
        yield _NoSpan()

    def past(
        self,
        name: str,
        *,
        start_s: float,
        end_s: float,
        attributes: Mapping[str, Attribute] | None = None,
        failed: str | None = None,
    ) -> None:
        return

    def note(self, name: str, value: Attribute) -> None:
        return

    async def close(self) -> None:
        return


NO_TRACES: Traces = _NoTraces()


def traces_from(settings: Settings, *, instance: str) -> Traces:
    """OpenTelemetry where an endpoint is set, else nothing; it is imported only then."""
    if not settings.traces:
        return NO_TRACES
    try:
        from imageedit_server.otlp import OtlpTraces
    except ImportError as error:
        # Edits matter more than what is told about them.
        log.warning("traces_off", extra=fields(why=f"{error}; install imageedit-server[traces]"))
        return NO_TRACES
    return OtlpTraces(settings, instance=instance)


def trace_turn(traces: Traces, ticket: Ticket, ended_s: float) -> None:
    """Tell of an edit whose turn is over, in the context of who asked for it: its wait, and its time on the card."""
    started_s = ticket.started_s
    failed = None
    if ticket.answer.cancelled():
        failed = "nobody_waits"
    elif (error := ticket.answer.exception()) is not None:
        failed = type(error).__name__
    if started_s is None:
        traces.past("wait", start_s=ticket.submitted_s, end_s=ended_s, failed=failed)
        return
    traces.past("wait", start_s=ticket.submitted_s, end_s=started_s)
    traces.past("edit", start_s=started_s, end_s=ended_s, attributes=_of_edit(ticket), failed=failed)


def _of_edit(ticket: Ticket) -> dict[str, Attribute]:
    job = ticket.job
    attributes: dict[str, Attribute] = {
        "imageedit.job_id": job.job_id,
        "imageedit.size": str(job.size),
        "imageedit.steps": job.steps,
        "imageedit.seed": job.seed,
        "imageedit.pictures": 1 + len(job.references) if job.picture else 0,
        "imageedit.cfg": job.cfg,
    }
    if not ticket.answer.cancelled() and ticket.answer.exception() is None:
        result = ticket.answer.result()
        attributes |= {
            "imageedit.steps": result.steps,
            "imageedit.card_seconds": round(result.seconds, 6),
            "imageedit.prepare_seconds": round(result.stages.prepare_s, 6),
            "imageedit.denoise_seconds": round(result.stages.denoise_s, 6),
            "imageedit.finish_seconds": round(result.stages.finish_s, 6),
        }
    return attributes
