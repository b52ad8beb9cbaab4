"""Clients that do harm, on purpose or not, and a worker that stands still: everybody else is served all the same."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from server.raw_http import head, raw_client
from server.running import RunningServer, in_background, png_base64, stub_server, until

LIMIT_BYTES = 400_000
BODY = json.dumps({"image": png_base64(), "prompt": "make the background blue"}).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--max-body-bytes", str(LIMIT_BYTES), edit_s=0.3) as running:
        yield running


def is_idle(server: RunningServer) -> None:
    until(lambda: (server.health()["running"], server.health()["waiting"]) == (0, 0), what="nothing runs or waits")


def test_clients_that_leave_in_the_middle_of_their_uploads_leave_nothing_behind(server: RunningServer) -> None:
    # Together far more than all uploads may have at once.
    for _ in range(20):
        with raw_client(server.port) as client:
            client.send(head("POST", "/v1/edit", f"Content-Length: {LIMIT_BYTES}") + b'{"image": "' + b"A" * 300_000)

    until(lambda: server.edit().status_code == 200, what="there is room again")


def test_a_client_that_leaves_in_the_middle_of_its_edit_frees_the_card(server: RunningServer) -> None:
    with raw_client(server.port) as client:
        client.send(head("POST", "/v1/edit", f"Content-Length: {len(BODY)}") + BODY)
        until(lambda: server.health()["running"] == 1, what="it runs")

    is_idle(server)
    assert server.edit().status_code == 200


def test_a_body_that_stands_still_keeps_nobody_else_out(server: RunningServer) -> None:
    with raw_client(server.port) as client:
        client.send(head("POST", "/v1/edit", f"Content-Length: {len(BODY)}") + BODY[:-1])
        assert server.edit().status_code == 200
        client.send(BODY[-1:])

        assert client.answer().status == 200


def test_many_malformed_requests_are_answered_and_do_not_fill_the_log(server: RunningServer) -> None:
    before = len(server.log())
    for _ in range(200):
        with raw_client(server.port) as client:
            client.send(b"\x00\x01\r\n\r\n")
            assert client.answer().status == 400

    assert len(server.log()) == before


def test_a_worker_that_stands_still_does_not_keep_the_probes_waiting(server: RunningServer) -> None:
    with in_background(server.edit) as stopped:
        until(lambda: server.health()["running"] == 1, what="an edit runs")
        worker = server.worker_pid()
        os.kill(worker, signal.SIGSTOP)
        try:
            with in_background(server.edit) as behind:
                until(lambda: server.health()["waiting"] == 1, what="another waits")
                probes = [server.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")]
                os.kill(worker, signal.SIGCONT)

                assert probes == [200] * 3
                assert [one.status_code for one in (*stopped.results(), *behind.results())] == [200, 200]
        finally:
            os.kill(worker, signal.SIGCONT)
