"""A child that others change again and again is written with pauses, and everything else is not held up by it."""

from __future__ import annotations

import pytest

from imageedit_operator.core import contest
from imageedit_operator.core.actions import (
    Action,
    ApplyService,
    CreateDeployment,
    DeletePod,
    LabelDeployment,
    ScaleDeployment,
)
from imageedit_operator.core.contest import Contest

NOW = 1_000_000.0
SERVICE = ApplyService(manifest={"metadata": {"name": "edit"}}, uid="s")
CREATE = CreateDeployment(manifest={"metadata": {"name": "edit-a"}})
LABEL = LabelDeployment(name="edit-a", uid="d", labels={"a": "1"})
SCALE = ScaleDeployment(name="edit-a", uid="d", resource_version="7", replicas=2, why="w")
LEAVES = DeletePod(pod="p", uid="p", why="w")


def written(count: int, ago_s: float = 0.0, *, generation: int = 1) -> Contest:
    return Contest(generation=generation, writes={"Service edit": (count, NOW - ago_s)})


@pytest.mark.parametrize(
    ("before", "wait_s"),
    [
        (Contest(), None),
        (written(2), None),
        (written(3, 0.5), 1.5),
        (written(3, 2.0), None),
        (written(4, 1.0), 3.0),
        (written(8, 1.0), 59.0),
        (written(10_000, 1.0), 59.0),
        (written(8, 60.0), None),
        (written(8, 1.0, generation=2), None),
        (written(8, -5.0), None),
    ],
)
def test_a_service_is_written_by_the_table(before: Contest, wait_s: float | None) -> None:
    made = contest.turn([SERVICE], before, generation=1, now=NOW)
    assert (made.actions, made.wait_s) == ((SERVICE,) if wait_s is None else (), wait_s)


def test_what_was_not_written_for_ten_minutes_is_written_at_once_as_often_as_at_first() -> None:
    made = contest.turn([SERVICE], written(8, contest.QUIET_S), generation=1, now=NOW)
    assert made.after.writes == {"Service edit": (1, NOW)}


@pytest.mark.parametrize(
    ("action", "child"),
    [
        (SERVICE, "Service edit"),
        (CREATE, "Deployment edit-a"),
        (LABEL, "Deployment edit-a"),
        (SCALE, ""),
        (LEAVES, ""),
    ],
)
def test_only_what_puts_a_child_back_is_counted(action: Action, child: str) -> None:
    assert list(contest.turn([action], Contest(), generation=1, now=NOW).after.writes) == ([child] if child else [])


def test_a_child_that_pauses_holds_up_no_other_action() -> None:
    made = contest.turn([SERVICE, CREATE, LEAVES], written(5), generation=1, now=NOW)
    assert made.actions == (CREATE, LEAVES)


def test_in_an_hour_a_service_that_is_deleted_at_once_is_written_about_once_a_minute() -> None:
    before, writes = Contest(), 0
    for tenth_s in range(36_000):
        made = contest.turn([SERVICE], before, generation=1, now=NOW + tenth_s / 10)
        before, writes = made.after, writes + len(made.actions)
    assert 60 <= writes <= 70
