"""Until when a client waits, from what its request says about it."""

from __future__ import annotations

import contextlib
import math
import time

from starlette.requests import Request

from imageedit_server.errors import InvalidInput
from imageedit_server.gate.deadline import NotADeadline, deadline_left_s, read_timeout_s


def deadline_of(request: Request) -> float:
    """Monotonic time until which the client waits; infinite if it does not say.

    Raises:
        InvalidInput: `x-request-deadline` says no time.
    """
    received_s: float = getattr(request.state, "received_s", time.monotonic())
    lefts = [math.inf]
    timeout_s = read_timeout_s(request.headers.get("x-stainless-read-timeout", ""))
    if timeout_s is not None:
        lefts.append(timeout_s)
    given = request.headers.get("x-request-deadline")
    if given is not None:
        lefts.append(_given_left_s(given, received_s))
    return received_s + min(lefts)


def left_s(deadline_s: float, now_s: float) -> float | None:
    """Seconds that the client still waits; None for any time."""
    return None if math.isinf(deadline_s) else deadline_s - now_s


def _given_left_s(text: str, received_s: float) -> float:
    with contextlib.suppress(NotADeadline):
        return deadline_left_s(text, wall_s=time.time() - (time.monotonic() - received_s))
    raise InvalidInput(
        "x-request-deadline is neither a number of seconds nor a time such as 2030-01-31T12:00:00Z.",
        code="invalid_parameter",
        param="x-request-deadline",
    )
