"""HTTP as bytes, for what uvicorn's protocol has no call for."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from http import HTTPStatus

from imageedit_server.api.answers import error_answer
from imageedit_server.errors import ApiError

Headers = Sequence[tuple[bytes, bytes]]
OFFER_HEADERS = (b"connection", b"upgrade", b"http2-settings")


def last_answer(error: ApiError, further: Headers) -> bytes:
    """The answer that an error is, with an id, and as the last one of its connection."""
    answer = error_answer(error)
    status = b"HTTP/1.1 %d %b" % (answer.status_code, HTTPStatus(answer.status_code).phrase.encode())
    headers = (
        *further,
        *answer.raw_headers,
        (b"x-request-id", uuid.uuid4().hex.encode()),
        (b"connection", b"close"),
    )
    return _head(status, headers) + bytes(answer.body)


def request_without_offer(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """The head of a request without its offer of another protocol; names are in small letters."""
    kept = [(name, value) for name, value in headers if name not in OFFER_HEADERS]
    return _head(b"%b %b HTTP/%b" % (method, target, version.encode()), kept)


def _head(first: bytes, headers: Headers) -> bytes:
    return b"\r\n".join((first, *(name + b": " + value for name, value in headers), b"", b""))
