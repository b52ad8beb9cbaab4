"""What a client may send wrong, over the socket; after each of it the service still works."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from server.running import RunningServer, encoded, picture, png_base64, stub_server

LIMIT_BYTES = 200_000
SHARED_PROMPT = "make the background blue"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--max-body-bytes", str(LIMIT_BYTES), "--model-name", "qwen", edit_s=0.01) as running:
        yield running


def bomb() -> bytes:
    """A PNG of a thousand bytes that states 900 million pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000)))


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def by_json(**fields: Any) -> Callable[[RunningServer], httpx.Response]:
    return lambda server: server.edit(**fields)


def by_form(picture_data: bytes | None = None, **fields: str) -> Callable[[RunningServer], httpx.Response]:
    def send(server: RunningServer) -> httpx.Response:
        files = {"image": ("a.png", encoded(picture()) if picture_data is None else picture_data)}
        return httpx.post(server.api + "/v1/images/edits", data={"prompt": SHARED_PROMPT} | fields, files=files)

    return send


def raw(
    method: str, path: str, content: bytes | Iterator[bytes] = b"", kind: str = "application/json"
) -> Callable[[RunningServer], httpx.Response]:
    return lambda server: httpx.request(method, server.api + path, content=content, headers={"content-type": kind})


def in_pieces(total_bytes: int, start: bytes = b"") -> Iterator[bytes]:
    """A body without Content-Length."""
    yield start
    for _ in range(total_bytes // 10_000):
        yield b"x" * 10_000


TOO_LARGE = "x" * (2 * LIMIT_BYTES)
FORM = "multipart/form-data; boundary=b0und"
FORM_START = b'--b0und\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
CUT_OFF = encoded(picture())[:150]

REFUSALS = {
    "not_an_image": (by_json(image=text_of(b"hello")), 400, "invalid_image", "image"),
    "not_an_image_in_a_form": (by_form(b"hello"), 400, "invalid_image", "image"),
    "empty_image_in_a_form": (by_form(b""), 400, "invalid_image", "image"),
    "image_bomb": (by_json(image=text_of(bomb())), 400, "image_too_large", "image"),
    "image_bomb_in_a_form": (by_form(bomb()), 400, "image_too_large", "image"),
    "truncated_image": (by_json(image=text_of(CUT_OFF)), 400, "invalid_image", "image"),
    "not_base64": (by_json(image="%%%"), 400, "invalid_base64", "image"),
    "empty_prompt": (by_json(prompt=""), 400, "empty_prompt", "prompt"),
    "blank_prompt_in_a_form": (by_form(prompt="  "), 400, "empty_prompt", "prompt"),
    "long_prompt": (by_json(prompt="x" * 4001), 400, "prompt_too_long", "prompt"),
    "no_json": (raw("POST", "/v1/edit", b'{"image": '), 400, "invalid_json", None),
    "json_that_is_no_object": (raw("POST", "/v1/edit", b"[1]"), 400, "invalid_json", None),
    "no_body": (raw("POST", "/v1/edit"), 400, "invalid_json", None),
    "missing_field": (raw("POST", "/v1/edit", b'{"prompt": "a"}'), 400, "missing_parameter", "image"),
    "control_token": (by_json(prompt="a <|image_pad|> b"), 400, "control_token", "prompt"),
    "unknown_field": (by_json(strength=0.5), 400, "unknown_parameter", "strength"),
    "unknown_field_in_a_form": (by_form(strength="1"), 400, "unknown_parameter", "strength"),
    "wrong_size": (by_form(size="large"), 400, "invalid_parameter", "size"),
    "image_by_address": (by_json(image="https://example.org/a.png"), 400, "image_address", "image"),
    "image_by_address_in_a_form": (by_form(b"https://example.org/a.png"), 400, "image_address", "image"),
    "stream_by_json": (by_json(stream=True), 400, "unknown_parameter", "stream"),
    "addresses_without_a_folder": (by_form(response_format="url"), 400, "unsupported_value", "response_format"),
    "no_form": (raw("POST", "/v1/images/edits", b"{}"), 400, "invalid_form", None),
    "form_cut_off": (raw("POST", "/v1/images/edits", FORM_START, FORM), 400, "invalid_form", None),
    "wrong_model": (by_form(model="dall-e-2"), 404, "model_not_found", "model"),
    "wrong_path": (raw("POST", "/v1/images/variations"), 404, "not_found", None),
    "wrong_slash": (raw("POST", "/v1/edit/"), 404, "not_found", None),
    "wrong_method": (raw("GET", "/v1/edit"), 405, "method_not_allowed", None),
    "large_body": (by_json(image=TOO_LARGE), 413, "body_too_large", None),
    "large_body_in_a_form": (by_form(TOO_LARGE.encode()), 413, "body_too_large", None),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_wrong_is_refused_with_an_error_object_and_the_service_goes_on(
    server: RunningServer, name: str
) -> None:
    send, status, code, param = REFUSALS[name]
    answer = send(server)
    error = answer.json()["error"]

    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert answer.headers["x-request-id"]
    assert server.edit().status_code == 200


@pytest.mark.parametrize(
    ("path", "start", "kind"),
    [("/v1/edit", b'{"image": "', "application/json"), ("/v1/images/edits", FORM_START, FORM)],
)
def test_a_large_body_without_its_length_is_refused_while_it_comes(
    server: RunningServer, path: str, start: bytes, kind: str
) -> None:
    answer = raw("POST", path, in_pieces(3 * LIMIT_BYTES, start), kind)(server)

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert server.edit().status_code == 200


def test_the_connection_is_of_use_after_a_body_that_was_refused_unread(server: RunningServer) -> None:
    with httpx.Client(base_url=server.api) as client:
        assert client.post("/v1/edit", content=in_pieces(3 * LIMIT_BYTES)).status_code == 413
        body = {"image": png_base64(), "prompt": SHARED_PROMPT}

        assert client.post("/v1/edit", json=body).status_code == 200


@pytest.mark.parametrize("given", ["abc-123", "4f1c.2:7_X"])
def test_a_sane_request_id_is_kept(server: RunningServer, given: str) -> None:
    answer = httpx.get(server.api + "/v1/models", headers={"x-request-id": given})

    assert answer.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, '"quoted"'])
def test_another_request_id_is_replaced(server: RunningServer, given: str) -> None:
    answer = httpx.get(server.api + "/v1/models", headers={"x-request-id": given})

    assert answer.headers["x-request-id"] not in ("", given)


def test_refused_requests_are_counted_by_reason_and_code(server: RunningServer) -> None:
    def counts() -> tuple[float, float]:
        refused = server.metric("imageedit_refused_requests_total", reason="invalid")
        return refused, server.metric("imageedit_requests_total", route="/v1/edit", code="400")

    before = counts()
    server.edit(prompt="")

    assert counts() == (before[0] + 1, before[1] + 1)
