"""API keys, CORS and the undone drain over the socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from server.running import RunningServer, encoded, picture, stub_server, until

ORIGIN = "https://pages.example"
TOKEN = "0b0d9c1e-pod-uid"
PATHS = ["/v1/models", "/v1/models/image-edit", "/openapi.json", "/nowhere"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text("key-one\nkey-two\n")
    return path


@pytest.fixture(scope="module")
def server(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    files = str(tmp_path_factory.mktemp("files"))
    arguments = ("--api-keys-file", str(keys), "--cors-origins", ORIGIN, "--files-dir", files)
    with stub_server(*arguments, edit_s=0.01, environ={"IMAGEEDIT_POD_UID": TOKEN}) as running:
        yield running


def client(server: RunningServer, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api + "/v1", api_key=key, max_retries=0)


@pytest.mark.parametrize("key", ["key-one", "key-two"])
def test_each_key_opens_the_api(server: RunningServer, key: str) -> None:
    with client(server, key) as api:
        assert api.images.edit(image=encoded(picture()), prompt="make it blue").data


def test_another_key_is_an_authentication_error(server: RunningServer) -> None:
    with client(server, "key-three") as api, pytest.raises(openai.AuthenticationError) as raised:
        api.images.edit(image=encoded(picture()), prompt="make it blue")

    assert (raised.value.code, raised.value.type) == ("invalid_api_key", "authentication_error")
    assert raised.value.request_id
    assert raised.value.response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", PATHS)
def test_no_path_says_anything_without_a_key(server: RunningServer, path: str) -> None:
    assert httpx.get(server.api + path).status_code == 401


def test_a_large_body_without_a_key_is_not_read(server: RunningServer) -> None:
    answer = httpx.post(server.api + "/v1/edit", content=b"x" * 5_000_000)

    assert answer.status_code == 401


def test_refused_keys_are_counted(server: RunningServer) -> None:
    before = server.metric("imageedit_requests_total", route="/v1/models", code="401")
    httpx.get(server.api + "/v1/models")

    assert server.metric("imageedit_requests_total", route="/v1/models", code="401") == before + 1


def test_the_address_of_a_result_needs_no_key(server: RunningServer) -> None:
    with client(server, "key-one") as api:
        answer = api.images.edit(image=encoded(picture()), prompt="make it blue", response_format="url")
    assert answer.data is not None

    assert httpx.get(answer.data[0].url or "").status_code == 200


def test_probes_need_no_key(server: RunningServer) -> None:
    assert server.get("/healthz").status_code == 200


def test_a_new_key_works_without_a_restart_and_the_old_one_no_more(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("before\n")
    with stub_server("--api-keys-file", str(path), edit_s=0.01) as server:
        path.write_text("after the change\n")

        def status(key: str) -> int:
            return httpx.get(server.api + "/v1/models", headers={"authorization": f"Bearer {key}"}).status_code

        assert (status("after the change"), status("before")) == (200, 401)


def preflight(server: RunningServer, origin: str) -> httpx.Response:
    headers = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-request-id",
    }
    return httpx.options(server.api + "/v1/images/edits", headers=headers)


def test_a_page_of_an_allowed_origin_may_ask_and_read(server: RunningServer) -> None:
    asked = preflight(server, ORIGIN)
    read = httpx.get(server.api + "/v1/models", headers={"origin": ORIGIN, "authorization": "Bearer key-one"})

    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert read.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in read.headers["access-control-expose-headers"]


def test_a_page_can_read_why_its_key_was_refused(server: RunningServer) -> None:
    answer = httpx.get(server.api + "/v1/models", headers={"origin": ORIGIN})

    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (401, ORIGIN)


def test_another_origin_may_not(server: RunningServer) -> None:
    assert "access-control-allow-origin" not in preflight(server, "https://other.example").headers


def test_without_the_setting_no_page_may_call() -> None:
    with stub_server(edit_s=0.01) as server:
        asked = preflight(server, ORIGIN)
        read = httpx.get(server.api + "/v1/models", headers={"origin": ORIGIN})

    assert asked.status_code == 405
    assert "access-control-allow-origin" not in asked.headers
    assert "access-control-allow-origin" not in read.headers


def drain(server: RunningServer, method: str, token: str = TOKEN) -> httpx.Response:
    return httpx.request(method, server.probes + "/drain", headers={"authorization": f"Bearer {token}"})


def test_a_drain_can_be_undone() -> None:
    with stub_server(edit_s=0.01, environ={"IMAGEEDIT_POD_UID": TOKEN}) as server:
        assert drain(server, "POST").status_code == 202
        until(lambda: server.edit().status_code == 503, what="the drain refuses")
        undone = drain(server, "DELETE")

        assert (undone.status_code, undone.json()) == (200, {"draining": False, "accepting": True})
        assert server.edit().status_code == 200
        assert server.get("/readyz").status_code == 200
        assert server.metric("imageedit_draining") == 0
        assert drain(server, "DELETE").status_code == 200
        assert drain(server, "POST").status_code == 202
        until(lambda: server.edit().status_code == 503, what="a second drain refuses too")


def test_undoing_a_drain_needs_the_token(server: RunningServer) -> None:
    answer = drain(server, "DELETE", "wrong")

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("drained_before", [False, True])
def test_the_drain_of_a_signal_is_final(drained_before: bool) -> None:
    with stub_server("--drain-propagation", "3", edit_s=0.01) as server:
        if drained_before:
            drain(server, "POST")
        server.terminate()
        until(lambda: server.health()["draining"], what="the drain has begun")
        answer = drain(server, "DELETE")

        # The signal may come a moment after a drain that has begun already.
        if drained_before and answer.status_code == 200:
            until(lambda: drain(server, "DELETE").status_code == 409, what="the signal has come")
        else:
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "drain_is_final")
        assert server.exit_code() == 0
