"""What a client is told when its edit failed."""

from __future__ import annotations

import pytest

from imageedit_server.api.turn import answer_to
from imageedit_server.worker.protocol import Reason, WorkerFailure


@pytest.mark.parametrize(
    ("reason", "sticky", "status", "code"),
    [
        ("WorkerLost", True, 503, "worker_lost"),
        ("WorkerLost", False, 503, "worker_lost"),
        ("DeviceFault", True, 503, "worker_lost"),
        ("OutOfMemory", False, 500, "edit_failed"),
        ("EditFailed", False, 500, "edit_failed"),
    ],
)
def test_a_failure_is_answered_by_its_table(reason: Reason, sticky: bool, status: int, code: str) -> None:
    answer = answer_to(WorkerFailure(reason=reason, message="what happened", sticky=sticky))

    assert (answer.status, answer.code) == (status, code)
    assert (answer.retry_after_s is not None) == (status == 503)
