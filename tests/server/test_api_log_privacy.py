"""No line of the log holds a prompt, at any level, whatever happens to the request."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from server.running import RunningServer, encoded, picture, png_base64, running_server, stub_server, until

CANARY = "canary4711"
PROMPT = f"a {CANARY} on the roof"
FIELDS = {"image": png_base64(), "prompt": PROMPT}


def post(server: RunningServer, path: str = "/v1/edit", **fields: object) -> httpx.Response:
    return httpx.post(server.api + path, json=FIELDS | fields, timeout=50)


def form(server: RunningServer, **fields: str) -> httpx.Response:
    files = {"image": ("a.png", encoded(picture()))}
    return httpx.post(server.api + "/v1/images/edits", data={"prompt": PROMPT} | fields, files=files, timeout=50)


def raw(server: RunningServer, content: bytes, kind: str = "application/json") -> httpx.Response:
    return httpx.post(server.api + "/v1/edit", content=content, headers={"content-type": kind}, timeout=50)


def job(server: RunningServer, prompt: str = PROMPT) -> httpx.Response:
    submitted = post(server, "/v1/jobs", prompt=prompt)
    path = f"{server.api}/v1/jobs/{submitted.json()['id']}"
    until(lambda: httpx.get(path).json()["status"] in ("completed", "failed"), timeout_s=30, what="the job has ended")
    return httpx.get(path)


def left(server: RunningServer) -> httpx.Response:
    """The client goes while its body is read."""
    body = json.dumps(FIELDS).encode()
    head = f"POST /v1/edit HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head + body[:-5])
    return server.get("/healthz")


WAYS: dict[str, Callable[[RunningServer], httpx.Response]] = {
    "json": post,
    "negative": lambda server: post(server, prompt="x", negative_prompt=PROMPT, true_cfg_scale=4),
    "form": form,
    "stream": lambda server: form(server, stream="true"),
    "generation": lambda server: httpx.post(server.api + "/v1/images/generations", json={"prompt": PROMPT}, timeout=50),
    "job": job,
    "too_long": lambda server: post(server, prompt=f"{PROMPT} " * 400),
    "control_token": lambda server: post(server, prompt=f"{PROMPT} <|image_pad|>"),
    "wrong_field": lambda server: post(server, steps=PROMPT),
    "unknown_field": lambda server: post(server, strength=PROMPT),
    "wrong_model": lambda server: post(server, model=PROMPT),
    "as_address": lambda server: post(server, image=f"https://{CANARY}.example/a.png"),
    "not_base64": lambda server: post(server, image=f"%{PROMPT}%"),
    "not_json": lambda server: raw(server, f'{{"prompt": "{PROMPT}'.encode()),
    "not_a_form": lambda server: raw(server, PROMPT.encode(), "multipart/form-data; boundary=b"),
    "in_the_path": lambda server: httpx.get(f"{server.api}/v1/{CANARY}?prompt={CANARY}"),
    "in_an_id": lambda server: httpx.get(server.api + "/v1/models", headers={"x-request-id": PROMPT}),
    "client_left": left,
}


@pytest.fixture(scope="module", params=["info", "debug"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    arguments = ("--jobs-dir", str(tmp_path_factory.mktemp("jobs")), "--warm-cfg", "on")
    with stub_server(*arguments, "--log-level", request.param, edit_s=0.02) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_no_way_through_the_api_writes_the_prompt(server: RunningServer, way: str) -> None:
    WAYS[way](server)

    assert CANARY not in server.log()


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_failure_of_the_worker_writes_the_prompt(level: str, tmp_path: Path) -> None:
    # The stub fails at prompts of its own, so these are the canaries here.
    faults = ("fault: error", "fault: bad output", "fault: sticky", "fault: crash")
    with stub_server("--log-level", level, "--jobs-dir", str(tmp_path), edit_s=0.02) as server:
        for fault in faults:
            until(lambda: server.get("/readyz").status_code == 200, timeout_s=50, what="the worker is back")
            assert post(server, prompt=fault).status_code >= 500
        until(lambda: server.get("/readyz").status_code == 200, timeout_s=50, what="the worker is back")
        job(server, "fault: error")

        assert "edit_failed" in server.log()
        assert [fault for fault in faults if fault in server.log()] == []


@pytest.mark.timeout(240)
def test_the_real_pipeline_writes_no_prompt_at_debug() -> None:
    with running_server("--log-level", "debug", "--steps", "2", ready_timeout_s=150) as server:
        done = post(server, steps=2)
        too_long = post(server, steps=2, prompt=f"{CANARY} " * 390)

        assert done.status_code == 200
        assert too_long.json()["error"]["code"] == "prompt_too_long"
        assert CANARY not in server.log()


def test_lines_of_one_request_carry_its_id() -> None:
    with stub_server("--log-level", "debug", edit_s=0.02) as server:
        headers = {"x-request-id": "order-66"}
        httpx.post(server.api + "/v1/edit", json=FIELDS, headers=headers, timeout=50)
        lines = [json.loads(line) for line in server.log().splitlines()]

    (finished,) = [line for line in lines if line["event"] == "edit_finished"]
    assert finished["request_id"] == "order-66"
