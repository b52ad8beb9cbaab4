"""What became of one request. Pure, but for reading the error object's JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

NOT_ADMITTED = (429, 503)
LONGEST_PAUSE_S = 1.0


class Fate(Enum):
    """The three ways in which a request can end."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`reason` is the error's code, or what the client saw; `pause_s` is how long to wait before the next request."""

    fate: Fate
    seconds: float
    reason: str = ""
    pause_s: float = 0.0


# | answer                            | fate     | reason                          |
# | --------------------------------- | -------- | ------------------------------- |
# | 200                               | answered |                                 |
# | 429, or 503 that is no lost edit  | refused  | the error's code, else `http N` |
# | anything else                     | failed   | the error's code, else `http N` |
def outcome(*, status: int, headers: Mapping[str, str], body: bytes, seconds: float) -> Outcome:
    """What an answer means."""
    if status == 200:
        return Outcome(fate=Fate.ANSWERED, seconds=seconds)
    code = error_code(body)
    reason = code or f"http {status}"
    # 503 also says that the worker was lost during the edit: that one was accepted.
    if status in NOT_ADMITTED and code != "worker_lost":
        return Outcome(fate=Fate.REFUSED, seconds=seconds, reason=reason, pause_s=_pause_s(headers))
    return Outcome(fate=Fate.FAILED, seconds=seconds, reason=reason, pause_s=LONGEST_PAUSE_S)


def broken(reason: str, *, seconds: float) -> Outcome:
    """A request that got no answer."""
    return Outcome(fate=Fate.FAILED, seconds=seconds, reason=reason, pause_s=LONGEST_PAUSE_S)


def error_code(body: bytes) -> str:
    """The code in an OpenAI error object; empty when there is none."""
    error = _error(body)
    code = error.get("code")
    return code if isinstance(code, str) else ""


def error_message(body: bytes) -> str:
    """The message in an OpenAI error object; empty when there is none."""
    message = _error(body).get("message")
    return message if isinstance(message, str) else ""


def _error(body: bytes) -> dict[str, object]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    error = parsed.get("error") if isinstance(parsed, dict) else None
    return error if isinstance(error, dict) else {}


def _pause_s(headers: Mapping[str, str]) -> float:
    """Retry-After, but at most a second: a sweep that slept for minutes would measure nothing."""
    given = headers.get("retry-after", "")
    return min(float(given), LONGEST_PAUSE_S) if given.isdecimal() else LONGEST_PAUSE_S
