"""What the demo and the local cluster say on their way and at their end; row by row."""

from __future__ import annotations

from typing import Any

import pytest

from demo.ending import broken_off
from demo.rolling import Telling, growing, standing
from localcluster.bringup import end_words


def resource(reason: str, message: str = "", **status: Any) -> dict[str, Any]:
    conditions = [{"type": "WaitingForCard", "status": "False", "reason": reason, "message": message}]
    return {"status": {"desiredReplicas": 2, "conditions": conditions, **status}}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (resource("Scheduled"), "0 of 2 pods are of the new revision, 0 of all pods serve"),
        (
            resource("CardHandedOver", "the new pod waits for the card of a", updatedReplicas=1, readyReplicas=1),
            "1 of 2 pods are of the new revision, 1 of all pods serve; the new pod waits for the card of a",
        ),
    ],
)
def test_where_a_rollout_stands_is_said_in_one_line(found: dict[str, Any], words: str) -> None:
    assert standing(found) == words


def scaling(*, asked: int, serve: int, **messages: str) -> dict[str, Any]:
    """A resource that scales on its queue; a message of MetricsAvailable says that there is no data."""
    conditions = [
        {"type": kind, "status": str(kind != "MetricsAvailable"), "reason": "", "message": message}
        for kind, message in messages.items()
    ]
    if "MetricsAvailable" not in messages:
        conditions.append({"type": "MetricsAvailable", "status": "True", "reason": "Fresh", "message": "answers"})
    return {"status": {"desiredReplicas": asked, "readyReplicas": serve, "conditions": conditions}}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            scaling(asked=1, serve=1, MetricsAvailable="no series yet", ScalingActive="holds"),
            "1 of 2 pods, 1 of them serve; no series yet",
        ),
        (scaling(asked=1, serve=1, ScalingActive="follows requests"), "1 of 2 pods, 1 of them serve; follows requests"),
        (scaling(asked=2, serve=1, Progressing="pods load"), "2 of 2 pods, 1 of them serve; pods load"),
        ({}, "0 of 2 pods, 0 of them serve"),
    ],
)
def test_what_a_growing_service_waits_for_is_said(found: dict[str, Any], words: str) -> None:
    assert growing(found, 2) == f"the queue asks for {words}"


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        ([(0.0, "a"), (2.0, "b"), (3.0, "b")], ["a", "b"]),
        ([(0.0, "a"), (1.0, "b"), (2.0, "c"), (3.0, "c")], ["a", "c"]),
        ([(0.0, "a"), (9.0, "a")], ["a"]),
        ([(0.0, "a"), (10.0, "a"), (19.0, "a"), (20.0, "a")], ["a", "a (10 s)", "a (20 s)"]),
    ],
)
def test_lines_are_neither_too_many_nor_too_few(told: list[tuple[float, str]], lines: list[str]) -> None:
    said: list[str] = []
    telling = Telling(said.append, now=0.0)
    for now, words in told:
        telling.tell(words, now=now)
    assert said == lines


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (True, "demo broken off; run it again, or remove what it started: make demo-down"),
        (False, "demo broken off; nothing that it started is left. Run it again: make demo"),
    ],
)
def test_what_is_left_of_a_demo_is_said_as_it_is(left: bool, words: str) -> None:
    assert broken_off(left=left) == words


@pytest.mark.parametrize(
    ("error", "words"), [(KeyboardInterrupt(), "broken off; removing"), (ValueError("x"), "failed; removing")]
)
def test_a_start_that_was_broken_off_did_not_fail(error: BaseException, words: str) -> None:
    assert end_words(error).startswith(words)
