"""What is said of a pod on a sick card, and what to do about it; row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from imageedit_operator.core.degraded import sick_words
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.relief import PLUGIN_S, Case, Relief
from unit.operator_core.builders import serving_pod

NOW = 1_000_000.0
POD = serving_pod("s", held_cards=("c0",), sick_card="c0", sick_words="fault 80E01801 of level RestartNPU")
NODE = SickNode(sick={"c0": "fault"}, capacity=4, allocatable=3, requested=4)
CARDS = Known(value=CardLedger(allocatable=3, requested=3, sick_nodes={"node-1": NODE}))
SEEN = Case(node="node-1", card="c0", pod="s", since=NOW - 60)


@pytest.mark.parametrize(
    ("way", "case", "rolling", "words"),
    [
        ("Surge", SEEN, False, "a pod on another card takes its place"),
        ("Wait", replace(SEEN, replaced_at=NOW), False, "no other card is free, so it stays; free a card"),
        (None, replace(SEEN, pod="t", replaced_at=NOW - 9), False, "a pod was moved off this card within a day"),
        (None, SEEN, True, "it leaves with the rollout, or after it"),
        (None, replace(SEEN, since=NOW), False, "it is replaced if that lasts"),
        (None, SEEN, False, "no other card is free, so it stays; free a card, add a node, or repair this one"),
    ],
)
def test_the_words_name_pod_node_card_and_what_happens(way: str | None, case: Case, rolling: bool, words: str) -> None:
    found = None if way is None else Relief(pod=POD, way=way)
    said = sick_words([POD], {}, [case], CARDS, found=found, rolling=rolling, now=NOW)
    assert said is not None
    assert said.reason == "DeviceUnhealthy"
    where = "pod s sits on card c0 of node node-1, which is sick (fault 80E01801 of level RestartNPU): "
    assert said.message.startswith(where + words)


@pytest.mark.parametrize(
    ("allocatable", "age_s", "words"),
    [
        (3, 60, "nobody says which card is whose: a, b; find the pod on the sick card, and delete it"),
        (0, PLUGIN_S, "node node-1 offers none of its cards, and pods hold some: a, b; look at the device plugin"),
        (0, 60, ""),
        (3, 0, ""),
    ],
)
def test_a_node_that_is_short_of_cards_is_named_with_its_pods_after_a_while(
    allocatable: int, age_s: float, words: str
) -> None:
    ledger = Known(
        value=CardLedger(allocatable=3, requested=3, sick_nodes={"node-1": replace(NODE, allocatable=allocatable)})
    )
    pods = [serving_pod("a"), serving_pod("b")]
    case = Case(node="node-1", card="", pod="a", since=NOW - age_s)
    said = sick_words(pods, {"node-1": pods}, [case], ledger, found=None, rolling=False, now=NOW)
    assert (said.message if said is not None else "").find(words) >= 0
    assert (said is None) == (not words)


def test_nothing_is_said_while_all_is_well() -> None:
    assert sick_words([serving_pod("a")], {}, [], CARDS, found=None, rolling=False, now=NOW) is None
