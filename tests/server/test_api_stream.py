"""`stream=true` over the socket: signs of life, one event for each picture, and errors on both sides of the head."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from server.running import RunningServer, decoded, encoded, in_background, picture, stub_server, until

PROMPT = "make the background blue"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--stream-heartbeat", "0.1", edit_s=0.5) as running:
        yield running


def post(server: RunningServer, **fields: str) -> httpx.Response:
    data = {"prompt": PROMPT, "stream": "true"} | fields
    files = {"image": ("a.png", encoded(picture()))}
    return httpx.post(server.api + "/v1/images/edits", data=data, files=files, timeout=50)


def requests_counted(server: RunningServer, code: int) -> float:
    return server.metric("imageedit_requests_total", route="/v1/images/edits", code=str(code))


def test_the_openai_client_gets_the_picture_as_an_event(server: RunningServer) -> None:
    with (
        openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api,
        api.images.edit(image=encoded(picture(100, 50)), prompt=PROMPT, stream=True, size="original") as stream,
    ):
        (event,) = list(stream)

    assert event.type == "image_edit.completed"
    assert decoded(event.b64_json).size == (100, 50)
    assert (event.size, event.output_format, event.background) == ("100x50", "png", "opaque")
    assert event.usage.total_tokens == event.usage.input_tokens + event.usage.output_tokens
    assert event.created_at > 0


async def test_the_async_client_gets_one_event_for_each_picture(server: RunningServer) -> None:
    async with openai.AsyncOpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api:
        stream = await api.images.edit(
            image=encoded(picture()), prompt=PROMPT, stream=True, n=2, partial_images=0, extra_body={"seed": 8}
        )
        events: list[Any] = [event async for event in stream]

    assert [event.type for event in events] == ["image_edit.completed"] * 2
    assert [event.seed for event in events] == [8, 9]


def test_signs_of_life_come_while_the_edit_waits_and_runs() -> None:
    with stub_server("--stream-heartbeat", "0.1", edit_s=2) as server:  # long, for a machine that has other work
        answer = post(server)
    blocks = answer.text.strip().split("\n\n")

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"]
    assert all(block.startswith(": {") for block in blocks[:-1])
    assert 3 <= len(blocks) - 1 <= 40
    assert blocks[-1].startswith("event: image_edit.completed\ndata: {")


def test_the_comments_say_place_and_step() -> None:
    with stub_server("--stream-heartbeat", "60", edit_s=2) as server, in_background(server.edit) as first:
        until(lambda: server.health()["running"] == 1, what="one runs")
        blocks = post(server).text.strip().split("\n\n")
        first.results()
    seen = [json.loads(block.removeprefix(": ")) for block in blocks[:-1]]
    steps = [one["step"] for one in seen if one["queue_position"] is None]

    assert seen[0]["queue_position"] == 1
    assert 0 < seen[0]["estimated_start_s"] <= 2
    assert steps == sorted(set(steps))
    assert steps[-1] > 8
    assert {one["steps"] for one in seen} == {16}


def test_a_stream_that_came_to_its_end_is_counted_as_200(server: RunningServer) -> None:
    before = requests_counted(server, 200)
    post(server)

    until(lambda: requests_counted(server, 200) == before + 1, what="it is counted")


def test_what_is_wrong_before_the_queue_is_an_ordinary_error(server: RunningServer) -> None:
    answer = post(server, size="large")

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "size")


def test_a_full_queue_is_an_ordinary_429() -> None:
    with stub_server("--queue-hard-limit", "0", edit_s=2) as server, in_background(server.edit) as first:
        until(lambda: server.health()["running"] == 1, what="one runs")
        answer = post(server)
        first.results()

    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "queue_full")
    assert int(answer.headers["retry-after"]) >= 1


def test_more_pictures_than_the_queue_takes_are_refused_all_together() -> None:
    with stub_server("--queue-hard-limit", "1", edit_s=0.3) as server:
        answer = post(server, n="4")

        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "queue_full")
        until(lambda: server.health()["waiting"] == server.health()["running"] == 0, what="nothing is left")
        assert server.edit().status_code == 200


def test_a_worker_that_is_lost_after_the_head_is_an_event() -> None:
    data, files = {"prompt": PROMPT, "stream": "true"}, {"image": ("a.png", encoded(picture()))}
    with (
        stub_server(edit_s=5) as server,
        httpx.stream("POST", server.api + "/v1/images/edits", data=data, files=files, timeout=50) as answer,
    ):
        os.kill(server.worker_pid(), signal.SIGKILL)
        text = answer.read().decode()
        error = json.loads(text.rpartition("data: ")[2])["error"]

        assert answer.status_code == 200
        assert "event: error\n" in text
        assert (error["code"], error["type"]) == ("worker_lost", "server_error")
        # Counted by what the client was told, not by the status that was out before.
        until(lambda: requests_counted(server, 503) == 1, what="it is counted as 503")
        assert requests_counted(server, 200) == 0


def test_the_openai_client_raises_the_error_of_an_event() -> None:
    with (
        stub_server(edit_s=5) as server,
        openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api,
        api.images.edit(image=encoded(picture()), prompt=PROMPT, stream=True) as stream,
    ):
        os.kill(server.worker_pid(), signal.SIGKILL)
        with pytest.raises(openai.APIError) as raised:
            list(stream)

    assert raised.value.code == "worker_lost"


def test_a_client_that_leaves_a_stream_gives_up_its_place() -> None:
    data, files = {"prompt": PROMPT, "stream": "true"}, {"image": ("a.png", encoded(picture()))}
    with stub_server(edit_s=3) as server, in_background(server.edit) as first:
        until(lambda: server.health()["running"] == 1, what="one runs")
        with httpx.stream("POST", server.api + "/v1/images/edits", data=data, files=files, timeout=50) as stream:
            chunks = stream.iter_raw()  # held: the connection is closed with the last reference to it
            assert next(chunks).startswith(b": {")
            assert server.health()["waiting"] == 1
        until(lambda: server.health()["waiting"] == 0, what="its place is free")

        until(lambda: requests_counted(server, 499) == 1, what="it is counted as a client that left")
        assert server.health()["running"] == 1
        assert first.results()[0].status_code == 200
