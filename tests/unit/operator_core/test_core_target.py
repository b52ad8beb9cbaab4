"""Which revision the pods go to, and when one is given up."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core import target
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.record import Record
from imageedit_operator.core.target import Failure, Target

NOW = 10_000.0
NEW, GOOD = "new", "good"
FAILED = {"failedRevision": NEW, "failure": {"reason": "CheckFailed", "message": "flat"}}
BOTH = {NEW, GOOD}


@pytest.mark.parametrize(
    ("status", "deployments", "revision"),
    [
        ({}, BOTH, NEW),
        ({"lastGoodRevision": GOOD}, BOTH, NEW),
        ({"lastGoodRevision": GOOD, **FAILED}, BOTH, GOOD),
        ({"lastGoodRevision": GOOD, **FAILED, "failedRevision": "other"}, BOTH, NEW),
        ({"lastGoodRevision": GOOD, **FAILED}, {NEW}, NEW),
        ({"lastGoodRevision": NEW, **FAILED}, BOTH, NEW),
        (FAILED, BOTH, NEW),
    ],
)
def test_a_failed_revision_is_replaced_by_the_last_good_one(
    status: dict[str, Any], deployments: set[str], revision: str
) -> None:
    chosen = target.choose(NEW, status, deployments)
    assert chosen.revision == revision
    assert chosen.rolls_back is (revision == GOOD)


def judged(reason: str = "CheckFailed", *, for_s: float = 1000.0, **changes: Any) -> Failure | None:
    record = Record(revision=NEW, started_at=0.0, stepped_at=0.0, trouble_since=NOW - for_s)
    arguments: dict[str, Any] = {
        "rollback": True,
        "trouble": Trouble(reason=reason, message="words"),
        "record": record,
        **changes,
    }
    status = arguments.pop("status", {"lastGoodRevision": GOOD})
    deployments = arguments.pop("deployments", BOTH)
    goal = arguments.pop("goal", Target(revision=NEW))
    return target.judge(goal, status, deployments, now=NOW, **arguments)


def test_a_fault_that_lasts_is_a_failure_with_its_reason() -> None:
    assert judged() == Failure(revision=NEW, reason="CheckFailed", message="words")


def test_a_roll_back_keeps_its_failure() -> None:
    failure = Failure(revision=NEW, reason="CheckFailed", message="flat")
    assert judged(goal=Target(revision=GOOD, failure=failure), trouble=None, record=None) == failure


@pytest.mark.parametrize(
    "changes",
    [
        {"rollback": False},
        {"trouble": None},
        {"record": None},
        {"record": Record(revision=NEW, started_at=0.0, stepped_at=0.0)},
        {"record": Record(revision="other", started_at=0.0, stepped_at=0.0, trouble_since=0.0)},
        {"status": {}},
        {"status": {"lastGoodRevision": NEW}},
        {"deployments": {NEW}},
    ],
)
def test_otherwise_nothing_is_given_up(changes: dict[str, Any]) -> None:
    assert judged(**changes) is None


@pytest.mark.parametrize(
    ("reason", "for_s", "given_up"),
    [
        ("CheckFailed", 29, False),
        ("CheckFailed", 30, True),
        ("WarmupTimeout", 30, True),
        ("DigestMismatch", 30, True),
        ("ImagePull", 179, False),
        ("ImagePull", 180, True),
        ("DeviceUnavailable", 60, False),
        ("CrashLoop", 179, False),
    ],
)
def test_a_fault_that_may_pass_gets_more_time(reason: str, for_s: float, given_up: bool) -> None:
    assert (judged(reason, for_s=for_s) is not None) is given_up


def test_a_failure_is_read_back_as_it_was_written() -> None:
    failure = Failure(revision=NEW, reason="CheckFailed", message="flat")
    assert target.stored_failure(target.write(failure)) == failure
    assert target.write(None) == {}
