"""Which plans leave their status to the next one."""

from __future__ import annotations

import pytest

from imageedit_operator.core.actions import Action, PostEvent, SetGate
from imageedit_operator.core.unwritten import left_to_the_next

OPENS = SetGate(pod="p", uid="u", value=True, reason="Warm", message="")
CLOSES = SetGate(pod="p", uid="u", value=False, reason="NotWarm", message="")
TOLD = PostEvent(type="Normal", reason="RolloutCompleted", message="")


@pytest.mark.parametrize(
    ("actions", "stored_generation", "remembers", "again", "left"),
    [
        ((OPENS,), 2, False, True, False),
        ((OPENS,), 1, False, False, False),
        ((OPENS,), None, False, False, False),
        ((OPENS,), 2, True, False, False),
        ((OPENS, TOLD), 2, False, False, False),
        ((OPENS, CLOSES), 2, False, False, False),
        ((OPENS,), 2, False, False, True),
        ((OPENS, OPENS), 2, False, False, True),
        ((), 2, False, False, False),
    ],
)
def test_a_status_waits_while_gates_open_and_nothing_else_is_done(
    actions: tuple[Action, ...], stored_generation: int | None, remembers: bool, again: bool, left: bool
) -> None:
    stored = {"observedGeneration": stored_generation}
    after = {"observedGeneration": 2}
    assert left_to_the_next(actions, stored, after, remembers=remembers, again=again) is left
