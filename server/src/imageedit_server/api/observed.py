"""Outermost around every request of the API: its trace, its trace id in the log, and the seconds of sending.

Plain ASGI, like the envelope inside it, whose request id it reads afterwards.
"""

from __future__ import annotations

import time

from fastapi.telemetry import TelemetryConfig
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from imageedit_server import logs
from imageedit_server.api.answers import CLIENT_CLOSED_REQUEST
from imageedit_server.api.envelope import route_of
from imageedit_server.api.service import Service
from imageedit_server.tracing import Span

# Where the answer is a picture.
SENDING_ROUTES = ("/v1/edit", "/v1/images/edits", "/v1/images/generations")
# Methods come from strangers, and names of spans must be few.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OTHER_METHOD = "_OTHER"
SERVER_ERROR = 500
# Newer FastAPI tells of requests by itself, where a variable or somebody else's code sets OpenTelemetry up: with the
# messages of exceptions, and with paths whose last part is the key of a file.
NO_FRAMEWORK_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


class Observed:
    """Wraps the API's application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER_METHOD
        route, headers = route_of(scope["path"]), Headers(scope=scope)
        answer = _Answer(send)
        with self._service.traces.request(method=method, route=route, headers=headers) as span:
            if span.trace_id:
                logs.bind(trace_id=span.trace_id)
            try:
                await self._app(scope, receive, answer.send)
            finally:
                _describe(span, answer, scope)
        if route in SENDING_ROUTES and answer.status < 300:
            self._service.telemetry.stage_s.labels("send").observe(answer.sending_s)


class _Answer:
    """The answer on its way out; `sending_s` counts only the time in which the client was too slow to take it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = CLIENT_CLOSED_REQUEST
        self.sending_s = 0.0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        started_s = time.monotonic()
        try:
            await self._send(message)
        finally:
            self.sending_s += time.monotonic() - started_s


def _describe(span: Span, answer: _Answer, scope: Scope) -> None:
    span.set("http.response.status_code", answer.status)
    span.set("imageedit.sending_seconds", round(answer.sending_s, 6))
    span.set("imageedit.request_id", scope.get("state", {}).get("request_id", ""))
    # A refusal is the client's error, and no failure of this server.
    if answer.status >= SERVER_ERROR:
        span.fail(str(answer.status))
