"""Every stage of a request's way is timed, on every path."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from imageedit_server.metric_labels import STAGES
from server.running import RunningServer, encoded, picture, png_base64, stub_server, until

# A look of the classifier is only there with one; jobs are sent when they are fetched.
ALWAYS = set(STAGES) - {"safety"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with stub_server("--jobs-dir", str(tmp_path_factory.mktemp("jobs")), edit_s=0.02) as running:
        yield running


def counts(server: RunningServer) -> dict[str, float]:
    return {stage: server.metric("imageedit_stage_seconds_count", stage=stage) for stage in STAGES}


def by_json(server: RunningServer) -> httpx.Response:
    return server.edit()


def by_stream(server: RunningServer) -> httpx.Response:
    files = {"image": ("a.png", encoded(picture()))}
    data = {"prompt": "x", "stream": "true"}
    return httpx.post(server.api + "/v1/images/edits", data=data, files=files, timeout=50)


@pytest.mark.parametrize("send", [by_json, by_stream])
def test_one_request_passes_every_stage_once(
    server: RunningServer, send: Callable[[RunningServer], httpx.Response]
) -> None:
    before = counts(server)
    assert send(server).status_code == 200
    until(lambda: counts(server)["send"] > before["send"], what="the answer is counted")

    assert {stage for stage, count in counts(server).items() if count == before[stage] + 1} == ALWAYS


def test_a_refused_request_passes_no_stage_behind_its_refusal(server: RunningServer) -> None:
    before = counts(server)
    server.edit(prompt="")
    after = counts(server)

    assert {stage for stage in STAGES if after[stage] > before[stage]} == {"receive", "parse"}


def test_a_slow_body_is_time_of_receiving(server: RunningServer) -> None:
    def received_s() -> float:
        return server.metric("imageedit_stage_seconds_sum", stage="receive")

    before_s = received_s()
    body = f'{{"image": "{png_base64()}", "prompt": "x"}}'.encode()
    head = f"POST /v1/edit HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head.encode() + body[:50])
        time.sleep(0.5)
        connection.sendall(body[50:])
        while connection.recv(65536):
            pass

    assert received_s() - before_s > 0.4
