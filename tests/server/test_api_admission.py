"""Time and retries over the socket: what cannot be in time is refused, and what is here already is not made twice."""

from __future__ import annotations

import time

import httpx
import openai
import pytest

from server.running import NO_TLS, RunningServer, encoded, in_background, picture, png_base64, stub_server, until


def edit(server: RunningServer, headers: dict[str, str] | None = None, **fields: object) -> httpx.Response:
    body = {"image": png_base64(), "prompt": "make the background blue"} | fields
    return httpx.post(server.api + "/v1/edit", json=body, headers=headers, timeout=50, verify=NO_TLS)


def has_load(server: RunningServer, running: int, waiting: int) -> None:
    until(
        lambda: (server.health()["running"], server.health()["waiting"]) == (running, waiting),
        what=f"{running} running, {waiting} waiting",
    )


def edits_done(server: RunningServer) -> float:
    return server.metric("imageedit_edit_seconds_count", size="128x128")


def test_a_wait_that_is_too_long_is_refused_with_the_time_until_it_is_not() -> None:
    with stub_server("--max-wait", "3", edit_s=2.0) as server, in_background(*[server.edit] * 2) as accepted:
        has_load(server, 1, 1)
        refused = server.edit()

        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "wait_too_long"
        assert refused.headers["retry-after"] in ("1", "2")
        assert "x-should-retry" not in refused.headers
        assert server.metric("imageedit_refused_requests_total", reason="wait_too_long") == 1
        assert [answer.status_code for answer in accepted.results()] == [200, 200]


@pytest.mark.parametrize("header", ["x-stainless-read-timeout", "x-request-deadline"])
def test_an_edit_that_cannot_end_in_its_clients_time_is_refused_at_once(header: str) -> None:
    with stub_server(edit_s=2.0) as server, in_background(server.edit) as first:
        has_load(server, 1, 0)
        started_s = time.monotonic()
        refused = edit(server, {header: "2"})

        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "wait_too_long")
        assert time.monotonic() - started_s < 1
        assert edit(server, {header: "20"}).status_code == 200
        assert first.results()[0].status_code == 200


def test_a_deadline_that_is_none_is_refused_by_its_name() -> None:
    with stub_server(edit_s=0.01) as server:
        refused = edit(server, {"x-request-deadline": "soon"})

    assert refused.status_code == 400
    assert (refused.json()["error"]["code"], refused.json()["error"]["param"]) == (
        "invalid_parameter",
        "x-request-deadline",
    )


def test_the_retry_of_the_openai_client_gets_the_edit_that_its_first_try_began() -> None:
    with (
        stub_server(edit_s=2.5) as server,
        openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=2, timeout=1.5) as api,
    ):
        answer = api.images.edit(image=encoded(picture()), prompt="make the background blue")

        assert answer.data
        assert edits_done(server) == 1
        assert server.metric("imageedit_attached_requests_total", by="content") == 1
        assert server.metric("imageedit_dropped_edits_total", reason="cancelled") == 0


def test_one_key_is_one_edit_whether_it_runs_or_is_done() -> None:
    with stub_server(edit_s=1.5) as server:
        key = {"idempotency-key": "order-1"}
        with in_background(lambda: edit(server, key)) as first:
            has_load(server, 1, 0)
            second = edit(server, key)
            third = edit(server, key)
            answers = [first.results()[0], second, third]

        assert [answer.status_code for answer in answers] == [200] * 3
        assert len({(answer.json()["seed"], answer.json()["output"]) for answer in answers}) == 1
        assert edits_done(server) == 1
        assert server.metric("imageedit_attached_requests_total", by="idempotency_key") == 2

        conflict = edit(server, key, prompt="make it red")
        assert (conflict.status_code, conflict.json()["error"]["code"]) == (409, "idempotency_key_reused")
        assert conflict.headers["x-should-retry"] == "false"


def test_request_ids_of_body_and_header_are_recognised_too() -> None:
    with stub_server(edit_s=0.05) as server:
        in_body = [edit(server, request_id="r-1", seed=1) for _ in range(2)]
        in_header = [edit(server, {"x-request-id": "r-2"}, seed=2) for _ in range(2)]
        other = edit(server, {"x-request-id": "r-2"}, seed=3)

        assert [answer.status_code for answer in (*in_body, *in_header, other)] == [200] * 5
        assert edits_done(server) == 3
        assert server.metric("imageedit_attached_requests_total", by="request_id") == 1


def test_a_retry_gets_its_edit_even_when_the_queue_is_full() -> None:
    with stub_server("--queue-hard-limit", "0", edit_s=2.0) as server:
        key = {"idempotency-key": "order-1"}
        with in_background(lambda: edit(server, key)) as first:
            has_load(server, 1, 0)

            assert edit(server).status_code == 429
            assert edit(server, key).status_code == 200
            assert first.results()[0].status_code == 200


def test_with_dynamic_steps_an_idle_card_takes_more_of_them_and_says_so() -> None:
    with stub_server("--dynamic-steps", "on", "--steps", "8", "--steps-high", "12", edit_s=0.4) as server:
        idle, chosen = edit(server), edit(server, steps=9)
        with in_background(*[server.edit] * 4) as busy:
            steps = sorted(answer.json()["steps"] for answer in busy.results())

    assert (idle.json()["steps"], chosen.json()["steps"]) == (12, 9)
    assert steps[0] == 8


@pytest.mark.parametrize("field", ["prompt", "negative_prompt"])
def test_a_prompt_of_too_many_tokens_is_refused_before_it_waits(field: str) -> None:
    with stub_server("--warm-cfg", "on", edit_s=3.0) as server, in_background(server.edit) as first:
        has_load(server, 1, 0)
        refused = server.edit(**{"negative_prompt": "dull", "true_cfg_scale": 4.0, field: "背" * 400})

        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "prompt_too_long")
        assert refused.json()["error"]["param"] == field
        assert "1200 tokens" in refused.json()["error"]["message"]
        assert (server.health()["running"], first.done()) == (1, False)
