"""HTTP as no client library writes it, against the real server: an answer that says what is wrong, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from server.raw_http import RawAnswer, head, raw_client
from server.running import RunningServer, png_base64, stub_server

BODY = json.dumps({"image": png_base64(), "prompt": "make the background blue"}).encode()
LENGTH = f"Content-Length: {len(BODY)}"
CHUNKED = "Transfer-Encoding: chunked"
OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQ")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--model-name", "qwen", edit_s=0.01) as running:
        yield running


def answer_to(server: RunningServer, sent: bytes, *, of_head: bool = False) -> RawAnswer:
    with raw_client(server.port) as client:
        client.send(sent)
        return client.answer(of_head=of_head)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


REFUSED = {
    "no_http": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed_request"),
    "another_http": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "malformed_request"),
    "unknown_method": (head("FOO"), 400, "malformed_request"),
    "method_in_small_letters": (head("get"), 400, "malformed_request"),
    "nul_in_a_header": (head("GET", "/v1/models", "X-Odd: a\x00b"), 400, "malformed_request"),
    "folded_header": (head("GET", "/v1/models", "X-Odd: a\r\n b"), 400, "malformed_request"),
    "space_before_colon": (head("GET", "/v1/models", "X-Odd : a"), 400, "malformed_request"),
    "space_in_the_path": (head("GET", "/v1/models/qwen edit"), 400, "malformed_request"),
    "path_that_is_not_ascii": (head("GET", "/\xff\xfe"), 400, "malformed_request"),
    "length_and_chunks": (head("POST", "/v1/edit", LENGTH, CHUNKED) + chunk(BODY), 400, "malformed_request"),
    "two_lengths": (head("POST", "/v1/edit", LENGTH, "Content-Length: 5") + BODY, 400, "malformed_request"),
    "negative_length": (head("POST", "/v1/edit", "Content-Length: -5"), 400, "malformed_request"),
    "length_beyond_64_bits": (head("POST", "/v1/edit", "Content-Length: " + "9" * 30), 400, "malformed_request"),
    "chunk_without_size": (head("POST", "/v1/edit", CHUNKED) + b"zz\r\n", 400, "malformed_request"),
    "chunk_beyond_64_bits": (head("POST", "/v1/edit", CHUNKED) + b"f" * 20 + b"\r\n", 400, "malformed_request"),
    "chunk_longer_than_stated": (head("POST", "/v1/edit", CHUNKED) + b"2\r\n{}}\r\n", 400, "malformed_request"),
    "two_megabytes_of_head": (head("GET", "/v1/models", "X-Large: " + "a" * 2_000_000), 431, "headers_too_large"),
    "very_many_headers": (head("GET", "/v1/models", *["X-A: b"] * 5000), 431, "headers_too_large"),
    "escaped_rubbish": (head("GET", "/v1/%00%ff%2e%2e%0d%0a"), 404, "not_found"),
    "two_slashes": (head("GET", "//v1/models"), 404, "not_found"),
    "no_path": (head("OPTIONS", "*"), 404, "not_found"),
    "odd_host": (b"GET /nothing HTTP/1.1\r\nHost: [\r\n\r\n", 404, "not_found"),
    "odd_host_and_no_form": (b"POST /v1/images/edits HTTP/1.1\r\nHost: [\r\n\r\n", 400, "invalid_form"),
    "options": (head("OPTIONS", "/v1/edit"), 405, "method_not_allowed"),
    "trace": (head("TRACE", "/v1/models"), 405, "method_not_allowed"),
    "connect": (head("CONNECT", "/v1/models"), 405, "method_not_allowed"),
    "too_long_a_body": (head("POST", "/v1/edit", "Content-Length: 99999999999"), 413, "body_too_large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_for_this_server_gets_an_error_object_and_an_id(server: RunningServer, name: str) -> None:
    sent, status, code = REFUSED[name]
    answer = answer_to(server, sent)

    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.error["type"] == "invalid_request_error"
    assert answer.headers["x-request-id"]
    assert server.edit().status_code == 200


def test_what_never_became_a_request_is_counted(server: RunningServer) -> None:
    def count() -> float:
        text = server.get("/metrics").text
        series = [line for line in text.splitlines() if 'route="unknown"' in line and 'code="431"' in line]
        return sum(float(line.rpartition(" ")[2]) for line in series)

    before = count()
    answer_to(server, head("GET", "/v1/models", "X-Large: " + "a" * 40_000))

    assert count() == before + 1


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/qwen", "/openapi.json"])
def test_head_answers_as_get_without_the_body(server: RunningServer, path: str) -> None:
    by_get = answer_to(server, head("GET", path))
    with raw_client(server.port) as client:
        client.send(head("HEAD", path) + head("GET", path))
        by_head, after = client.answer(of_head=True), client.answer()

    assert by_head.status == 200
    assert by_head.headers["content-length"] == str(len(by_get.body))
    assert (after.status, after.body) == (200, by_get.body)


def test_head_of_what_can_only_be_posted_names_the_methods(server: RunningServer) -> None:
    answer = answer_to(server, head("HEAD", "/v1/edit"), of_head=True)

    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_the_methods_of_a_path_that_can_be_read_include_head(server: RunningServer) -> None:
    assert answer_to(server, head("PUT", "/v1/models")).headers["allow"] == "GET, HEAD"


def test_the_probes_answer_head(server: RunningServer) -> None:
    with raw_client(server.probe_port) as client:
        client.send(head("HEAD", "/healthz"))

        assert client.answer(of_head=True).status == 200


def test_a_client_that_waits_for_100_continue_is_told_to_go_on(server: RunningServer) -> None:
    with raw_client(server.port) as client:
        client.send(head("POST", "/v1/edit", "Expect: 100-continue", LENGTH))
        assert client.answer().status == 100
        client.send(BODY)

        assert client.answer().status == 200


def test_a_client_that_waits_for_100_continue_with_too_much_is_refused_at_once(server: RunningServer) -> None:
    sent = head("POST", "/v1/edit", "Expect: 100-continue", "Content-Length: 99999999999")

    assert answer_to(server, sent).status == 413


@pytest.mark.parametrize("piece_bytes", [1, 100, 1_000_000])
def test_an_upload_that_offers_http_2_is_read_as_http_1(server: RunningServer, piece_bytes: int) -> None:
    sent = head("POST", "/v1/edit", *OFFER, LENGTH) + BODY + head("GET", "/v1/models")
    with raw_client(server.port) as client:
        for start in range(0, len(sent), piece_bytes):
            client.send(sent[start : start + piece_bytes])

        assert [client.answer().status, client.answer().status] == [200, 200]


def test_pipelined_edits_are_answered_in_order(server: RunningServer) -> None:
    with raw_client(server.port) as client:
        client.send((head("POST", "/v1/edit", LENGTH) + BODY) * 2 + head("GET", "/v1/models"))
        answers = [client.answer() for _ in range(3)]

    assert [answer.status for answer in answers] == [200] * 3
    assert b'"output"' in answers[1].body
    assert b'"list"' in answers[2].body


def test_a_body_in_odd_chunks_is_read(server: RunningServer) -> None:
    pieces = [BODY[start : start + 7] for start in range(0, len(BODY), 7)]
    sent = head("POST", "/v1/edit", CHUNKED) + b"".join(b"%04x;a=b\r\n%b\r\n" % (len(one), one) for one in pieces)

    assert answer_to(server, sent + b"0\r\nX-Trailer: a\r\n\r\n").status == 200


def test_a_body_longer_than_it_says_costs_the_connection_and_no_more(server: RunningServer) -> None:
    with raw_client(server.port) as client:
        client.send(head("POST", "/v1/edit", LENGTH) + BODY + b"and more\r\n\r\n")

        assert client.answer().status == 200
        assert client.closed()


def test_a_broken_body_that_waited_for_100_continue_is_no_crash(server: RunningServer) -> None:
    sent = head("POST", "/v1/edit", "Expect: 100-continue", CHUNKED) + b"zz\r\n"

    assert answer_to(server, sent).status == 400
    assert server.edit().status_code == 200
    assert "request_crashed" not in server.log()
