"""What a client is told when its edit is refused or failed."""

from __future__ import annotations

import pytest

from imageedit_server.api.edit_errors import failure_error, refusal_error
from imageedit_server.gate.admission import Refusal, Refused
from imageedit_server.worker.failures import Reason, WorkerFailure


@pytest.mark.parametrize(
    ("reason", "status", "words"),
    [
        (Refusal.QUEUE_FULL, 429, "7 edits wait already"),
        (Refusal.WAIT_TOO_LONG, 429, "42 s of work are before it"),
        (Refusal.DRAINING, 503, "another one takes it"),
        (Refusal.NOT_READY, 503, "worker loading"),
    ],
)
def test_a_refusal_is_answered_by_its_table(reason: Refusal, status: int, words: str) -> None:
    refused = Refused(reason=reason, retry_after_s=3)
    answer = refusal_error(refused, waiting=7, ahead_s=42.0, not_ready="worker loading")

    assert (answer.status, answer.code, answer.retry_after_s) == (status, reason.value, 3)
    assert words in answer.message


@pytest.mark.parametrize(
    ("reason", "sticky", "status", "code"),
    [
        ("WorkerLost", True, 503, "worker_lost"),
        ("WorkerLost", False, 503, "worker_lost"),
        ("DeviceFault", True, 503, "worker_lost"),
        ("PromptTooLong", False, 400, "prompt_too_long"),
        ("OutOfMemory", False, 500, "edit_failed"),
        ("EditFailed", False, 500, "edit_failed"),
    ],
)
def test_a_failure_is_answered_by_its_table(reason: Reason, sticky: bool, status: int, code: str) -> None:
    answer = failure_error(WorkerFailure(reason=reason, message="what happened", sticky=sticky))

    assert (answer.status, answer.code) == (status, code)
    assert (answer.retry_after_s is not None) == (status == 503)
