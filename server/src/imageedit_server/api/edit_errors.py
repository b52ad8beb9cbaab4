"""What a client is told when its edit is not admitted, not run in time, or failed."""

from __future__ import annotations

from imageedit_server.errors import ApiError, EditFailed, InvalidInput, Overloaded, Unavailable
from imageedit_server.gate.admission import NOT_READY_RETRY_AFTER_S, Refusal, Refused, whole_seconds
from imageedit_server.worker.failures import WorkerFailure


# | refusal       | answer            | it names                         |
# | ------------- | ----------------- | -------------------------------- |
# | queue_full    | 429 queue_full    | how many wait                    |
# | wait_too_long | 429 wait_too_long | the work that is before it       |
# | draining      | 503 draining      | the process that takes it        |
# | not_ready     | 503 not_ready     | what the process still waits for |
def refusal_error(refused: Refused, *, waiting: int, ahead_s: float, not_ready: str) -> ApiError:
    """The answer to an edit that is not admitted."""
    code, retry_after_s = refused.reason.value, refused.retry_after_s
    match refused.reason:
        case Refusal.QUEUE_FULL:
            message = f"{waiting} edits wait already and no more may; try again in {retry_after_s} s."
        case Refusal.WAIT_TOO_LONG:
            message = (
                f"The edit would not begin and end in time: {ahead_s:.0f} s of work are before it;"
                f" try again in {retry_after_s} s, or wait longer."
            )
        case Refusal.DRAINING:
            message = "This server is being replaced; send the request again, another one takes it."
            return Unavailable(message, code=code, retry_after_s=retry_after_s)
        case Refusal.NOT_READY:
            message = f"The model is not ready ({not_ready}); try again in {retry_after_s} s."
            return Unavailable(message, code=code, retry_after_s=retry_after_s)
    return Overloaded(message, code=code, retry_after_s=retry_after_s, should_retry=refused.should_retry)


# | failure              | answer                                                    |
# | -------------------- | --------------------------------------------------------- |
# | WorkerLost           | 503 worker_lost: a new worker comes, another try is right |
# | sticky, any reason   | 503 worker_lost                                           |
# | PromptTooLong        | 400 prompt_too_long                                       |
# | any other            | 500 edit_failed: the worker goes on, this edit did not    |
def failure_error(failure: WorkerFailure) -> ApiError:
    """The answer to an edit that failed."""
    if failure.reason == "WorkerLost" or failure.sticky:
        return Unavailable(
            "The worker process was lost during this edit and is being replaced; send the request again.",
            code="worker_lost",
            retry_after_s=NOT_READY_RETRY_AFTER_S,
        )
    if failure.reason == "PromptTooLong":
        return InvalidInput(
            f"{failure.message[0].upper()}{failure.message[1:]}.", code="prompt_too_long", param="prompt"
        )
    return EditFailed(f"The edit failed: {failure.message}", code="edit_failed")


def too_late_error(*, ahead_s: float) -> ApiError:
    """The answer to an edit whose turn came too late for its client."""
    return Overloaded(
        "The edit waited longer than expected and could not have ended in your time; it was not run."
        " Send it again with a longer timeout.",
        code="deadline_missed",
        retry_after_s=whole_seconds(ahead_s),
    )
