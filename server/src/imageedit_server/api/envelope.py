"""Around every request of the API: its id, its count and seconds, and `Connection: close` while draining.

Plain ASGI, because the frameworks' own middleware hides disconnects from the routes.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from imageedit_server import logs
from imageedit_server.api.answers import Told
from imageedit_server.api.service import Service
from imageedit_server.logs import fields
from imageedit_server.metric_labels import ROUTES

log = logging.getLogger("imageedit.api")

SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
PREFIXES = {
    "/v1/models/": "/v1/models/{id}",
    "/v1/files/": "/v1/files/{name}",
    "/v1/jobs/": "/v1/jobs/{id}",
    "/page/": "/page/{name}",
}
# Long enough for a body in transit, short enough not to hold up the end of the process.
DISCARD_TIMEOUT_S = 10.0


class Envelope:
    """Wraps the API's application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(self._service, scope, receive, send)
        logs.bind(request_id=request.id)
        started_s = time.monotonic()
        try:
            await self._app(scope, request.receive, request.send)
        except Exception:
            # The framework has answered already; this is the one place that reports it.
            log.exception("request_crashed", extra=fields(request_id=request.id, route=request.route))
        finally:
            telemetry = self._service.telemetry
            telemetry.request_s.labels(request.route).observe(time.monotonic() - started_s)
            telemetry.requests.labels(request.route, str(request.told.status)).inc()


class AnswersHead:
    """Answers HEAD where GET is answered, as HTTP asks of every server; the body is left out on its way to the wire."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = scope["type"] == "http" and scope["method"] == "HEAD"
        await self._app({**scope, "method": "GET"} if head else scope, receive, send)


class _Request:
    """One request on its way in and out."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self._service = service
        self._receive = receive
        self._send = send
        self._state = scope.setdefault("state", {})
        self._body_left = True
        self.route = route_of(scope["path"])
        self.id = _request_id(Headers(scope=scope).get("x-request-id", ""))
        self.told = self._state["told"] = Told()
        self._state["request_id"] = self.id

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._body_left = False
            # Clients count the time that they wait from here on.
            self._state.setdefault("received_s", time.monotonic())
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.told.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self.id
            if self._service.drain.begun:
                headers["connection"] = "close"
                await self._discard_body()
        await self._send(message)

    async def _discard_body(self) -> None:
        """Closing a connection with unread bytes resets it, and the client may never see the answer."""
        try:
            async with asyncio.timeout(DISCARD_TIMEOUT_S):
                while self._body_left:
                    await self.receive()
        except TimeoutError:
            return


def _request_id(given: str) -> str:
    return given if SANE_REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def route_of(path: str) -> str:
    """The path as a metric's label: never a client's own text."""
    for prefix, route in PREFIXES.items():
        if path.startswith(prefix):
            return route
    return path if path in ROUTES else "unknown"
