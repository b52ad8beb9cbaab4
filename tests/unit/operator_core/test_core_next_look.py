"""When a resource is looked at again; row by row."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.actions import PostEvent
from imageedit_operator.core.next_look import MOVING_S, RESTING_S, WATCHING_S, after_s, remembers
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.progress import Situation
from unit.operator_core.builders import deployment, pending_pod
from unit.operator_core.test_core_conditions import GOOD, situation

FAULT = Trouble(reason="CrashLoop", message="pod p ends")
ACTION = PostEvent(type="Normal", reason="Scaled", message="1 -> 2")


@pytest.mark.parametrize(
    ("found", "acts", "keywords", "expected"),
    [
        (situation(), False, {"remembers": True}, 0.0),
        (situation(), True, {}, MOVING_S),
        (situation(complete=False), False, {}, MOVING_S),
        (situation(complete=False, trouble=FAULT), True, {}, MOVING_S),
        (situation(complete=False, trouble=FAULT), False, {}, WATCHING_S),
        (situation(complete=False, unschedulable=pending_pod()), False, {}, WATCHING_S),
        (situation(decision=GOOD), False, {}, WATCHING_S),
        (situation(degraded=FAULT), False, {}, WATCHING_S),
        (situation(), False, {"suspects": True}, WATCHING_S),
        (situation(), False, {"copying": True}, WATCHING_S),
        (situation(), False, {}, RESTING_S),
    ],
)
def test_the_next_look_follows_the_table(
    found: Situation, acts: bool, keywords: dict[str, Any], expected: float
) -> None:
    actions = (ACTION,) if acts else ()
    resting = {"remembers": False, "suspects": False, "copying": False}
    assert after_s(found, actions, **{**resting, **keywords}) == expected


def test_a_card_that_was_chosen_to_be_left_is_left_at_once() -> None:
    case = {"node": "n", "card": "c", "pod": "p", "since": "2026-01-01T00:00:00Z"}
    chosen = {"sickCards": [{**case, "replacedAt": "2026-01-01T00:01:00Z"}]}
    assert remembers({"sickCards": [case]}, chosen, [deployment(1)])
    assert not remembers(chosen, chosen, [deployment(1)])
