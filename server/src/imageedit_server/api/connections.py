"""One connection: what a client may send or leave out before it has a request, and after.

uvicorn's parser bounds neither the size of a request's head nor the time that it may take. h11, the other parser that
it offers, bounds the size alone, and reads bodies many times slower. So its faster protocol is extended here: uvicorn
takes a class, and its hooks are methods. `doors.Bounds` says what is bounded.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from imageedit_server.api.doors import Door
from imageedit_server.api.patience import Patience, Unsent
from imageedit_server.api.reading import Reading
from imageedit_server.api.wire import last_answer, request_without_offer
from imageedit_server.errors import ApiError, HeadTooLarge, InvalidInput, TooSlow, Unavailable

RETRY_AFTER_S = 1
# Closing a socket with unread bytes resets it, and the client may never see why: read on for a moment.
LINGER_S = 2.0


class Connection(HttpToolsProtocol):
    """One client's connection, within the bounds of its listener's door."""

    def __init__(self, door: Door, **given: Any) -> None:
        super().__init__(**given)
        self._door = door
        self._bounds = door.bounds
        self._patience = Patience(self.loop)
        self._unsent: Unsent | None = None
        self._reading = Reading(door.bounds)
        self._refusal: ApiError | None = None
        self._deaf = False

    @property
    def busy(self) -> bool:
        """A request is here whose answer is not."""
        return self.cycle is not None and not self.cycle.response_complete

    # What asyncio calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unsent = Unsent(self.loop, transport, seconds=self._bounds.unsent_s)
        self._patience.wait(self._bounds.head_s, self._head_is_late)
        if len(self.connections) > self._bounds.connections and not self._door.make_room():
            message = f"Too many connections are at work here; try again in {RETRY_AFTER_S} s."
            self._turn_away(Unavailable(message, code="too_many_connections", retry_after_s=RETRY_AFTER_S))
        self._door.idle(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.busy(self.transport)
        self._patience.end()
        if self._unsent is not None:
            self._unsent.end()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        with self._reading.segment(len(data)):
            self._feed(data)
        if self._deaf or self.transport.is_closing():
            return
        if self._reading.head_is_too_large:
            self._turn_away(self._head_too_large())
        elif self._reading.body_is_silent:
            self._turn_away(_malformed())
        elif not (self.busy or self._reading.in_body or self._patience.waits or self.timeout_keep_alive_task):
            # The next head has begun, or line ends that are no request yet.
            self._patience.wait(self._bounds.head_s, self._head_is_late)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unsent is not None:
            self._unsent.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unsent is not None:
            self._unsent.end()

    # What the parser calls; raising ends its work on what has come.

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._bounds.pipelined:
            raise _Refused
        super().on_message_begin()
        self._reading.begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        # Trailers come this way as well.
        self._reading.header(name, value)
        self._check_head()

    def on_headers_complete(self) -> None:
        self._reading.end_head(self.url)
        self._check_head()
        if self._offers_another_protocol():
            return
        # First, because it raises for a path that is none: then there is no such request.
        super().on_headers_complete()
        self._reading.begin_body()
        self._patience.end()
        self._door.busy(self.transport)

    def on_chunk_header(self) -> None:
        self._reading.chunk()
        if self._reading.chunks_are_tiny:
            message = "The body comes in chunks of a few bytes; send larger ones, or its length."
            self._refusal = InvalidInput(message, code="malformed_request")
            raise _Refused

    def on_body(self, body: bytes) -> None:
        self._reading.body(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._offers_another_protocol():
            return
        self._reading.end()
        super().on_message_complete()
        if not self.busy:
            # It was answered before its body was here; from now on the connection waits like any other.
            self._patience.end()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    # What uvicorn's own parts call.

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or self.busy or self.pipeline:
            return
        self._door.idle(self.transport)
        if self._reading.in_head:
            self._patience.wait(self._bounds.head_s, self._head_is_late)
        elif self._reading.in_body:
            self._patience.wait(self._bounds.rest_s, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        # An answer that is not taken would keep a connection that is only closed.
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
        method, version = self.parser.get_method(), self.parser.get_http_version()
        head = request_without_offer(method, self.url, version, self.headers)
        self.parser = httptools.HttpRequestParser(self)
        self._feed(head + rest)

    # Refusing.

    def _check_head(self) -> None:
        if self._reading.head_is_too_large:
            self._refusal = self._head_too_large()
            raise _Refused

    def _head_too_large(self) -> ApiError:
        most_bytes, most = self._bounds.head_bytes, self._bounds.headers
        message = f"The head has more than {most_bytes} bytes or {most} headers; send fewer."
        return HeadTooLarge(message, code="headers_too_large")

    def _head_is_late(self) -> None:
        if self._reading.in_head:
            message = f"The request's head did not come to its end within {self._bounds.head_s:g} s; send it again."
            self._turn_away(TooSlow(message, code="headers_too_slow"))
        else:
            self.transport.close()

    # | a request is at work | the fault is in    | its answer | then                                        |
    # | -------------------- | ------------------ | ---------- | ------------------------------------------- |
    # | no                   | a head             | -          | told why, closed                            |
    # | no                   | an answered body   | out        | closed                                      |
    # | yes                  | what follows it    | any        | it gets its answer, closed after that       |
    # | yes, the only one    | its own body       | not begun  | told why, closed                            |
    # | yes                  | a body             | begun      | closed: what is told would be a part of it  |
    def _turn_away(self, error: ApiError) -> None:
        """Hear no more of this client, and tell it why where it still can be told."""
        self._deaf = True
        self._patience.end()
        self._unset_keepalive_if_required()
        if self.busy and not self._reading.in_body:
            self.cycle.keep_alive = False
        elif self._reading.in_body and (not self.busy or self.cycle.response_started or self.pipeline):
            self.transport.close()
        else:
            if self.busy:
                # Whatever the request would still write is too late.
                self.cycle.disconnected, self.cycle.waiting_for_100_continue = True, False
                self.cycle.message_event.set()
            self._tell(error)

    def _tell(self, error: ApiError) -> None:
        self._door.on_refused(error)
        self.transport.write(last_answer(error, self.server_state.default_headers))
        self._patience.wait(LINGER_S, self.transport.abort)
        try:
            self.transport.write_eof()
        except OSError:
            # The client is gone already.
            self.transport.abort()


class _Refused(Exception):
    """Raised inside the parser's callbacks."""


def _malformed() -> ApiError:
    return InvalidInput("This is not an HTTP/1.1 request; check what the client sends.", code="malformed_request")
