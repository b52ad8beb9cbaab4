"""The gate over the socket: one at a time, in order, a bounded queue. Edits are stubs of a known time."""

from __future__ import annotations

import asyncio
import contextlib
import math

import httpx
import openai
import pytest
from PIL import Image

from server.running import RunningServer, encoded, in_background, picture, png_base64, stub_server, until


def load_is(server: RunningServer, *, running: int, waiting: int) -> None:
    def reached() -> bool:
        health = server.health()
        return (health["running"], health["waiting"]) == (running, waiting)

    until(reached, what=f"{running} running and {waiting} waiting")


def test_one_more_than_may_wait_gets_429_with_the_time_of_the_work_in_front() -> None:
    with stub_server("--queue-hard-limit", "2", edit_s=1.5) as server, in_background(*[server.edit] * 3) as accepted:
        load_is(server, running=1, waiting=2)
        refused = server.edit()
        edit_s = server.metric("imageedit_warm_edit_seconds", size="128x128")

        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "queue_full"
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert math.ceil(2 * edit_s) <= int(refused.headers["retry-after"]) <= math.ceil(3 * edit_s)
        assert server.get("/readyz").status_code == 200
        assert server.metric("imageedit_refused_requests_total", reason="queue_full") == 1
        assert [answer.status_code for answer in accepted.results()] == [200, 200, 200]


def test_the_openai_client_sees_a_full_queue_as_a_rate_limit() -> None:
    with (
        stub_server("--queue-hard-limit", "0", edit_s=1.0) as server,
        openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api,
        in_background(server.edit),
    ):
        load_is(server, running=1, waiting=0)
        with pytest.raises(openai.RateLimitError) as raised:
            api.images.edit(image=encoded(picture()), prompt="make the background blue")

        assert raised.value.code == "queue_full"


async def test_a_stampede_gets_as_many_places_as_there_are() -> None:
    with stub_server("--queue-hard-limit", "3", edit_s=2.0) as server:
        body = {"image": png_base64(), "prompt": "make the background blue"}
        async with httpx.AsyncClient(timeout=50) as client:
            answers = await asyncio.gather(*[client.post(server.api + "/v1/edit", json=body) for _ in range(24)])
        statuses = sorted(answer.status_code for answer in answers)

    # All come within the first edit, so one runs, three wait, and nobody is forgotten.
    assert statuses == [200] * 4 + [429] * 20


def test_edits_run_in_the_order_of_arrival() -> None:
    finished: list[int] = []

    def edit(server: RunningServer, number: int) -> httpx.Response:
        answer = server.edit(seed=number)
        finished.append(answer.json()["seed"])
        return answer

    with stub_server(edit_s=1.0) as server, contextlib.ExitStack() as stack:
        for number in range(4):
            stack.enter_context(in_background(lambda number=number: edit(server, number)))  # type: ignore[misc]
            load_is(server, running=1, waiting=number)

    assert finished == [0, 1, 2, 3]


def test_an_edit_that_waits_is_dropped_when_its_client_leaves() -> None:
    with stub_server(edit_s=2.0) as server, in_background(server.edit) as first:
        load_is(server, running=1, waiting=0)
        body = {"image": png_base64(), "prompt": "make the background blue"}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.api + "/v1/edit", json=body, timeout=httpx.Timeout(10, read=0.4))
        load_is(server, running=1, waiting=0)

        assert first.results()[0].status_code == 200
        load_is(server, running=0, waiting=0)
        assert server.metric("imageedit_requests_total", route="/v1/edit", code="499") == 1
        assert server.metric("imageedit_edit_seconds_count", size="128x128") == 1


def test_an_edit_that_runs_ends_at_its_next_step_when_its_client_leaves() -> None:
    with stub_server(edit_s=4.0) as server:
        body = {"image": png_base64(), "prompt": "make the background blue"}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.api + "/v1/edit", json=body, timeout=httpx.Timeout(10, read=0.4))
        load_is(server, running=0, waiting=0)

        assert server.metric("imageedit_edit_seconds_count", size="128x128") == 0
        assert server.metric("imageedit_dropped_edits_total", reason="cancelled") == 1
        assert server.edit().status_code == 200
        assert server.metric("imageedit_worker_restarts_total") == 0


def test_large_pictures_are_not_kept_while_their_edits_wait() -> None:
    # Room for four bodies of the largest size: six wait all the same, because only the small pictures do.
    large = png_base64(Image.effect_noise((360, 360), 90))
    limit_bytes = len(large) + 1000
    with (
        stub_server("--max-body-bytes", str(limit_bytes), edit_s=0.6) as server,
        contextlib.ExitStack() as stack,
    ):
        waiting = []
        for number in range(7):
            waiting.append(stack.enter_context(in_background(lambda: server.edit(image=large))))
            until(lambda number=number: sum(accepted(server)) > number, what="one more is in")  # type: ignore[misc]

        assert [background.results()[0].status_code for background in waiting] == [200] * 7


def accepted(server: RunningServer) -> tuple[float, float, float]:
    health = server.health()
    return health["running"], health["waiting"], server.metric("imageedit_edit_seconds_count", size="128x128")


def test_what_was_done_can_be_read_from_the_metrics() -> None:
    with stub_server(edit_s=0.3) as server, in_background(*[server.edit] * 2) as answers:
        assert [answer.status_code for answer in answers.results()] == [200, 200]

        assert server.metric("imageedit_requests_total", route="/v1/edit", code="200") == 2
        assert server.metric("imageedit_request_seconds_count", route="/v1/edit") == 2
        assert server.metric("imageedit_edit_seconds_count", size="128x128") == 2
        assert server.metric("imageedit_edit_seconds_sum", size="128x128") >= 0.6
        assert server.metric("imageedit_queue_wait_seconds_count") == 2
        assert server.metric("imageedit_queue_wait_seconds_sum") >= 0.2
