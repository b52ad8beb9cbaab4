"""What a pod without a place lacks, row by row, in words that kube-scheduler 1.34 gives."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.unplaced import could_get_room, lacks_card, volume_words
from unit.operator_core.builders import CARD, pending_pod

NOT_HELPFUL = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
NO_CARD = f"0/1 nodes are available: 1 Insufficient {CARD}. no new claims to deallocate, {NO_VICTIMS}"
MORE_THAN_ANY_NODE = f"0/1 nodes are available: 1 Insufficient {CARD}. no new claims to deallocate, {NOT_HELPFUL}"
NO_MEMORY = f"0/1 nodes are available: 1 Insufficient memory. {NO_VICTIMS}"
OTHER_LABELS = f"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}"
TAINT = f"0/1 nodes are available: 1 node(s) had untolerated taint {{{CARD}: true}}. {NOT_HELPFUL}"
NO_CLAIM = f'0/1 nodes are available: persistentvolumeclaim "models" not found. {NOT_HELPFUL}'
UNBOUND = f"0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. {NOT_HELPFUL}"
ELSEWHERE = f"0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity. {NOT_HELPFUL}"
SOME_HELPED = (
    "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: 0/3 nodes are available: "
    "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
)


@pytest.mark.parametrize(
    ("changes", "none_free", "lacks"),
    [
        ({"unschedulable": False}, True, False),
        ({"node": "node-1"}, True, False),
        ({"unschedulable_message": NO_CARD}, False, True),
        ({"unschedulable_message": f"Insufficient {CARD}"}, False, True),
        ({"unschedulable_message": f"0/2 nodes are available: 1 Insufficient {CARD}, 1 Too many pods."}, False, True),
        ({"unschedulable_message": f"0/1 nodes are available: 1 Insufficient {CARD}B."}, True, False),
        ({"unschedulable_message": f"0/1 nodes are available: 1 Insufficient {CARD}.shared."}, True, False),
        ({"unschedulable_message": TAINT}, True, False),
        ({"unschedulable_message": NO_MEMORY}, True, False),
        ({"unschedulable_message": NO_CLAIM}, True, False),
        ({"unschedulable_message": ""}, True, True),
        ({"unschedulable_message": ""}, False, False),
    ],
)
def test_a_card_is_missing_where_the_scheduler_or_the_count_of_cards_says_so(
    changes: dict[str, Any], none_free: bool, lacks: bool
) -> None:
    assert lacks_card(pending_pod(**changes), CARD, none_free=none_free) is lacks


def test_a_pod_that_asks_for_no_card_lacks_none() -> None:
    assert not lacks_card(pending_pod(unschedulable_message=NO_MEMORY), "", none_free=True)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (NO_CLAIM, 'persistentvolumeclaim "models" not found'),
        (
            '0/2 nodes are available: persistentvolumeclaim "m" is being deleted.',
            'persistentvolumeclaim "m" is being deleted',
        ),
        (
            '0/2 nodes are available: persistentvolumeclaim "m" bound to non-existent persistentvolume "pv".',
            'persistentvolumeclaim "m" bound to non-existent persistentvolume "pv"',
        ),
        (UNBOUND, "pod has unbound immediate PersistentVolumeClaims (cache, models)"),
        (
            "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.",
            "node(s) didn't find available persistent volumes to bind (cache, models)",
        ),
        (ELSEWHERE, ""),
        (NO_CARD, ""),
        ("", ""),
    ],
)
def test_claims_without_a_volume_are_told_without_counts_of_nodes(message: str, words: str) -> None:
    assert volume_words(pending_pod(unschedulable_message=message, claims=("cache", "models"))) == words


@pytest.mark.parametrize("changes", [{"node": "node-1"}, {"unschedulable": False}])
def test_a_pod_that_has_a_place_or_was_not_looked_at_lacks_no_volume(changes: dict[str, Any]) -> None:
    assert volume_words(pending_pod(unschedulable_message=NO_CLAIM, **changes)) == ""


@pytest.mark.parametrize(
    ("message", "could"),
    [
        (NO_CARD, True),
        (NO_MEMORY, True),
        (SOME_HELPED, True),
        ("", True),
        ("words of another scheduler", True),
        (MORE_THAN_ANY_NODE, False),
        (OTHER_LABELS, False),
        (TAINT, False),
        (NO_CLAIM, False),
        (UNBOUND, False),
        ('persistentvolumeclaim "models" not found', False),
        (ELSEWHERE, False),
    ],
)
def test_a_pod_that_leaves_makes_room_unless_the_scheduler_rules_it_out(message: str, could: bool) -> None:
    assert could_get_room(pending_pod(unschedulable_message=message)) is could
