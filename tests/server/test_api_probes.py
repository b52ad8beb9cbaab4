"""The probe port over the socket: before and after the warm-up, and its metrics."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from server.running import RunningServer, answers, running_server, stub_server, until, wait_ready

IDENTITY = {"IMAGEEDIT_NAMESPACE": "ml", "IMAGEEDIT_DEPLOYMENT": "qwen-edit"}
WARMZ_FIELDS = {
    "warm",
    "model",
    "revision",
    "revisionHash",
    "digest",
    "instance",
    "warmupSeconds",
    "sizes",
    "check",
    "draining",
    "accepting",
    "running",
    "waiting",
    "error",
}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    arguments = ("--model-name", "qwen", "--model-revision", "2026-11-a", "--revision-hash", "5c0f6b1d2a")
    with stub_server(*arguments, edit_s=0.05, environ=IDENTITY) as running:
        yield running


def test_before_the_warm_up_the_pod_is_healthy_and_not_ready() -> None:
    arguments = ("--stub-edit-seconds", "0.05", "--stub-load-seconds", "3")
    with running_server(*arguments, ready=False) as server:
        until(lambda: answers(server), timeout_s=30, what="the probes answer")
        warmth, readiness, refused = server.get("/warmz"), server.get("/readyz"), server.edit()

        assert server.health()["worker"] in ("starting", "loading")
        assert (warmth.status_code, warmth.json()["warm"], warmth.json()["check"]["ok"]) == (503, False, False)
        assert warmth.json().keys() == WARMZ_FIELDS
        assert readiness.status_code == 503
        assert readiness.json()["reason"].startswith("worker ")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        assert refused.headers["retry-after"] == "5"
        assert server.metric("imageedit_warm") == 0
        wait_ready(server)
        assert server.get("/warmz").status_code == 200
        assert server.metric("imageedit_warm") == 1


def test_warmz_says_what_is_warm(server: RunningServer) -> None:
    answer = server.get("/warmz")
    warmth = answer.json()

    assert answer.status_code == 200
    assert warmth.keys() == WARMZ_FIELDS
    assert (warmth["model"], warmth["revision"], warmth["revisionHash"]) == ("qwen", "2026-11-a", "5c0f6b1d2a")
    assert warmth["digest"].startswith("sha256:")
    assert warmth["warmupSeconds"] > 0
    assert warmth["sizes"].keys() == {"128x128"}
    assert warmth["check"]["ok"] is True
    assert (warmth["draining"], warmth["accepting"], warmth["error"]) == (False, True, None)


def test_each_process_start_is_another_instance(server: RunningServer) -> None:
    with stub_server(edit_s=0.01) as other:
        assert other.get("/warmz").json()["instance"] != server.get("/warmz").json()["instance"]


def test_healthz_has_the_fields_of_the_contract(server: RunningServer) -> None:
    assert server.health() == {
        "status": "ok",
        "worker": "ready",
        "running": 0,
        "waiting": 0,
        "draining": False,
        "safety": {"denylist": "off", "classifier": "off"},
    }


def test_every_series_carries_who_it_is(server: RunningServer) -> None:
    lines = [line for line in server.get("/metrics").text.splitlines() if not line.startswith("#")]
    identity = ('imageedit_namespace="ml"', 'imageedit_deployment="qwen-edit"', 'imageedit_revision="5c0f6b1d2a"')

    assert len(lines) > 50
    assert [line for line in lines if not all(label in line for label in identity)] == []
    assert any(line.startswith("process_resident_memory_bytes") for line in lines)


def test_metrics_are_prometheus_text(server: RunningServer) -> None:
    assert server.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


def test_counters_are_there_before_their_first_event(server: RunningServer) -> None:
    for reason in ("queue_full", "draining", "not_ready", "invalid"):
        assert server.metric("imageedit_refused_requests_total", reason=reason) >= 0
    assert server.metric("imageedit_requests_total", route="/v1/images/edits", code="500") == 0
    assert server.metric("imageedit_worker_restarts_total") == 0


def test_the_model_is_named_in_a_metric(server: RunningServer) -> None:
    assert server.metric("imageedit_model_info", model="qwen", model_revision="2026-11-a") == 1
    assert server.metric("imageedit_worker_up") == 1
    assert server.metric("imageedit_warmup_seconds") > 0


@pytest.mark.parametrize("listener", ["api", "probes"])
def test_answers_on_a_kept_connection_do_not_wait_for_acknowledgements(server: RunningServer, listener: str) -> None:
    path = {"api": server.api + "/v1/models", "probes": server.probes + "/healthz"}[listener]
    with httpx.Client() as client:
        taken_s = sorted(client.get(path).elapsed.total_seconds() for _ in range(40))

    # Nagle's algorithm against delayed acknowledgements costs 40 ms an answer.
    assert taken_s[20] < 0.03


def test_probes_and_api_do_not_share_their_paths(server: RunningServer) -> None:
    assert httpx.get(server.api + "/metrics").status_code == 404
    assert httpx.post(server.api + "/drain").status_code == 404
    assert httpx.get(server.probes + "/v1/models").status_code == 404
