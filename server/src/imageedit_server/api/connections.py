"""One listener's connections: how many, and what a client may send or leave out before its request counts as one.

uvicorn's parser bounds neither the size of a request's head nor the time that it may take. h11, the other parser that
it offers, bounds the size alone, and reads bodies many times slower. So its faster protocol is extended here: uvicorn
takes a class, and its hooks are methods.

| what                                                       | bound by            | answer               |
| ---------------------------------------------------------- | ------------------- | -------------------- |
| bytes and headers of a head                                | `head_bytes`        | 431                  |
| a head that does not come to its end                       | `head_s`            | 408                  |
| a connection without any request                           | `head_s`            | closed               |
| no HTTP, broken chunks, endless trailers                   | at once             | 400                  |
| requests sent before the answer to the first               | `pipelined`         | closed after the last |
| the rest of a body after its answer                        | `rest_s`            | closed               |
| an answer that is not taken                                | `unsent_s`          | closed               |
| open connections: whoever is longest without a request goes | `connections`      | closed, 503 if all are at work |

A body that is read is bounded in `body`. A connection whose request is being answered has no time limit here.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from imageedit_server.api.answers import error_answer
from imageedit_server.errors import ApiError, HeadTooLarge, InvalidInput, TooSlow, Unavailable

MAX_HEADERS = 100
OFFER_HEADERS = (b"connection", b"upgrade", b"http2-settings")
RETRY_AFTER_S = 1
# Closing a socket with unread bytes resets it, and the client may never see why: read on for a moment.
LINGER_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one listener allows; the table above says what each bounds."""

    connections: int
    head_bytes: int = 32 * 1024
    head_s: float = 15.0
    rest_s: float = 120.0
    unsent_s: float = 60.0
    pipelined: int = 8


class Door:
    """What the connections of one listener share.

    Args:
        on_refused: called with each answer to something that never became a request.
    """

    def __init__(self, bounds: Bounds, *, on_refused: Callable[[ApiError], None] = lambda _: None) -> None:
        self.bounds = bounds
        self.on_refused = on_refused
        self.idle: dict[Connection, None] = {}
        """Those without a request, the one that is so for longest first."""

    def connection(self, **given: Any) -> Connection:
        """What uvicorn calls for each new connection."""
        return Connection(self, **given)


