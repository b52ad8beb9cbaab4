"""Whether a replacement needs the place of an old pod, row by row."""

from __future__ import annotations

import pytest

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.placement import budget_spent, free_pods, gives_way, is_blocked, may_be_placed
from unit.operator_core.builders import CARD, OLD, pending_pod, serving_pod, starting_pod

NOW = 1100.0
UNKNOWN = Unknown(reason="Forbidden", message="nodes may not be read")


NO_CLAIM = '0/1 nodes are available: persistentvolumeclaim "models" not found.'


def free(count: int) -> Known[CardLedger]:
    return Known(value=CardLedger(allocatable=8, requested=8 - count))


def waiting(since: float = NOW - 1) -> ObservedPod:
    return pending_pod("new-1", unschedulable_since=since)


@pytest.mark.parametrize(
    ("cards", "per", "expected"),
    [(free(3), 1, 3), (free(3), 2, 1), (free(0), 1, 0), (UNKNOWN, 1, None), (free(3), 0, None)],
)
def test_free_cards_count_in_pods(cards: Known[CardLedger] | Unknown, per: int, expected: int | None) -> None:
    assert free_pods(cards, per) == expected


@pytest.mark.parametrize(
    ("pod", "cards", "per", "expected"),
    [
        (starting_pod("n"), free(0), 1, False),
        (pending_pod("n", unschedulable=False), free(0), 1, False),
        (pending_pod("n", unschedulable_since=NOW - 999, unschedulable_message=NO_CLAIM), free(0), 1, False),
        (waiting(), free(0), 1, True),
        (waiting(), free(1), 1, False),
        (waiting(), free(1), 2, True),
        (waiting(NOW - 60), free(1), 1, True),
        (waiting(), UNKNOWN, 1, False),
        (waiting(NOW - 60), UNKNOWN, 1, True),
        (waiting(), free(0), 0, False),
        (waiting(NOW - 60), free(0), 0, True),
    ],
)
def test_a_replacement_is_blocked_by_the_table(
    pod: ObservedPod, cards: Known[CardLedger] | Unknown, per: int, expected: bool
) -> None:
    assert is_blocked([pod], cards_per_pod=per, cards=cards, stepped_at=0.0, now=NOW) is expected


def test_cards_that_other_resources_wait_for_count_only_where_asked() -> None:
    cards = Known(value=CardLedger(allocatable=8, requested=5, claimed=2))
    assert (free_pods(cards, 1), free_pods(cards, 1, claims=True)) == (3, 1)


def test_a_card_that_was_just_left_may_still_come_to_the_replacement() -> None:
    pod = waiting(NOW - 500)
    assert not is_blocked([pod], cards_per_pod=1, cards=free(1), stepped_at=NOW - 59, now=NOW)
    assert is_blocked([pod], cards_per_pod=1, cards=free(1), stepped_at=NOW - 60, now=NOW)


@pytest.mark.parametrize(
    ("cards", "resource_name", "expected"),
    [
        ({CARD: 1}, "", True),
        ({CARD: 1}, CARD, True),
        ({"huawei.com/npu": 1}, CARD, False),
        ({}, CARD, False),
        (None, CARD, True),
    ],
)
def test_an_old_pod_makes_room_only_with_the_card_that_is_asked_for(
    cards: dict[str, int] | None, resource_name: str, expected: bool
) -> None:
    assert gives_way([serving_pod(revision_hash=OLD, cards=cards)], resource_name=resource_name) is expected


@pytest.mark.parametrize(
    ("warm", "waited_s", "expected"),
    [(3, 0, False), (2, 59, True), (2, 60, False), (1, 119, True), (1, 120, False), (0, 59, True)],
)
def test_a_missing_pod_spends_the_budget_for_a_while(warm: int, waited_s: float, expected: bool) -> None:
    pods = [waiting(NOW - 900)]
    assert budget_spent(pods, warm=warm, wanted=3, stepped_at=NOW - waited_s, now=NOW) is expected


def test_no_budget_is_spent_while_nothing_waits_for_a_place() -> None:
    assert not budget_spent([starting_pod()], warm=1, wanted=3, stepped_at=NOW, now=NOW)


def test_a_replacement_without_a_known_time_is_blocked_after_the_grace_time_since_its_creation() -> None:
    def blocked(age_s: float) -> bool:
        pod = pending_pod("n", created_at=NOW - age_s)
        return is_blocked([pod], cards_per_pod=1, cards=free(1), stepped_at=0.0, now=NOW)

    assert not blocked(59)
    assert blocked(60)


@pytest.mark.parametrize(
    ("pods", "may"),
    [
        ([starting_pod()], True),
        ([waiting()], True),
        ([pending_pod(unschedulable=False)], True),
        ([pending_pod(unschedulable_message=NO_CLAIM)], False),
        ([pending_pod(unschedulable_message=NO_CLAIM), starting_pod()], True),
        ([], False),
    ],
)
def test_a_replacement_may_be_placed_unless_the_scheduler_rules_it_out(pods: list[ObservedPod], may: bool) -> None:
    assert may_be_placed(pods) is may


def test_the_place_of_a_pod_on_a_lost_node_makes_no_room() -> None:
    assert not gives_way([serving_pod(revision_hash=OLD, cards={CARD: 1}, lost=True)], resource_name=CARD)
