"""Each way to be refused counts under its reason, over the socket."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from imageedit_server.gate.refusals import REASONS
from server.running import RunningServer, answers, in_background, png_base64, stub_server, until

KEY = {"authorization": "Bearer key-one"}


def edit(server: RunningServer, headers: dict[str, str] | None = None, **fields: object) -> httpx.Response:
    body = {"image": png_base64(), "prompt": "make the background blue"} | fields
    return httpx.post(server.api + "/v1/edit", json=body, headers=KEY | (headers or {}), timeout=50)


@contextlib.contextmanager
def busy(server: RunningServer) -> Iterator[None]:
    with in_background(lambda: edit(server)):
        until(lambda: server.health()["running"] == 1, what="an edit runs")
        yield


def counts(server: RunningServer) -> dict[str, float]:
    return {reason: server.metric("imageedit_refused_requests_total", reason=reason) for reason in REASONS}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "keys").write_text("key-one\n")
    (folder / "denylist").write_text("zebra\n")
    arguments = ("--api-keys-file", str(folder / "keys"), "--prompt-denylist", str(folder / "denylist"))
    with stub_server(*arguments, "--queue-hard-limit", "0", edit_s=1.0) as running:
        yield running


def invalid(server: RunningServer) -> httpx.Response:
    return edit(server, prompt="")


def invalid_key(server: RunningServer) -> httpx.Response:
    return edit(server, {"idempotency-key": "k" * 300})


def denied(server: RunningServer) -> httpx.Response:
    return edit(server, prompt="a zebra")


def without_key(server: RunningServer) -> httpx.Response:
    return server.edit()


def impatient(server: RunningServer) -> httpx.Response:
    return edit(server, {"x-request-deadline": "0.1"})


def one_too_many(server: RunningServer) -> httpx.Response:
    with busy(server):
        return edit(server)


def another_body_under_one_key(server: RunningServer) -> httpx.Response:
    key = {"idempotency-key": "shared"}
    edit(server, key)
    return edit(server, key, prompt="something else")


@pytest.mark.parametrize(
    ("send", "reason", "status"),
    [
        (invalid, "invalid", 400),
        (invalid_key, "invalid", 400),
        (denied, "content_policy", 400),
        (without_key, "unauthorized", 401),
        (impatient, "wait_too_long", 429),
        (one_too_many, "queue_full", 429),
        (another_body_under_one_key, "idempotency_key_reused", 409),
    ],
)
def test_a_refusal_counts_once_under_its_reason(
    server: RunningServer, send: Callable[[RunningServer], httpx.Response], reason: str, status: int
) -> None:
    until(lambda: server.health()["running"] == 0, what="nothing runs")
    before = counts(server)
    answer = send(server)

    assert answer.status_code == status
    assert counts(server) == before | {reason: before[reason] + 1}


def test_a_server_that_loads_and_one_that_drains_count_their_refusals() -> None:
    with stub_server("--stub-load-seconds", "3600", ready=False) as loading:
        until(lambda: answers(loading), timeout_s=50, what="the server answers")
        assert loading.edit().status_code == 503
        assert counts(loading)["not_ready"] == 1
        httpx.post(loading.probes + "/drain")
        until(lambda: loading.get("/warmz").json()["accepting"] is False, what="the drain refuses")
        assert loading.edit().status_code == 503
        assert counts(loading)["draining"] == 1


def test_a_job_that_is_refused_is_counted_as_an_edit_is(tmp_path: Path) -> None:
    with stub_server("--jobs-dir", str(tmp_path), "--max-body-bytes", "4096", edit_s=0.01) as server:
        large = httpx.post(server.api + "/v1/jobs", content=b"x" * 5000)

        assert large.status_code == 413
        assert counts(server)["invalid"] == 1
