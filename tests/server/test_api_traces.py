"""Traces, against a real OTLP/HTTP receiver, and against ones that are away, broken or silent."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from server.otlp_receiver import Receiver, attributes, receiver
from server.running import SOURCE, RunningServer, encoded, free_ports, picture, png_base64, stub_server, until

CANARY = "a canary that sings 4711"
ROUTE = "POST /v1/edit"
PARTS = {"receive", "parse", "decode", "wait", "edit", "encode"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Receiver]:
    with receiver() as received:
        yield received


@pytest.fixture(scope="module")
def server(collector: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    named = {"OTEL_SERVICE_NAME": "shop-edits", "OTEL_RESOURCE_ATTRIBUTES": "team=pictures"}
    environ = collector.environ() | named | {"IMAGEEDIT_POD": "qwen-0"}
    folder = tmp_path_factory.mktemp("jobs")
    with stub_server("--jobs-dir", str(folder), edit_s=0.05, environ=environ) as running:
        yield running


def traced(
    server: RunningServer, *, prompt: str = CANARY, flags: str = "01", path: str = "/v1/edit"
) -> tuple[str, Any]:
    """One edit below a trace of its own."""
    trace_id = secrets.token_hex(16)
    headers = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-{flags}", "x-request-id": f"id-{trace_id}"}
    body = {"image": png_base64(), "prompt": prompt, "seed": 7, "steps": 4}
    return trace_id, httpx.post(server.api + path, json=body, headers=headers, timeout=50)


def whole(collector: Receiver, trace_id: str, root: str = ROUTE) -> dict[str, Span]:
    until(lambda: root in collector.trace(trace_id), timeout_s=30, what=f"the span {root} of {trace_id}")
    return collector.trace(trace_id)


def test_a_request_is_one_trace_below_the_callers_span(server: RunningServer, collector: Receiver) -> None:
    trace_id, answer = traced(server)
    spans = whole(collector, trace_id)
    root = spans[ROUTE]

    assert answer.status_code == 200
    assert spans.keys() == {ROUTE, *PARTS}
    assert root.parent_span_id.hex() == "00f067aa0ba902b7"
    assert root.kind == Span.SPAN_KIND_SERVER
    assert {spans[name].parent_span_id for name in PARTS} == {root.span_id}


def test_spans_say_what_was_edited(server: RunningServer, collector: Receiver) -> None:
    trace_id, _ = traced(server)
    spans = whole(collector, trace_id)
    root, edit = attributes(spans[ROUTE]), attributes(spans["edit"])

    assert (root["http.request.method"], root["http.route"], root["http.response.status_code"]) == (
        "POST",
        "/v1/edit",
        200,
    )
    assert root["imageedit.request_id"] == f"id-{trace_id}"
    assert (edit["imageedit.size"], edit["imageedit.steps"], edit["imageedit.seed"]) == ("128x128", 4, 7)
    assert (edit["imageedit.pictures"], edit["imageedit.cfg"]) == (1, False)


def test_the_parts_follow_each_other_within_the_request(server: RunningServer, collector: Receiver) -> None:
    trace_id, _ = traced(server)
    spans = whole(collector, trace_id)
    order = [spans[name] for name in ("receive", "parse", "decode", "wait", "edit", "encode")]
    slack_ns = 5_000_000  # two clocks: spans that are told afterwards come from the monotonic one

    for before, after in pairwise(order):
        assert before.end_time_unix_nano <= after.start_time_unix_nano + slack_ns
    assert spans[ROUTE].start_time_unix_nano <= order[0].start_time_unix_nano
    assert order[-1].end_time_unix_nano <= spans[ROUTE].end_time_unix_nano
    assert spans["edit"].end_time_unix_nano - spans["edit"].start_time_unix_nano >= 10_000_000


def test_the_resource_names_service_and_pod(server: RunningServer, collector: Receiver) -> None:
    trace_id, _ = traced(server)
    whole(collector, trace_id)
    resource = collector.resources[trace_id]

    assert resource["service.name"] == "shop-edits"
    assert resource["team"] == "pictures"
    assert resource["k8s.pod.name"] == "qwen-0"


def test_a_trace_that_the_caller_does_not_sample_is_not_sent(server: RunningServer, collector: Receiver) -> None:
    unsampled, _ = traced(server, flags="00")
    sampled, _ = traced(server)
    whole(collector, sampled)

    assert collector.trace(unsampled) == {}


def test_a_crash_of_the_worker_marks_edit_and_request_as_failed(collector: Receiver) -> None:
    with stub_server(environ=collector.environ()) as server:
        trace_id, answer = traced(server, prompt="fault: crash")
        spans = whole(collector, trace_id)

    assert answer.status_code == 503
    assert spans["edit"].status.code == Status.STATUS_CODE_ERROR
    assert attributes(spans["edit"])["error.type"] == "WorkerError"
    assert spans[ROUTE].status.code == Status.STATUS_CODE_ERROR
    assert attributes(spans[ROUTE])["error.type"] == "503"


def test_a_refusal_is_the_clients_error_and_no_failed_span(server: RunningServer, collector: Receiver) -> None:
    trace_id, answer = traced(server, prompt="")
    root = whole(collector, trace_id)[ROUTE]

    assert answer.status_code == 400
    assert root.status.code == Status.STATUS_CODE_UNSET
    assert attributes(root)["http.response.status_code"] == 400


def test_a_stream_is_traced_to_its_end(server: RunningServer, collector: Receiver) -> None:
    trace_id = secrets.token_hex(16)
    answer = httpx.post(
        server.api + "/v1/images/edits",
        data={"prompt": CANARY, "stream": "true"},
        files={"image": ("a.png", encoded(picture()))},
        headers={"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"},
        timeout=50,
    )
    spans = whole(collector, trace_id, "POST /v1/images/edits")

    assert answer.status_code == 200
    assert spans.keys() >= {"decode", "wait", "edit", "encode"}


def test_a_job_has_a_trace_of_its_own_that_names_it(server: RunningServer, collector: Receiver) -> None:
    trace_id, answer = traced(server, path="/v1/jobs")
    job_id = answer.json()["id"]
    submitted = whole(collector, trace_id, "POST /v1/jobs")["POST /v1/jobs"]

    def of_job() -> list[Span]:
        return [span for span in collector.named("job") if attributes(span)["imageedit.job"] == job_id]

    until(lambda: bool(of_job()), timeout_s=30, what="the span of the job")
    parts = collector.trace(of_job()[0].trace_id.hex())

    assert attributes(submitted)["imageedit.job"] == job_id
    assert parts.keys() >= {"job", "decode", "wait", "edit", "encode"}
    assert parts["edit"].parent_span_id == parts["job"].span_id


def test_no_span_holds_a_prompt_or_a_picture(server: RunningServer, collector: Receiver) -> None:
    for path in ("/v1/edit", "/v1/jobs"):
        trace_id, _ = traced(server, path=path)
        whole(collector, trace_id, f"POST {path}")
    received = b"".join(collector.bodies)

    assert CANARY.encode() not in received
    assert png_base64()[:40].encode() not in received


def test_log_lines_of_a_request_carry_its_trace(collector: Receiver) -> None:
    with stub_server(environ=collector.environ()) as server:
        trace_id, _ = traced(server, prompt="fault: error")
        lines = [json.loads(line) for line in server.log().splitlines()]

    (failed,) = [line for line in lines if line["event"] == "edit_failed" and line["logger"] == "imageedit.edits"]
    assert failed["trace_id"] == trace_id
    assert failed["request_id"] == f"id-{trace_id}"


def test_the_last_spans_are_sent_before_the_end() -> None:
    with receiver() as collector:
        environ = collector.environ() | {"OTEL_BSP_SCHEDULE_DELAY": "60000"}
        with stub_server(edit_s=0.01, environ=environ) as server:
            traced(server)
            server.terminate()
            server.exit_code()

        assert collector.named(ROUTE)


@pytest.mark.parametrize("kind", ["away", "broken", "silent"])
def test_a_collector_that_does_not_work_costs_no_request_and_one_line(kind: str) -> None:
    with receiver(status={"away": 200, "broken": 500, "silent": None}[kind]) as collector:
        environ = collector.environ() | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "16"}
        environ |= {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8"}
        if kind == "away":
            environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{free_ports(1)[0]}"
        with stub_server(edit_s=0.01, environ=environ) as server:
            codes = {traced(server)[1].status_code for _ in range(20)}
            until(lambda: "traces_not_sent" in server.log(), timeout_s=30, what="the line about the collector")
            server.terminate()
            code = server.exit_code()

            log = server.log()

        assert codes == {200}
        assert code == 0
        assert log.count("traces_not_sent") == 1, log


def test_a_silent_collector_holds_up_the_end_by_a_bounded_time() -> None:
    with receiver(status=None) as collector, stub_server(edit_s=0.01, environ=collector.environ()) as server:
        traced(server)
        until(lambda: collector.calls > 0, timeout_s=30, what="the collector is asked")
        started_s = time.monotonic()
        server.terminate()
        server.exit_code(timeout_s=40)

        # The exporter alone would wait for ten seconds and try again: far below that, far above two on a busy machine.
        assert time.monotonic() - started_s < 9
        assert "last_spans_not_sent" in server.log()


def test_without_an_endpoint_neither_sdk_nor_exporter_is_imported() -> None:
    program = """
import sys
from imageedit_server.api.app import api_app
from imageedit_server.api.service import Service
from imageedit_server.settings import settings_from
service = Service(settings_from(["--model-dir", "demo", "--sizes", "128x128"], {}))
api_app(service)
found = [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
sys.exit(" ".join(found) or 0)
"""
    environ = {"PYTHONPATH": str(SOURCE), "PATH": ""}
    subprocess.run([sys.executable, "-c", program], check=True, env=environ)


def test_edits_that_wait_for_each_other_keep_their_traces_apart(server: RunningServer, collector: Receiver) -> None:
    with ThreadPoolExecutor(max_workers=3) as pool:
        trace_ids = [trace_id for trace_id, _ in pool.map(lambda _: traced(server), range(3))]

    for trace_id in trace_ids:
        spans = whole(collector, trace_id)
        assert spans["edit"].parent_span_id == spans[ROUTE].span_id
