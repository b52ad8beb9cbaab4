"""Errors as the OpenAI error object, on every path: ours, the framework's, and the unexpected."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from imageedit_server.errors import ApiError, ClientGone, EditFailed, InvalidInput

# Nobody reads it: the connection is closed. The number is nginx's, and is known to people who read metrics.
CLIENT_CLOSED_REQUEST = 499

FRAMEWORK_MESSAGES = {
    404: (
        "not_found",
        "Nothing is served at {method} {path}; see POST /v1/edit, POST /v1/images/edits, GET /v1/models.",
    ),
    405: ("method_not_allowed", "{path} does not answer {method}."),
}


def add_error_answers(app: FastAPI) -> None:
    """Make every error of an application an OpenAI error object."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(ClientGone, _client_gone)
    app.add_exception_handler(Exception, _unexpected)


def error_answer(error: ApiError) -> JSONResponse:
    """The answer that an error is."""
    headers = {} if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
    return _answer(
        error.status, kind=error.kind, code=error.code, message=error.message, param=error.param, headers=headers
    )


def _answer(
    status: int,
    *,
    kind: str,
    code: str,
    message: str,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return JSONResponse(body, status_code=status, headers=headers)


def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_answer(error)


def _framework_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = FRAMEWORK_MESSAGES.get(error.status_code, ("http_error", str(error.detail)))
    kind = EditFailed.kind if error.status_code >= 500 else InvalidInput.kind
    text = message.format(method=request.method, path=request.url.path[:200])
    return _answer(error.status_code, kind=kind, code=code, message=text, headers=dict(error.headers or {}))


def _client_gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)


def _unexpected(request: Request, _error: Exception) -> Response:
    """The envelope logs it with its stack; the client gets the id to ask for."""
    request_id = getattr(request.state, "request_id", "unknown")
    message = f"An unexpected error; the log has it under {request_id}."
    return _answer(500, kind=EditFailed.kind, code="internal_error", message=message)
