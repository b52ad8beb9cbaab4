"""Every error that leaves this process: as an HTTP answer (`ApiError` and its kin) or as the end of the process.

Flat on purpose: one class is one HTTP status, one failure reason is one exit code.
Messages tell the reader what to do next.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class FailureReason(Enum):
    """Why a pod cannot serve; the value goes to the termination log."""

    SETTINGS_INVALID = "SettingsInvalid"
    MODEL_MISSING = "ModelMissing"
    MODEL_INVALID = "ModelInvalid"
    DEVICE_UNAVAILABLE = "DeviceUnavailable"
    WARMUP_FAILED = "WarmupFailed"
    WORKER_LOST = "WorkerLost"


EXIT_CODES = {
    FailureReason.SETTINGS_INVALID.value: 64,
    FailureReason.MODEL_MISSING.value: 65,
    FailureReason.MODEL_INVALID.value: 66,
    FailureReason.DEVICE_UNAVAILABLE.value: 67,
    FailureReason.WARMUP_FAILED.value: 68,
    FailureReason.WORKER_LOST.value: 69,
}


def exit_code(reason: str) -> int:
    """The exit code of a failure reason; 1 for a reason that the contract does not name."""
    return EXIT_CODES.get(reason, 1)


class SettingsInvalid(Exception):
    """An argument is missing or out of range; the message names argument, value and legal range."""


class ApiError(Exception):
    """An answer other than 200, as the OpenAI error object.

    Args:
        message: what is wrong and what to do next, for the person who sent the request.
        code: stable word for programs.
        param: name of the field that is wrong.
        retry_after_s: whole seconds after which another try makes sense.
        should_retry: tells the OpenAI clients what to do instead of what the status says; None leaves it to them.
    """

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "server_error"

    def __init__(
        self,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after_s: int | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s
        self.should_retry = should_retry


class InvalidInput(ApiError):
    """The request is wrong and stays wrong when sent again."""

    status = 400
    kind = "invalid_request_error"


class ContentRefused(ApiError):
    """The prompt or a picture is not allowed here; the message never says what of it."""

    status = 400
    kind = "image_generation_user_error"


class Unauthorized(ApiError):
    """No key, or none that this server knows."""

    status = 401
    kind = "authentication_error"


class NotFound(ApiError):
    """Nothing is served under that path or model id."""

    status = 404
    kind = "invalid_request_error"


class BodyTooLarge(ApiError):
    """The body has more bytes than `--max-body-bytes`."""

    status = 413
    kind = "invalid_request_error"


class TooSlow(ApiError):
    """Head or body stopped coming, or came too slowly to be worth its place."""

    status = 408
    kind = "invalid_request_error"


class Conflict(ApiError):
    """The request contradicts one that came before."""

    status = 409
    kind = "invalid_request_error"


class HeadTooLarge(ApiError):
    """The head of the request has more bytes or headers than are taken."""

    status = 431
    kind = "invalid_request_error"


class Overloaded(ApiError):
    """The queue is full, or too long for this client."""

    status = 429
    kind = "rate_limit_error"


class EditFailed(ApiError):
    """The edit itself failed; the worker goes on."""

    status = 500


class Unavailable(ApiError):
    """Not now: loading, restarting, draining, or the worker was lost in the middle of this edit."""

    status = 503


class StorageUnusable(ApiError):
    """The disk takes or gives nothing now: full, read-only, or broken."""

    status = 503


class ClientGone(Exception):
    """The client closed the connection while its edit waited; nobody is left to answer."""
