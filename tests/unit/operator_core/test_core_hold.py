"""Paused rollouts and canaries, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core import hold
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.record import Record
from imageedit_operator.core.rollout_spec import Canary, Rollout

NOW = 10_000.0
NEW = "new"
PAUSED = Rollout(paused=True)
CANARY = Rollout(canary=Canary(pods=2))
TIMED = Rollout(canary=Canary(pods=2, hold_s=600.0))


def found(rollout: Rollout, **changes: Any) -> Hold | None:
    arguments: dict[str, Any] = {
        "name": "edit",
        "target": NEW,
        "good": False,
        "replaces": True,
        "promoted": "",
        "prefetching": "",
        "record": None,
        "wanted": 4,
        **changes,
    }
    return hold.find(rollout, now=NOW, **arguments)


def held_for(seconds: float, revision: str = NEW) -> Record:
    return Record(revision=revision, started_at=0.0, stepped_at=0.0, held_since=NOW - seconds)


@pytest.mark.parametrize(
    ("rollout", "changes", "reason"),
    [
        (PAUSED, {"wanted": 0}, None),
        (PAUSED, {"good": True, "replaces": False}, None),
        (PAUSED, {}, "Paused"),
        (PAUSED, {"good": True}, "Paused"),
        (PAUSED, {"replaces": False}, "Paused"),
        (PAUSED, {"prefetching": "0 of 1"}, "Paused"),
        (Rollout(), {"prefetching": "0 of 1"}, "Prefetching"),
        (Rollout(), {"prefetching": "0 of 1", "replaces": False}, "Prefetching"),
        (Rollout(), {"prefetching": "0 of 1", "replaces": False, "good": True}, None),
        (Rollout(), {"prefetching": "0 of 1", "wanted": 0}, None),
        (CANARY, {"prefetching": "0 of 1"}, "Prefetching"),
        (Rollout(), {}, None),
        (CANARY, {"good": True}, None),
        (CANARY, {"replaces": False}, None),
        (CANARY, {"promoted": NEW}, None),
        (CANARY, {"promoted": "earlier"}, "CanaryHold"),
        (CANARY, {"record": held_for(99_999)}, "CanaryHold"),
        (TIMED, {"record": held_for(599)}, "CanaryHold"),
        (TIMED, {"record": held_for(600)}, None),
        (TIMED, {"record": held_for(600, "other")}, "CanaryHold"),
        (TIMED, {}, "CanaryHold"),
    ],
)
def test_a_hold_follows_the_table(rollout: Rollout, changes: dict[str, Any], reason: str | None) -> None:
    held = found(rollout, **changes)
    assert (None if held is None else held.reason) == reason


@pytest.mark.parametrize(
    ("pods", "wanted", "new", "old"),
    [(2, 4, 2, 2), (2, 3, 2, 1), (2, 2, 1, 1), (1, 1, 1, 1), (9, 4, 3, 1), (None, 4, 3, 0), (None, 1, 1, 0)],
)
def test_a_canary_leaves_room_for_the_old_revision(pods: int | None, wanted: int, new: int, old: int) -> None:
    held = Hold(reason="CanaryHold", message="", pods=pods)
    assert (held.new_pods(wanted), held.old_pods(wanted)) == (new, old)


@pytest.mark.parametrize(
    ("rollout", "record", "words"),
    [
        (CANARY, None, "until kubectl imageedit promote edit, or the annotation imageedit.dev/promoted-revision: new"),
        (TIMED, None, "for rollout.canary.hold once they are warm; kubectl imageedit promote edit goes on at once"),
        (TIMED, held_for(0), "until 1970-01-01T02:56:40Z; kubectl imageedit promote edit goes on at once"),
    ],
)
def test_a_canary_says_how_long_it_holds(rollout: Rollout, record: Record | None, words: str) -> None:
    held = found(rollout, record=record)
    assert held is not None
    assert held.message == f"holds at 2 of revision new {words}"


def test_a_pause_says_how_to_go_on() -> None:
    held = found(PAUSED)
    assert held is not None
    assert held.message == (
        "spec.rollout.paused is set: no pod is replaced until kubectl imageedit resume edit, or paused: false; "
        "the number of pods still follows"
    )
