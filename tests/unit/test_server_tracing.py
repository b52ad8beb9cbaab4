"""Facts about when traces are made, and what is told of an edit whose turn is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from imageedit_server.api.ticket import Ticket, TooLate
from imageedit_server.otlp import QUIET_S, OnceInAWhile
from imageedit_server.setting_values import traces
from imageedit_server.tracing import NO_TRACES, Attribute, trace_turn
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.shapes import Size

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environ", "on"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, False),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_SERVICE_NAME": "edits"}, False),
    ],
)
def test_traces_are_made_where_an_endpoint_is_set(environ: dict[str, str], on: bool) -> None:
    assert traces(environ) is on


class _Told:
    """Traces that keep what they are told."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[float, float, str | None]] = {}
        self.attributes: dict[str, Mapping[str, Attribute]] = {}
        self.request, self.span, self.note, self.close = (
            NO_TRACES.request,
            NO_TRACES.span,
            NO_TRACES.note,
            NO_TRACES.close,
        )

    def past(
        self,
        name: str,
        *,
        start_s: float,
        end_s: float,
        attributes: Mapping[str, Attribute] | None = None,
        failed: str | None = None,
    ) -> None:
        self.parts[name] = (start_s, end_s, failed)
        self.attributes[name] = attributes or {}


def ticket(*, started_s: float | None) -> Ticket:
    job = EditJob(job_id="j", picture=b"x", size=Size(64, 64), prompt="canary", steps=4, seed=3)
    made = Ticket(job, submitted_s=1.0, deadline_s=9.0, steps_open=False, linger_s=0.0, before_start=None)
    made.started_s = started_s
    return made


async def test_a_done_edit_is_a_wait_and_an_edit() -> None:
    told, done = _Told(), ticket(started_s=3.0)
    done.answer.set_result(EditResult(job_id="j", picture=b"y", seconds=1.5, steps=5))
    trace_turn(told, done, 5.0)

    assert told.parts == {"wait": (1.0, 3.0, None), "edit": (3.0, 5.0, None)}
    assert told.attributes["edit"]["imageedit.steps"] == 5
    assert "canary" not in str(told.attributes)


async def test_an_edit_that_was_too_late_is_a_failed_wait() -> None:
    told, late = _Told(), ticket(started_s=None)
    late.answer.set_exception(TooLate())
    trace_turn(told, late, 5.0)

    assert told.parts == {"wait": (1.0, 5.0, "TooLate")}


async def test_an_edit_that_was_given_up_on_the_card_is_a_failed_edit() -> None:
    told, gone = _Told(), ticket(started_s=2.0)
    gone.answer.cancel()
    await asyncio.sleep(0)
    trace_turn(told, gone, 5.0)

    assert told.parts["edit"] == (2.0, 5.0, "nobody_waits")


def test_failures_to_send_make_one_line_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = [0.0]
    handler = OnceInAWhile(lambda: clock[0])
    record = logging.LogRecord("opentelemetry.x", logging.ERROR, "", 0, "refused by %s", ("collector",), None)
    for now_s in (0.0, 1.0, QUIET_S - 1, QUIET_S, QUIET_S + 1):
        clock[0] = now_s
        handler.handle(record)
    lines = [line.__dict__["fields"] for line in caplog.records if line.getMessage() == "traces_not_sent"]

    assert lines == [
        {"why": "refused by collector", "untold_before": 0},
        {"why": "refused by collector", "untold_before": 2},
    ]
