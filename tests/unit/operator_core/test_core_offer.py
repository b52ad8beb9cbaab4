"""Why no node that takes the pods has cards for them, row by row."""

from __future__ import annotations

import pytest

from imageedit_operator.core.offer import Offer, no_node, nowhere, reasons
from unit.operator_core.builders import CARD

LABELS = {"zone": "mars", "npu": "910b"}
TAINTS = ("a: ", "team: lab")
UNLABELLED = "without the labels npu=910b, zone=mars"
REPELLED = "with a taint that is not tolerated ({a: }, {team: lab})"
MIXED = Offer(nodes=9, unlabelled=1, closed=2, repelled=3, taints=TAINTS)


@pytest.mark.parametrize(
    ("offer", "why", "look"),
    [
        (Offer(nodes=2, unlabelled=2), f"2 nodes offer it, 2 {UNLABELLED}", "spec.accelerator.nodeSelector"),
        (Offer(nodes=1, repelled=1, taints=TAINTS), f"1 node offers it, 1 {REPELLED}", "spec.accelerator.tolerations"),
        (Offer(nodes=1, closed=1), "1 node offers it, 1 cordoned or not ready", "kubectl get nodes"),
        (Offer(nodes=3), "3 nodes offer it, 3 without a healthy card", "the cards of these nodes"),
        (
            MIXED,
            f"9 nodes offer it, 1 {UNLABELLED}, 3 {REPELLED}, 2 cordoned or not ready, 3 without a healthy card",
            "spec.accelerator.nodeSelector, spec.accelerator.tolerations, kubectl get nodes, the cards of these nodes",
        ),
    ],
)
def test_nodes_with_cards_are_counted_by_what_keeps_pods_away(offer: Offer, why: str, look: str) -> None:
    said = nowhere(offer, CARD, count=1, labels=LABELS, counted=True)
    assert said == f"no node that takes these pods offers {CARD}: {why}; look at {look}"


def test_of_a_taint_for_each_node_the_first_ones_are_named() -> None:
    offer = Offer(nodes=900, repelled=900, taints=tuple(f"dedicated: n{number:03}" for number in range(900)))
    said = nowhere(offer, CARD, count=1, labels={}, counted=False)
    assert "({dedicated: n000}, {dedicated: n001}, {dedicated: n002} and others)" in said


def test_a_cluster_without_such_cards_is_said_to_have_none() -> None:
    said = nowhere(Offer(), CARD, count=2, labels=LABELS, counted=True)
    assert said == f"no node offers 2 {CARD}; look at spec.accelerator.resourceName and count, and at the device plugin"


def test_a_condition_is_the_same_however_many_nodes_there_are() -> None:
    few, many = Offer(nodes=2, unlabelled=1, closed=1), Offer(nodes=80, unlabelled=75, closed=5)
    said = nowhere(few, CARD, count=1, labels=LABELS, counted=False)
    assert said == nowhere(many, CARD, count=1, labels=LABELS, counted=False)
    assert f"those that offer it are {UNLABELLED}, or cordoned or not ready; look at " in said


def test_pods_that_ask_for_no_card_are_told_of_all_nodes() -> None:
    assert no_node(Offer(nodes=3, unlabelled=2, closed=1), LABELS) == (
        f"no node takes these pods: of 3 nodes, 2 {UNLABELLED}, 1 cordoned or not ready; "
        "look at spec.accelerator.nodeSelector, kubectl get nodes"
    )


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        (Offer(), ()),
        (Offer(nodes=1), ()),
        (MIXED, ()),
        (Offer(nodes=1, unlabelled=1), ("node(s) didn't match Pod's node affinity/selector",)),
        (Offer(nodes=1, closed=1), ("node(s) were unschedulable",)),
        (
            Offer(nodes=2, repelled=2, taints=TAINTS),
            ("node(s) had untolerated taint {a: }", "node(s) had untolerated taint {team: lab}"),
        ),
    ],
)
def test_the_scheduler_is_foretold_to_name_what_keeps_pods_away(offer: Offer, said: tuple[str, ...]) -> None:
    assert reasons(offer) == said
