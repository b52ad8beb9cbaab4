"""Drain by SIGTERM and by `/drain`: what was accepted is answered, then the process ends or stays idle."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server.running import RunningServer, answers, in_background, running_server, stub_server, until

TOKEN = "0b0d9c1e-pod-uid"


def drain(server: RunningServer, authorization: str | None = f"Bearer {TOKEN}") -> httpx.Response:
    headers = {} if authorization is None else {"authorization": authorization}
    return httpx.post(server.probes + "/drain", headers=headers)


def is_refusing(server: RunningServer) -> None:
    until(lambda: server.get("/warmz").json()["accepting"] is False, what="the drain refuses")


def has_load(server: RunningServer, running: int, waiting: int) -> None:
    until(
        lambda: (server.health()["running"], server.health()["waiting"]) == (running, waiting),
        what=f"{running} running, {waiting} waiting",
    )


def test_sigterm_answers_what_was_accepted_and_ends_with_zero() -> None:
    with stub_server("--drain-propagation", "2", edit_s=1.5) as server, in_background(*[server.edit] * 3) as accepted:
        has_load(server, 1, 2)
        server.terminate()
        until(lambda: server.health()["draining"], what="the drain has begun")

        assert server.get("/readyz").status_code == 503
        assert server.get("/readyz").json()["reason"] == "draining"
        warmth = server.get("/warmz").json()
        assert (warmth["warm"], warmth["draining"], warmth["accepting"]) == (True, True, True)
        assert server.metric("imageedit_draining") == 1
        with in_background(server.edit) as late:
            is_refusing(server)
            refused = server.edit()
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "draining"
            assert refused.headers["retry-after"] == "1"
            assert refused.headers["connection"] == "close"

            answers = [*accepted.results(), *late.results()]
        assert [answer.status_code for answer in answers] == [200] * 4
        assert [answer.headers["connection"] for answer in answers] == ["close"] * 4
        assert server.exit_code() == 0
        assert server.termination_message() == ""


def test_every_answer_of_a_draining_server_closes_its_connection() -> None:
    with stub_server("--drain-propagation", "30", edit_s=0.01) as server, httpx.Client(base_url=server.api) as client:
        assert "connection" not in client.get("/v1/models").headers
        assert drain(server, None).status_code == 202
        answers = [client.get("/v1/models"), client.get("/nowhere"), client.post("/v1/edit", content=b"{")]

    assert [answer.headers["connection"] for answer in answers] == ["close"] * 3


def test_a_refusal_while_draining_reaches_a_client_that_still_sends_its_body() -> None:
    with stub_server("--drain-propagation", "0", edit_s=0.01) as server:
        drain(server, None)
        # The standard library's client gives up at the first write that fails, as many clients do.
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/v1/edit", body=b"x" * 20_000_000)
        answer = connection.getresponse()
        error = json.loads(answer.read())["error"]
        connection.close()

    assert (answer.status, error["code"]) == (503, "draining")


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer é"]
)
def test_drain_needs_the_pods_uid(token_server: RunningServer, authorization: str | None) -> None:
    headers = {} if authorization is None else {b"authorization": authorization.encode()}
    answer = httpx.post(token_server.probes + "/drain", headers=headers)

    assert answer.status_code == 401
    assert token_server.health()["draining"] is False


@pytest.fixture(scope="module")
def token_server() -> Iterator[RunningServer]:
    with stub_server(edit_s=0.01, environ={"IMAGEEDIT_POD_UID": TOKEN}) as running:
        yield running


def test_after_drain_alone_the_process_stays_idle_until_sigterm() -> None:
    with stub_server(edit_s=0.01, environ={"IMAGEEDIT_POD_UID": TOKEN}) as server:
        assert [drain(server).status_code, drain(server).status_code] == [202, 202]
        is_refusing(server)

        assert server.edit().status_code == 503
        assert server.get("/healthz").status_code == 200
        assert server.get("/warmz").json()["warm"] is True
        assert server.process.poll() is None
        server.terminate()
        assert server.exit_code() == 0


def test_drain_finishes_what_was_accepted() -> None:
    with stub_server(edit_s=2.0) as server, in_background(*[server.edit] * 2) as accepted:
        has_load(server, 1, 1)
        drain(server, None)

        assert [answer.status_code for answer in accepted.results()] == [200, 200]
        until(lambda: server.health()["running"] == 0, what="idle")


def test_a_repeated_sigterm_costs_no_accepted_edit() -> None:
    with stub_server(edit_s=1.5) as server, in_background(server.edit) as accepted:
        has_load(server, 1, 0)
        for _ in range(3):
            server.terminate()

        assert accepted.results()[0].status_code == 200
        assert server.exit_code() == 0


def test_sigint_in_a_drain_ends_process_and_worker_at_once() -> None:
    with stub_server("--drain-propagation", "60", edit_s=0.01) as server:
        worker = Path(f"/proc/{server.worker_pid()}")
        server.terminate()
        until(lambda: server.health()["draining"], what="the drain has begun")
        server.process.send_signal(signal.SIGINT)

        assert server.exit_code(5) == 128 + signal.SIGINT
        until(lambda: not worker.exists(), what="the worker is gone")


def test_sigint_drains_too() -> None:
    with stub_server(edit_s=0.01) as server:
        server.process.send_signal(signal.SIGINT)

        assert server.exit_code() == 0


def test_a_process_that_was_never_ready_does_not_wait_for_endpoints() -> None:
    arguments = ("--stub-edit-seconds", "0.01", "--stub-load-seconds", "60", "--drain-propagation", "60")
    with running_server(*arguments, ready=False) as server:
        until(lambda: answers(server), timeout_s=30, what="the probes answer")
        started_s = time.monotonic()
        server.terminate()

        assert server.exit_code() == 0
        assert time.monotonic() - started_s < 15
