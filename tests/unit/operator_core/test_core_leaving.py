"""What is said of a pod that is terminating and still holds its card, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.leaving import holders, how
from unit.operator_core.builders import CARD, pending_pod, serving_pod

ENDS_BY = 1_796_007_600.0
THEN = "2026-11-30T03:00:00Z"
LOOK = "kubectl describe pod old, and look at node node-1"
CARDS = {CARD: 1}


@pytest.mark.parametrize(
    ("changes", "ago_s", "said"),
    [
        ({"ends_by": 0.0}, 0.0, "ends"),
        ({}, -300.0, f"ends by {THEN} at the latest"),
        ({}, 0.0, f"ends by {THEN} at the latest"),
        ({"running": ("server",)}, -300.0, f"ends by {THEN} at the latest"),
        ({"running": ("log", "server")}, -300.0, f"ends by {THEN} at the latest"),
        ({"running": ("log",)}, -300.0, f"ends by {THEN} at the latest, for its container log still runs"),
        ({"running": ("log", "mesh")}, -300.0, f"ends by {THEN} at the latest, for its containers log, mesh still run"),
        ({}, 1.0, f"should have ended by {THEN}; {LOOK}"),
        (
            {"running": ("log", "server")},
            1.0,
            f"should have ended by {THEN}, and its containers log, server still run; {LOOK}",
        ),
    ],
)
def test_a_pod_that_ends_says_by_when_and_what_keeps_it(changes: dict[str, Any], ago_s: float, said: str) -> None:
    pod = serving_pod("old", terminating=True, **{"ends_by": ENDS_BY, **changes})
    assert how(pod, now=ENDS_BY + ago_s) == said


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({}, True),
        ({"cards": None}, True),
        ({"terminating": False}, False),
        ({"node": ""}, False),
        ({"lost": True}, False),
        ({"phase": "Failed"}, False),
        ({"cards": {"huawei.com/Ascend310": 1}}, False),
    ],
)
def test_only_a_terminating_pod_with_such_a_card_is_named(changes: dict[str, Any], held: bool) -> None:
    pod = serving_pod("old", **{"terminating": True, "cards": CARDS, **changes})
    named = holders([pod], resource_name=CARD, now=ENDS_BY)
    assert named == (("pod old (terminating, ends)",) if held else ())


def test_pods_that_end_are_named_in_the_order_of_their_names() -> None:
    pods = [serving_pod(name, terminating=True, cards=CARDS) for name in ("b", "a")]
    named = holders([pending_pod(), *pods], resource_name=CARD, now=ENDS_BY)
    assert [words.split()[1] for words in named] == ["a", "b"]
