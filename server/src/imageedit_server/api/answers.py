"""Errors as the OpenAI error object, on every path: ours, the framework's, and the unexpected."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from imageedit_server.errors import ApiError, ClientGone, EditFailed, InvalidInput, Unauthorized

# Nobody reads it: the connection is closed. The number is nginx's, and is known to people who read metrics.
CLIENT_CLOSED_REQUEST = 499


@dataclass(slots=True)
class Told:
    """What a client was told in the end, as a status: a stream says it after the status of its head is out."""

    status: int = CLIENT_CLOSED_REQUEST


FRAMEWORK_MESSAGES = {
    404: (
        "not_found",
        "Nothing is served at {method} {path}; see POST /v1/images/edits, POST /v1/edit, GET /openapi.json.",
    ),
    405: ("method_not_allowed", "{path} does not answer {method}."),
}


def add_error_answers(app: FastAPI) -> None:
    """Make every error of an application an OpenAI error object."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(ClientGone, _client_gone)
    app.add_exception_handler(Exception, _unexpected)


def error_object(error: ApiError) -> dict[str, object]:
    """The error object, as bodies and events carry it."""
    return {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}}


def error_answer(error: ApiError) -> JSONResponse:
    """The answer that an error is."""
    headers = {} if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
    if error.status == Unauthorized.status:
        headers["www-authenticate"] = "Bearer"
    if error.should_retry is not None:
        headers["x-should-retry"] = str(error.should_retry).lower()
    return JSONResponse(error_object(error), status_code=error.status, headers=headers)


def _answer(status: int, *, kind: str, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return JSONResponse(body, status_code=status, headers=headers)


def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_answer(error)


def _framework_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = FRAMEWORK_MESSAGES.get(error.status_code, ("http_error", str(error.detail)))
    kind = EditFailed.kind if error.status_code >= 500 else InvalidInput.kind
    text = message.format(method=request.method, path=request.url.path[:200])
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # The framework names the methods of the first route of that path, not of all.
        headers["Allow"] = ", ".join(_methods(request))
    return _answer(error.status_code, kind=kind, code=code, message=text, headers=headers)


def _methods(request: Request) -> list[str]:
    routes = (route for route in request.app.routes if isinstance(route, Route))
    found = {
        method
        for route in routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return sorted(found | {"HEAD"} if "GET" in found else found)


def _client_gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)


def _unexpected(request: Request, _error: Exception) -> Response:
    """The envelope logs it with its stack; the client gets the id to ask for."""
    request_id = getattr(request.state, "request_id", "unknown")
    message = f"An unexpected error; the log has it under {request_id}."
    return _answer(500, kind=EditFailed.kind, code="internal_error", message=message)
