"""The web page over the socket: what comes with it, and who may have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server.running import RunningServer, stub_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    path: Path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text("key-one\n")
    with stub_server("--api-keys-file", str(path), edit_s=0.01) as running:
        yield running


def test_the_page_needs_no_key(server: RunningServer) -> None:
    page = httpx.get(server.api + "/")

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<h1>Image edit</h1>" in page.text


@pytest.mark.parametrize("name", ["page.js", "page.css", "icons.svg"])
def test_its_files_need_none_and_are_what_they_say(server: RunningServer, name: str) -> None:
    answer = httpx.get(f"{server.api}/page/{name}")

    assert answer.status_code == 200
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/page/", "/page/nothing.js", "/page/../page.py", "/page/%2e%2e/api/page.py"])
def test_nothing_else_is_open(server: RunningServer, path: str) -> None:
    assert httpx.get(server.api + path).status_code == 401


def test_only_reading_is_answered_by_the_page(server: RunningServer) -> None:
    assert httpx.post(server.api + "/").status_code == 401
    head = httpx.head(server.api + "/")
    assert (head.status_code, head.text) == (200, "")


def test_scripts_from_elsewhere_and_frames_are_forbidden(server: RunningServer) -> None:
    headers = httpx.get(server.api + "/").headers
    policy = headers["content-security-policy"].split("; ")

    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"


def test_what_has_not_changed_is_not_sent_again(server: RunningServer) -> None:
    first = httpx.get(server.api + "/page/page.js")
    second = httpx.get(server.api + "/page/page.js", headers={"if-none-match": first.headers["etag"]})

    assert (second.status_code, second.content) == (304, b"")
    assert second.headers["cache-control"] == "no-cache"


def test_the_page_is_counted_under_a_fixed_name(server: RunningServer) -> None:
    before = server.metric("imageedit_requests_total", route="/page/{name}", code="200")
    httpx.get(server.api + "/page/page.css")

    assert server.metric("imageedit_requests_total", route="/page/{name}", code="200") == before + 1


def test_the_page_can_be_switched_off() -> None:
    with stub_server("--page", "off", edit_s=0.01) as server:
        statuses = [httpx.get(server.api + path).status_code for path in ("/", "/page/page.js", "/v1/models")]

    assert statuses == [404, 404, 200]
