"""What clients and probes see when the worker fails in each of its ways."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from server.running import RunningServer, in_background, stub_server, until

STEPS = ("--steps", "4")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server(*STEPS, edit_s=0.2) as server:
        yield server


@pytest.mark.parametrize(
    ("prompt", "reason", "status", "code"),
    [
        ("fault: error", "EditFailed", 500, "edit_failed"),
        ("fault: bad output", "BadOutput", 500, "edit_failed"),
        ("fault: out of memory", "OutOfMemory", 500, "edit_failed"),
    ],
)
def test_an_edit_that_fails_alone_is_answered_and_counted_by_its_class(
    server: RunningServer, prompt: str, reason: str, status: int, code: str
) -> None:
    before = server.metric("imageedit_worker_failures_total", reason=reason)
    answer = server.edit(prompt=prompt)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert server.metric("imageedit_worker_failures_total", reason=reason) == before + 1
    assert server.edit().status_code == 200


def test_the_edits_behind_one_that_kills_the_worker_are_done_by_the_next_worker() -> None:
    # It kills at its first step of two: time enough for the others to get in line.
    with (
        stub_server("--steps", "2", "--max-wait", "600", edit_s=4) as server,
        in_background(lambda: server.edit(prompt="fault: crash")) as killing,
    ):
        until(lambda: server.health()["running"] == 1, what="the deadly edit runs")
        with in_background(*[lambda seed=seed: server.edit(seed=seed) for seed in range(3)]) as waiting:
            until(lambda: server.health()["waiting"] == 3, what="three wait behind it")
            assert [answer.status_code for answer in waiting.results()] == [200] * 3
        (answer,) = killing.results()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "worker_lost")
        assert server.metric("imageedit_worker_failures_total", reason="WorkerLost") >= 1


def test_healthz_answers_at_once_while_the_worker_hangs() -> None:
    with stub_server(*STEPS, edit_s=0.1) as server, in_background(lambda: server.edit(prompt="fault: hang")):
        until(lambda: server.health()["running"] == 1, what="the hanging edit runs")
        times_ms = []
        for _ in range(40):
            started_s = time.monotonic()
            assert server.get("/healthz").status_code == 200
            times_ms.append((time.monotonic() - started_s) * 1000)
        assert sorted(times_ms)[len(times_ms) // 2] < 50
        server.terminate()
        until(lambda: bool(server.health()["draining"]), what="the drain has begun")
        server.terminate()  # it would wait for the watchdog


def test_each_stage_of_an_edit_is_timed(server: RunningServer) -> None:
    before = {stage: server.metric("imageedit_stage_seconds_count", stage=stage) for stage in ("decode", "wait")}
    assert server.edit().status_code == 200
    for stage, count in before.items():
        assert server.metric("imageedit_stage_seconds_count", stage=stage) > count
    for stage in ("prepare", "denoise", "finish", "encode"):
        assert server.metric("imageedit_stage_seconds_count", stage=stage) > 0
    assert server.metric("imageedit_warm_shape_seconds", size="128x128", pictures="1", cfg="off") > 0


def test_a_worker_that_is_not_warm_in_time_ends_the_pod_with_its_reason() -> None:
    with stub_server("--start-deadline", "1", "--stub-load-seconds", "30", ready=False) as server:
        assert server.exit_code() == 66
        assert server.termination_message().startswith("ModelInvalid: the model was not loaded within 1 s")


def test_another_checkpoint_than_asked_for_ends_the_pod_and_names_both_digests() -> None:
    wanted = "sha256:" + "0" * 64
    with stub_server("--manifest-digest", wanted, ready=False) as server:
        assert server.exit_code() == 66
        assert server.termination_message().count("sha256:") == 2
        assert wanted in server.termination_message()
