"""Facts about what surrounds every request: ids, counts, and an answer even to a bug."""

from __future__ import annotations

import logging

import httpx
import pytest
from fastapi import FastAPI

from imageedit_server.api.answers import add_error_answers
from imageedit_server.api.envelope import Envelope
from imageedit_server.api.service import Service
from imageedit_server.settings import settings_from

SECRET = "text of the exception"


def service() -> Service:
    return Service(settings_from(["--model-dir", "demo", "--sizes", "64x64"], {}))


def wrapped(serving: Service) -> Envelope:
    app = FastAPI()
    add_error_answers(app)

    @app.get("/v1/edit")
    async def crash() -> None:
        raise RuntimeError(SECRET)

    return Envelope(app, serving)


async def get(serving: Service, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(wrapped(serving)), base_url="http://server") as client:
        return await client.get(path)


def count(serving: Service, series: str) -> bool:
    return any(line.startswith(series) and line.endswith(" 1.0") for line in metrics(serving))


def metrics(serving: Service) -> list[str]:
    return serving.telemetry.exposition().decode().splitlines()


async def test_a_bug_is_answered_with_an_error_object_that_names_the_request() -> None:
    answer = await get(service(), "/v1/edit")
    error = answer.json()["error"]

    assert (answer.status_code, error["type"], error["code"]) == (500, "server_error", "internal_error")
    assert answer.headers["x-request-id"] in error["message"]
    assert SECRET not in answer.text


async def test_a_bug_is_logged_once_with_its_stack_and_the_request(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = await get(service(), "/v1/edit")
    (record,) = caplog.records

    assert record.getMessage() == "request_crashed"
    assert record.__dict__["fields"]["request_id"] == answer.headers["x-request-id"]
    assert record.exc_info is not None


async def test_a_bug_is_counted_as_500() -> None:
    serving = service()
    await get(serving, "/v1/edit")

    assert count(serving, 'imageedit_requests_total{code="500"')


async def test_a_wrong_method_is_told_all_that_the_path_answers() -> None:
    app = FastAPI()
    add_error_answers(app)

    @app.post("/v1/edit")
    async def post() -> None: ...

    @app.delete("/v1/edit")
    async def delete() -> None: ...

    transport = httpx.ASGITransport(Envelope(app, service()))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        answer = await client.get("/v1/edit")

    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, POST"


async def test_a_path_of_a_clients_own_making_is_no_label() -> None:
    serving = service()
    await get(serving, "/v1/nothing-like-this")

    assert not any("nothing-like-this" in line for line in metrics(serving))
    assert any('route="unknown"' in line and line.endswith(" 1.0") for line in metrics(serving))


async def test_a_drain_before_the_first_warm_up_refuses_at_once() -> None:
    serving = service()
    serving.drain.begin(why="test")

    assert (serving.drain.begun, serving.drain.accepting) == (True, False)
    assert (await get(serving, "/v1/nothing")).headers["connection"] == "close"
