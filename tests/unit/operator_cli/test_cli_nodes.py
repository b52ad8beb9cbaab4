"""Nodes for pods that ask for no card by name, and what a plan makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.cli import nodes, plan_view
from imageedit_operator.cli.nodes import UNASKED, Nodes
from imageedit_operator.cli.reading_nodes import read
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.offer import Offer
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from unit.operator_cli.builders import NOW, resource
from unit.operator_shell.builders import MemoryKube, node, with_cards

NO_CARD: dict[str, Any] = {"resourceName": "", "device": "cpu", "nodeSelector": {"zone": "mars"}}
FORBIDDEN = ApiError(status=403, reason="Forbidden", message="no right")


def labelled(name: str, zone: str, **more: Any) -> dict[str, Any]:
    made = node(name, cards=0, **more)
    made["metadata"]["labels"] = {"zone": zone}
    return made


@pytest.mark.parametrize(
    ("found", "closed"),
    [
        ([], None),
        ([labelled("a", "mars")], None),
        ([labelled("a", "mars", unschedulable=True), labelled("b", "mars")], None),
        ([labelled("a", "moon")], Offer(nodes=1, unlabelled=1)),
        ([labelled("a", "moon"), labelled("b", "mars", unschedulable=True)], Offer(nodes=2, unlabelled=1, closed=1)),
        (
            [labelled("a", "mars", taints=[{"key": "team", "value": "lab", "effect": "NoSchedule"}])],
            Offer(nodes=1, repelled=1, taints=("team: lab",)),
        ),
    ],
)
async def test_nodes_are_counted_by_what_keeps_pods_without_cards_away(found: Any, closed: Offer | None) -> None:
    assert await read(with_cards(*found), parse(resource("b", accelerator=NO_CARD))) == Nodes(closed=closed)


async def test_nodes_are_not_asked_where_the_ledger_of_cards_tells_it() -> None:
    assert await read(MemoryKube(refuse={"list nodes": FORBIDDEN}), parse(resource("b"))) == UNASKED


@pytest.mark.parametrize(("selector", "said"), [({"zone": "mars"}, 1), ({}, 0)])
async def test_nodes_that_may_not_be_read_are_told_where_the_spec_asks_for_labels(selector: Any, said: int) -> None:
    wanting = parse(resource("b", accelerator={**NO_CARD, "nodeSelector": selector}))
    seen = await read(MemoryKube(refuse={"list nodes": FORBIDDEN}), wanting)
    assert len(nodes.assumed(wanting, seen)) == said


def test_a_plan_for_pods_that_no_node_takes_ends_there_and_warns() -> None:
    there = Nodes(closed=Offer(nodes=2, unlabelled=2))
    view = plan_view.build(None, resource("b", accelerator=NO_CARD), Observed(), now=NOW, there=there)
    assert view.outcome == "Unschedulable"
    assert [words.split(";")[0] for words in view.warnings] == [
        "no node takes these pods: of 2 nodes, 2 without the labels zone=mars"
    ]
