"""What one connection may do to a listener: the real protocol over a socket, with times that a test can wait for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest
import uvicorn

from imageedit_server.api.connections import Connection
from imageedit_server.api.doors import Bounds, Door
from server.raw_http import RawClient, head, raw_client
from server.running import until

LONG_S = 600.0
PIECE_S = 0.005


class Running:
    """A listener in a thread; its application answers `/held` only when told to, and else at once."""

    def __init__(self, bounds: Bounds, keep_alive_s: int) -> None:
        self.refused: list[int] = []
        self.held = 0
        self.release = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        door = Door(bounds, on_refused=lambda error: self.refused.append(error.status))
        config = uvicorn.Config(
            self._app,
            http=cast("type[asyncio.Protocol]", partial(Connection, door)),
            interface="asgi3",
            lifespan="off",
            log_config=None,
            ws="none",
            timeout_keep_alive=keep_alive_s,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve([self._socket])))
        self._thread.start()

    def connections(self) -> int:
        return len(self._server.server_state.connections)

    def stop(self) -> None:
        self.release.set()
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b"ok"
        if scope["path"] == "/large":
            body = bytes(30_000_000)
        if scope["path"] == "/read":
            while (await receive())["more_body"]:
                pass
        if scope["path"] == "/held":
            self.held += 1
            await asyncio.to_thread(self.release.wait)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def listening(
    *,
    connections: int = 100,
    head_s: float = LONG_S,
    rest_s: float = LONG_S,
    unsent_s: float = LONG_S,
    keep_alive_s: int = 600,
) -> Iterator[Running]:
    bounds = Bounds(connections=connections, head_s=head_s, rest_s=rest_s, unsent_s=unsent_s)
    running = Running(bounds, keep_alive_s)
    try:
        yield running
    finally:
        running.stop()


def is_answered(client: RawClient, path: str = "/") -> bool:
    client.send(head("GET", path))
    return client.answer().status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nX-Large: " + b"a" * 2_000_000,
        b"GET /" + b"a" * 2_000_000,
        head("GET", "/", "X-Large: " + "a" * 40_000),
        head("GET", "/" + "a" * 40_000),
        head("GET", "/", *[f"X-{number}: a" for number in range(200)]),
    ],
    ids=["endless_header", "endless_path", "large_header", "large_path", "many_headers"],
)
def test_a_head_that_is_too_large_is_refused_with_431(sent: bytes) -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(sent)
        answer = client.answer()

        assert (answer.status, answer.error["code"]) == (431, "headers_too_large")
        assert answer.error["type"] == "invalid_request_error"
        assert answer.headers["x-request-id"]
        assert answer.headers["connection"] == "close"
        assert client.closed()
        assert server.refused == [431]


def send_slowly(client: RawClient, sent: bytes) -> None:
    """In segments of a network, each read before the next one comes."""
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for start in range(0, len(sent), 1000):
        client.send(sent[start : start + 1000])
        time.sleep(PIECE_S)


def heads(size: int) -> dict[str, bytes]:
    """Requests with heads of about that many bytes, by what is large in them."""
    several = [f"X-{number}: {'a' * (size // 10)}" for number in range(10)]
    return {
        "header": head("GET", "/", "X-Large: " + "a" * size),
        "path": head("GET", "/" + "a" * size),
        "headers": head("GET", "/", *several),
    }


LARGE = ["header", "path", "headers"]


@pytest.mark.parametrize("send", [RawClient.send, send_slowly], ids=["whole", "in_pieces"])
@pytest.mark.parametrize("large", LARGE)
def test_no_byte_of_a_head_counts_twice_however_it_comes(send: Callable[[RawClient, bytes], None], large: str) -> None:
    with listening() as server, raw_client(server.port) as client:
        send(client, heads(30_000)[large])

        assert client.answer().status == 200


@pytest.mark.parametrize("large", LARGE)
def test_a_head_that_is_too_large_in_pieces_is_refused_too(large: str) -> None:
    with listening() as server, raw_client(server.port) as client:
        send_slowly(client, heads(40_000)[large])

        assert client.answer().status == 431


def test_trailers_have_the_limit_of_a_head() -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("POST", "/read", "Transfer-Encoding: chunked") + b"1\r\na\r\n0\r\n")
        client.send(b"X-Trailer: " + b"a" * 200_000)

        assert client.answer().status == 400


def test_a_chunk_extension_without_an_end_is_refused() -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("POST", "/read", "Transfer-Encoding: chunked") + b"1;" + b"a" * 200_000)

        assert client.answer().status == 400


def test_a_body_in_tiny_chunks_is_refused_before_it_takes_much_time() -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("POST", "/read", "Transfer-Encoding: chunked") + b"1\r\na\r\n" * 2000)
        answer = client.answer()

        assert (answer.status, answer.error["code"]) == (400, "malformed_request")
        assert "chunks" in answer.error["message"]


def test_a_body_in_some_tiny_chunks_is_read() -> None:
    with listening() as server, raw_client(server.port) as client:
        chunks = b"1\r\na\r\n" * 900 + b"2000\r\n" + b"a" * 0x2000 + b"\r\n" + b"1\r\na\r\n" * 200
        client.send(head("POST", "/read", "Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n")

        assert client.answer().status == 200


def test_a_head_that_does_not_end_is_answered_with_408() -> None:
    with listening(head_s=0.3) as server, raw_client(server.port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: ")
        answer = client.answer()

        assert (answer.status, answer.error["code"]) == (408, "headers_too_slow")
        assert client.closed()
        assert server.refused == [408]


@pytest.mark.parametrize("sent", [b"", b"\r\n"], ids=["nothing", "a_line_end"])
def test_a_connection_without_a_request_is_closed(sent: bytes) -> None:
    with listening(head_s=0.3) as server, raw_client(server.port) as client:
        client.send(sent)

        assert client.closed()
        assert server.refused == []


def test_line_ends_after_an_answer_do_not_keep_a_connection_open() -> None:
    with listening(head_s=0.3) as server, raw_client(server.port) as client:
        assert is_answered(client)
        client.send(b"\r\n")

        assert client.closed()


def test_line_ends_before_the_first_request_are_no_fault_of_it() -> None:
    with listening() as server, raw_client(server.port) as client:
        send_slowly(client, b"\r\n")

        assert is_answered(client)


def test_a_connection_is_kept_open_after_an_answer() -> None:
    with listening(head_s=0.3) as server, raw_client(server.port) as client, raw_client(server.port) as idle:
        assert is_answered(client)
        # By now the first one is idle for as long as one without a request may be.
        assert idle.closed()

        assert is_answered(client)


def test_a_request_that_takes_long_is_not_cut_short() -> None:
    with listening(head_s=0.3, rest_s=0.3) as server, raw_client(server.port) as client:
        client.send(head("GET", "/held"))
        with raw_client(server.port) as idle:
            assert idle.closed()
        server.release.set()

        assert client.answer().status == 200


def test_the_rest_of_a_body_that_was_answered_unread_has_a_time_limit() -> None:
    with listening(rest_s=0.3) as server, raw_client(server.port) as client:
        client.send(head("POST", "/", "Content-Length: 1000000") + b"a")
        assert client.answer().status == 200

        assert client.closed()


def test_after_a_body_that_was_answered_unread_the_connection_is_of_use() -> None:
    with listening(head_s=0.3, rest_s=0.3) as server, raw_client(server.port) as client:
        client.send(head("POST", "/", "Content-Length: 5"))
        assert client.answer().status == 200
        client.send(b"abcde")
        with raw_client(server.port) as idle:
            assert idle.closed()

        assert is_answered(client)


def test_an_answer_that_is_not_taken_is_given_up() -> None:
    with listening(unsent_s=0.3) as server, raw_client(server.port) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(head("GET", "/large"))
        until(lambda: server.connections() == 1, what="the connection is here")

        until(lambda: server.connections() == 0, what="the connection is given up")


def test_idle_connections_make_room_for_a_new_one() -> None:
    with listening(connections=3) as server, contextlib.ExitStack() as stack:
        first = stack.enter_context(raw_client(server.port))
        assert is_answered(first)
        for _ in range(10):
            assert is_answered(stack.enter_context(raw_client(server.port)))

        assert first.closed()
        assert server.refused == []


def test_a_flood_of_idle_connections_does_not_cut_a_request_that_is_at_work() -> None:
    with listening(connections=3) as server, contextlib.ExitStack() as stack:
        working = stack.enter_context(raw_client(server.port))
        working.send(head("GET", "/held"))
        until(lambda: server.held == 1, what="the request is at work")
        for _ in range(20):
            stack.enter_context(raw_client(server.port))
        assert is_answered(stack.enter_context(raw_client(server.port)))
        server.release.set()

        assert working.answer().status == 200


def test_when_every_connection_is_at_work_a_new_one_is_told_so() -> None:
    with listening(connections=2) as server, contextlib.ExitStack() as stack:
        working = [stack.enter_context(raw_client(server.port)) for _ in range(2)]
        for client in working:
            client.send(head("GET", "/held"))
        until(lambda: server.held == 2, what="both are at work")
        answer = stack.enter_context(raw_client(server.port)).answer()
        server.release.set()

        assert (answer.status, answer.error["code"]) == (503, "too_many_connections")
        assert answer.headers["retry-after"] == "1"
        assert [client.answer().status for client in working] == [200, 200]


def test_pipelined_requests_are_answered_in_order() -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("GET", "/") * 3)

        assert [client.answer().status for _ in range(3)] == [200, 200, 200]


def test_too_many_pipelined_requests_end_the_connection_after_the_accepted_ones() -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("GET", "/held") + head("GET", "/") * 1000)
        server.release.set()
        answers = [client.answer().status for _ in range(3)]

        assert answers == [200] * 3
        assert client.closed()


@pytest.mark.parametrize(
    "sent", [b"\x00\x01\x02 rubbish\r\n\r\n", head("CONNECT", "x:1"), head("GET", "/", *["X: a"] * 200)]
)
def test_what_is_wrong_after_a_request_does_not_cost_that_request_its_answer(sent: bytes) -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("GET", "/held") + sent)
        until(lambda: server.held == 1, what="the request is at work")
        server.release.set()
        answer = client.answer()

        assert (answer.status, answer.body) == (200, b"ok")
        assert client.rest() == b""


def test_what_is_wrong_in_a_body_that_was_answered_gets_no_second_answer() -> None:
    with listening() as server, raw_client(server.port) as client:
        client.send(head("POST", "/", "Transfer-Encoding: chunked"))
        assert client.answer().status == 200
        client.send(b"zz\r\n")

        assert client.rest() == b""
