"""The table of next looks, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import next_look, relief
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.relief import Case
from imageedit_operator.core.scaling import Decision
from unit.operator_core.builders import pending_pod
from unit.operator_core.test_core_conditions import situation

NOW = 1_796_007_600.0
CASE = Case(node="n", card="Ascend910-0", pod="p", since=NOW)

REST: dict[str, Any] = {}
MOVES: dict[str, Any] = {"complete": False}
NO_CARD = MOVES | {"cardless": pending_pod("p")}
NO_PLACE = MOVES | {"unschedulable": pending_pod("p")}
NO_VOLUME = MOVES | {"unmounted": pending_pod("p", mount_words="no folder")}
TROUBLE = MOVES | {"trouble": Trouble(reason="CrashLoop", message="m")}
ILL: dict[str, Any] = {"degraded": Trouble(reason="DeviceUnhealthy", message="m")}
HELD = MOVES | {"hold": Hold(reason="Paused", message="m")}
DARK = MOVES | {"outage": True}
SCALES = {
    "decision": Decision(desired=2, reasons=("r",), metrics_ok=True, reason="QueueDepth", message="m", active=True)
}


@pytest.mark.parametrize(
    ("changes", "more", "seconds"),
    [
        (REST, {"remembers": True}, 0.0),
        (REST, {}, 1200.0),
        (SCALES, {}, 5.0),
        (ILL, {}, 5.0),
        (REST, {"follows": True}, 5.0),
        (REST, {"acts": True}, 2.0),
        (NO_CARD, {}, 5.0),
        (NO_PLACE, {}, 5.0),
        (NO_VOLUME, {}, 5.0),
        (TROUBLE, {}, 5.0),
        (HELD, {}, 5.0),
        (TROUBLE, {"acts": True}, 2.0),
        (NO_PLACE, {"leaving": True}, 2.0),
        (NO_PLACE | DARK, {"leaving": True}, 0.5),
        (TROUBLE | DARK, {}, 5.0),
        (DARK, {}, 0.5),
        (MOVES, {}, 2.0),
        (MOVES | ILL, {}, 2.0),
    ],
)
def test_the_next_look_is_as_near_as_somebody_waits(
    changes: dict[str, Any], more: dict[str, bool], seconds: float
) -> None:
    flags = {"acts": False, "leaving": False, "follows": False, "remembers": False} | more
    assert next_look.after_s(situation(**changes), **flags) == seconds


@pytest.mark.parametrize(
    ("before", "after", "revisions", "answer"),
    [
        ({}, {"failedRevision": "a"}, 1, True),
        ({"failedRevision": "a"}, {"failedRevision": "a"}, 2, False),
        ({"lastGoodRevision": "a"}, {"lastGoodRevision": "b"}, 2, True),
        ({}, {"lastGoodRevision": "a"}, 1, False),
        ({"lastGoodRevision": "a"}, {"lastGoodRevision": "a"}, 2, False),
        (relief.write([CASE]), relief.write([replace(CASE, replaced_at=NOW)]), 1, True),
        (relief.write([replace(CASE, replaced_at=NOW)]), relief.write([replace(CASE, replaced_at=NOW)]), 1, False),
        ({}, relief.write([CASE]), 1, False),
    ],
)
def test_a_status_that_the_next_plan_acts_on_is_remembered(
    before: dict[str, Any], after: dict[str, Any], revisions: int, answer: bool
) -> None:
    assert next_look.remembers(before, after, revisions=revisions) is answer
