"""Whose card a pod without one is about to get; row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import handover
from imageedit_operator.core.actions import Action, SetDeletionCost, SetGate
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import CARD, OLD, draining_pod, pending_pod, serving_pod

NOW = 5000.0
PATIENCE_S = 600.0 + 90.0
DRAINS = draining_pod("old", revision_hash=OLD, gate_since=NOW - 5.0)
ENDS = serving_pod("old", terminating=True)
SERVES = serving_pod("old")
WAITS = pending_pod("new", unschedulable_since=NOW - 5.0)
SAID = "the new pod waits for the card of old, which drains"
ANNOUNCED = {"conditions": [{"type": "WaitingForCard", "reason": "CardHandedOver", "message": SAID}]}
TO_DRAIN = SetGate(pod="old", uid="uid-old", value=False, reason="Draining", message="container c-1: drains")
TO_REMOVE = SetDeletionCost(pod="old", uid="uid-old", cost=-1000)


def said(
    waiting: tuple[ObservedPod, ...], *leaving: ObservedPod, actions: tuple[Action, ...] = (), **changes: Any
) -> str:
    more: dict[str, Any] = {"previous": {}, "stepped_at": NOW - 5.0, "resource_name": CARD, "soon": False, **changes}
    return handover.words(waiting, (*waiting, *leaving), actions, drain_timeout_s=600.0, now=NOW, **more)


@pytest.mark.parametrize(
    ("leaving", "how"), [(DRAINS, "drains"), (ENDS, "ends"), (replace(DRAINS, terminating=True), "drains")]
)
def test_a_pod_that_leaves_gives_its_card_to_the_one_that_waits(leaving: ObservedPod, how: str) -> None:
    assert said((WAITS,), leaving) == f"the new pod waits for the card of old, which {how}"


@pytest.mark.parametrize("action", [TO_DRAIN, TO_REMOVE])
def test_a_pod_that_the_plan_sends_away_now_leaves_already(action: Action) -> None:
    assert said((WAITS,), SERVES, actions=(action,)) == SAID


@pytest.mark.parametrize(
    "leaving",
    [
        SERVES,
        replace(DRAINS, node=""),
        replace(DRAINS, lost=True),
        replace(DRAINS, phase="Failed"),
        replace(DRAINS, cards={"huawei.com/Ascend310": 1}),
    ],
)
def test_who_stays_or_holds_no_such_card_hands_none_over(leaving: ObservedPod) -> None:
    assert said((WAITS,), leaving) == ""


def test_a_sidecar_that_keeps_a_pod_and_its_card_is_named() -> None:
    kept = replace(DRAINS, terminating=True, ends_by=NOW + 60.0, running=("log",))
    by = "1970-01-01T01:24:20Z"
    assert said((WAITS,), kept) == (
        f"the new pod waits for the card of old, which ends by {by} at the latest, for its container log still runs"
    )


def test_each_pod_that_waits_needs_a_card_of_its_own() -> None:
    two = (WAITS, replace(WAITS, name="newer", uid="uid-newer"))
    assert said(two, DRAINS) == ""
    assert said(two, DRAINS, replace(ENDS, name="other", uid="uid-other")) == SAID


@pytest.mark.parametrize(
    ("waits_s", "drains_s", "patient"),
    [
        (PATIENCE_S - 1.0, PATIENCE_S, True),
        (PATIENCE_S, PATIENCE_S, False),
        (3 * PATIENCE_S, PATIENCE_S - 1.0, True),
    ],
)
def test_a_drain_is_believed_for_its_timeout_and_a_margin(waits_s: float, drains_s: float, patient: bool) -> None:
    waits = replace(WAITS, unschedulable_since=NOW - waits_s)
    assert bool(said((waits,), replace(DRAINS, gate_since=NOW - drains_s))) is patient


@pytest.mark.parametrize(("ago_s", "words"), [(29.0, SAID), (30.0, "")])
def test_a_card_whose_pod_is_gone_has_half_a_minute_to_come(ago_s: float, words: str) -> None:
    assert said((WAITS,), previous=ANNOUNCED, stepped_at=NOW - ago_s) == words


def test_a_card_that_was_never_announced_is_not_waited_for() -> None:
    assert said((WAITS,), stepped_at=NOW) == ""


def test_an_old_pod_that_gives_way_soon_is_told_before_it_leaves() -> None:
    words = "the new pod waits for a card; an old pod gives its own if none comes free within 60 s"
    assert said((WAITS,), SERVES, soon=True) == words
    assert said((WAITS,), DRAINS, soon=True) == SAID


def test_pods_that_ask_for_no_card_wait_for_none() -> None:
    assert said((WAITS,), DRAINS, resource_name="") == ""


def test_nobody_who_waits_is_nothing_to_say() -> None:
    assert said((serving_pod("new"),), DRAINS, previous=ANNOUNCED) == ""
