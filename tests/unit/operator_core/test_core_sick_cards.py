"""Which pods sit on sick cards, and whether another card would come by itself; row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.sick_cards import mark, room_in_its_place, suspects
from unit.operator_core.builders import pending_pod, serving_pod

UNKNOWN = Unknown(reason="Forbidden", message="nodes may not be read")


def node(**changes: Any) -> SickNode:
    """Four cards, the first of them sick by the plugin's word, two given out."""
    return replace(SickNode(sick={"c0": "fault 1"}, capacity=4, allocatable=4, requested=2, sick_held=1), **changes)


def ledger(found: SickNode) -> Known[CardLedger]:
    return Known(value=CardLedger(allocatable=4, requested=2, sick_nodes={"node-1": found}))


@pytest.mark.parametrize(
    ("pod", "cards", "expected"),
    [
        (pending_pod(held_cards=("c0",)), ledger(node()), ("", "")),
        (serving_pod(phase="Failed", held_cards=("c0",)), ledger(node()), ("", "")),
        (serving_pod(unhealthy_cards=("c9",)), UNKNOWN, ("c9", "the kubelet calls it unhealthy")),
        (serving_pod(held_cards=("c0",)), ledger(node()), ("c0", "fault 1")),
        (serving_pod(held_cards=("c0",), unhealthy_cards=("c0",)), ledger(node()), ("c0", "fault 1")),
        (serving_pod(held_cards=("c1",)), ledger(node()), ("", "")),
        (serving_pod(held_cards=("c0",), node="other"), ledger(node()), ("", "")),
        (serving_pod(), ledger(node(allocatable=1, requested=2)), ("", "")),
        (serving_pod(held_cards=("c0",)), UNKNOWN, ("", "")),
    ],
)
def test_a_pods_card_is_sick_by_the_table(
    pod: ObservedPod, cards: Known[CardLedger] | Unknown, expected: tuple[str, str]
) -> None:
    (marked,) = mark([pod], cards)
    assert (marked.sick_card, marked.sick_words) == expected


SHORT = node(sick={}, sick_held=0, allocatable=3, requested=4)


@pytest.mark.parametrize(
    ("pods", "found", "expected"),
    [
        ([serving_pod("a")], node(sick={}, allocatable=3, requested=3), []),
        ([serving_pod("a")], node(sick={}, allocatable=4, requested=5), []),
        ([serving_pod("b"), serving_pod("a")], SHORT, ["a", "b"]),
        ([serving_pod("a", held_cards=("c1",)), serving_pod("b")], SHORT, ["b"]),
        ([serving_pod("a", held_cards=("c1",))], SHORT, []),
        ([serving_pod("a", sick_card="c1"), serving_pod("b")], SHORT, []),
        ([serving_pod("a", node="other")], SHORT, []),
    ],
)
def test_pods_are_suspected_by_the_table(pods: list[ObservedPod], found: SickNode, expected: list[str]) -> None:
    assert [pod.name for ours in suspects(pods, ledger(found)).values() for pod in ours] == expected


@pytest.mark.parametrize(
    ("found", "per_pod", "expected"),
    [
        (node(allocatable=1, requested=1, capacity=2), 1, True),  # the kubelet: the pod keeps the scheduler from c1
        (node(allocatable=1, requested=2, capacity=2), 1, False),
        (node(requested=4), 1, False),
        (node(requested=3), 1, True),
        (node(requested=3, takes_pods=False), 1, False),
        (node(requested=3), 2, True),
        (node(requested=3), 3, True),
        (node(requested=4, sick_held=1), 2, False),
        (node(), 0, False),
    ],
)
def test_there_is_room_in_a_pods_place_by_the_table(found: SickNode, per_pod: int, expected: bool) -> None:
    assert room_in_its_place(serving_pod(held_cards=("c0",)), ledger(found), per_pod) is expected


def test_nobody_knows_of_room_where_no_node_is_known() -> None:
    pod = serving_pod(held_cards=("c0",))
    assert not room_in_its_place(pod, UNKNOWN, 1)
    assert not room_in_its_place(replace(pod, node="other"), ledger(node()), 1)


@given(
    capacity=st.integers(0, 8), down=st.integers(0, 8), named=st.integers(0, 8), held=st.integers(0, 8),
    requested=st.integers(0, 10),
)  # fmt: skip
def test_free_never_exceeds_what_is_healthy_or_what_the_scheduler_sees(
    capacity: int, down: int, named: int, held: int, requested: int
) -> None:
    sick = dict.fromkeys((f"c{number}" for number in range(min(named, capacity))), "fault")
    found = SickNode(
        sick=sick,
        capacity=capacity,
        allocatable=max(0, capacity - down),
        requested=requested,
        sick_held=min(held, len(sick), requested),
    )
    assert 0 <= found.free <= found.healthy <= capacity
    assert found.free <= max(0, found.allocatable - requested)
    assert found.without(1, named_sick=0).free >= found.free
