"""What the demo and the local cluster say on their way and at their end; row by row."""

from __future__ import annotations

from typing import Any

import pytest

from demo.ending import broken_off
from demo.rolling import Telling, standing
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


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        ([(0.0, "a"), (2.0, "b"), (3.0, "b")], ["a", "b"]),
        ([(0.0, "a"), (1.0, "b"), (2.0, "c"), (3.0, "c")], ["a", "c"]),
        ([(0.0, "a"), (14.0, "a")], ["a"]),
        ([(0.0, "a"), (15.0, "a"), (29.0, "a"), (30.0, "a")], ["a", "a (15 s)", "a (30 s)"]),
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
