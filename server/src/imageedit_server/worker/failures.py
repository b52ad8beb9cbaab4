"""Why an edit or a whole worker failed, and the failures that have no error of the engine behind them."""

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "ModelMissing",
    "ModelInvalid",
    "DeviceUnavailable",
    "WarmupFailed",
    "DeviceFault",
    "OutOfMemory",
    "WorkerLost",
    "EditFailed",
    "Cancelled",
    "BadOutput",
    "PromptTooLong",
    "Hung",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFailure:
    """Why an edit or a whole worker failed. A sticky failure needs a new process."""

    reason: Reason
    message: str
    sticky: bool


class WorkerError(Exception):
    """Carries a `WorkerFailure` to the caller."""

    def __init__(self, failure: WorkerFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NotStarted(WorkerError):
    """The worker has not begun this edit, and will not: another one may."""


CANCELLED = WorkerFailure(reason="Cancelled", message="the edit was cancelled", sticky=False)


def lost(message: str, *, reason: Reason = "WorkerLost") -> WorkerFailure:
    """The process is gone, or given up: only a new one can serve."""
    return WorkerFailure(reason=reason, message=message, sticky=True)


def away(message: str) -> WorkerFailure:
    """No worker is there now: the edit has not reached one, and is not to blame."""
    return WorkerFailure(reason="WorkerLost", message=message, sticky=False)


def too_slow(deadline_s: float, *, warming: bool) -> WorkerFailure:
    """The start took longer than it may; say which part of it: the model, or its first edits."""
    if warming:
        message = f"the warm-up was not done {deadline_s:g} s after the start; warm less, or raise --start-deadline"
        return WorkerFailure(reason="WarmupFailed", message=message, sticky=True)
    message = f"the model was not loaded within {deadline_s:g} s; check the volume's speed, or raise --start-deadline"
    return WorkerFailure(reason="ModelInvalid", message=message, sticky=True)