class Connection(HttpToolsProtocol):
    """One client's connection, within bounds."""

    def __init__(self, door: Door, **given: Any) -> None:
        super().__init__(**given)
        self._door = door
        self._bounds = door.bounds
        self._in_head = False
        self._in_body = False
        self._head_bytes = 0
        # Since the parser last said something: trailers and chunk extensions can be endless.
        self._silent_bytes = 0
        self._refusal: ApiError | None = None
        self._deaf = False
        self._patience: asyncio.TimerHandle | None = None
        self._unsent: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """A request is here whose answer is not."""
        return self.cycle is not None and not self.cycle.response_complete

    # What asyncio calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self._bounds.head_s, self._head_is_late)
        if len(self.connections) > self._bounds.connections and not self._made_room():
            message = f"Too many connections are at work here; try again in {RETRY_AFTER_S} s."
            self._turn_away(Unavailable(message, code="too_many_connections", retry_after_s=RETRY_AFTER_S))
        self._door.idle[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.idle.pop(self, None)
        self._wait_no_more()
        self._stop_looking_at_what_is_unsent()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        began_in_head, self._silent_bytes = self._in_head, self._silent_bytes + len(data)
        self._feed(data)
        if self._deaf or self.transport.is_closing():
            return
        if self._in_head and began_in_head:
            self._head_bytes += len(data)
        if self._head_bytes > self._bounds.head_bytes:
            self._turn_away(self._head_too_large())
        elif self._in_body and self._silent_bytes > self._bounds.head_bytes:
            self._turn_away(_malformed())
        elif not self.busy and not self._in_body and self.timeout_keep_alive_task is None and self._patience is None:
            # The next head has begun, or line ends that are no request yet.
            self._wait(self._bounds.head_s, self._head_is_late)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_at_what_is_unsent()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_looking_at_what_is_unsent()

    # What the parser calls.

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._bounds.pipelined:
            raise _Refused
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        # Trailers come this way as well.
        self._head_bytes += len(name) + len(value)
        self._check_head()

    def on_headers_complete(self) -> None:
        self._head_bytes += len(self.url)
        self._check_head()
        if self._offers_another_protocol():
            return
        self._in_head, self._in_body, self._head_bytes, self._silent_bytes = False, True, 0, 0
        self._wait_no_more()
        super().on_headers_complete()
        self._door.idle.pop(self, None)

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._offers_another_protocol():
            return
        self._in_body, self._head_bytes, self._silent_bytes = False, 0, 0
        super().on_message_complete()
        if not self.busy:
            # It was answered before its body was here; from now on the connection waits like any other.
            self._wait_no_more()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    # What uvicorn's own parts call.

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or self.busy or self.pipeline:
            return
        self._door.idle[self] = None
        if self._in_head:
            self._wait(self._bounds.head_s, self._head_is_late)
        elif self._in_body:
            self._wait(self._bounds.rest_s, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        # An answer that is still in the buffer would hold a connection that is only closed, as long as it is not taken.
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()
        super().timeout_keep_alive_handler()

    # Reading.

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self._offers_another_protocol():
                (read,) = offer.args
                self._decline(data[read:])
        except httptools.HttpParserError:
            self._turn_away(self._refusal or _malformed())

    def _offers_another_protocol(self) -> bool:
        """The parser takes an offer as made and reads no body, but a server may go on as if nothing was offered.

        The HTTP clients of Java and of curl (`--http2`) offer HTTP/2 with their first request, be it an upload.
        """
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _decline(self, rest: bytes) -> None:
        """Read the request again, without its offer."""
        first = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = [name + b": " + value for name, value in self.headers if name not in OFFER_HEADERS]
        self.parser = httptools.HttpRequestParser(self)
        self._feed(b"\r\n".join((first, *kept, b"", b"")) + rest)

    # Bounds.

    def _check_head(self) -> None:
        if self._head_bytes > self._bounds.head_bytes or len(self.headers) > MAX_HEADERS:
            self._refusal = self._head_too_large()
            raise _Refused

    def _head_too_large(self) -> ApiError:
        return HeadTooLarge(
            f"The headers are larger than {self._bounds.head_bytes} bytes, or more than {MAX_HEADERS}; send fewer.",
            code="headers_too_large",
        )

    def _head_is_late(self) -> None:
        self._patience = None
        if self._in_head:
            message = f"The request's head did not come to its end within {self._bounds.head_s:g} s; send it again."
            self._turn_away(TooSlow(message, code="headers_too_slow"))
        else:
            self.transport.close()

    def _made_room(self) -> bool:
        longest = next(iter(self._door.idle), None)
        if longest is None:
            return False
        del self._door.idle[longest]
        longest.transport.abort()
        return True

    def _turn_away(self, error: ApiError) -> None:
        """Hear no more of this client, and tell it why where it still can be told."""
        self._deaf = True
        self._wait_no_more()
        self._unset_keepalive_if_required()
        if self.busy and not self._in_body:
            # Whatever came after the last good request does not cost that request its answer.
            self.cycle.keep_alive = False
        elif self.busy and (self.cycle.response_started or self.pipeline):
            self.transport.close()
        else:
            self._answer(error)
            if self.busy:
                self.cycle.disconnected = True
                self.cycle.message_event.set()

    def _answer(self, error: ApiError) -> None:
        answer = error_answer(error)
        self._door.on_refused(error)
        headers = [
            *self.server_state.default_headers,
            *answer.raw_headers,
            (b"x-request-id", uuid.uuid4().hex.encode()),
            (b"connection", b"close"),
        ]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[answer.status_code] + lines + b"\r\n" + bytes(answer.body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._wait(LINGER_S, self.transport.abort)

    # Timers.

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._wait_no_more()
        self._patience = self.loop.call_later(seconds, then)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _look_at_what_is_unsent(self) -> None:
        left_bytes = self.transport.get_write_buffer_size()

        def look_again() -> None:
            if self.transport.get_write_buffer_size() < left_bytes:
                self._look_at_what_is_unsent()
            else:
                self.transport.abort()

        self._stop_looking_at_what_is_unsent()
        self._unsent = self.loop.call_later(self._bounds.unsent_s, look_again)

    def _stop_looking_at_what_is_unsent(self) -> None:
        if self._unsent is not None:
            self._unsent.cancel()
            self._unsent = None


class _Refused(Exception):
    """Raised inside the parser's callbacks, to end its work on what has come."""


def _malformed() -> ApiError:
    return InvalidInput("This is not an HTTP/1.1 request; check what the client sends.", code="malformed_request")
