"""What lies under the pods of a resource and no version of its own objects tells of.

A device plugin that calls a card sick, or a node that joins, touches neither the resource nor a child of it. So what
one look found is kept, and compared with what the shared snapshot of the nodes shows later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger, SickNode

Health: TypeAlias = tuple[frozenset[str], int, int, bool]
"""The cards that are named sick, the node's capacity, what it offers of that, and whether pods hold more than that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What one look found."""

    near: frozenset[str]
    """Nodes of the resource's pods."""
    sick: Mapping[str, Health] | None
    """Of those with sick cards among them, by name; None while nobody knows."""
    nodes: Mapping[str, str] | None
    """Nodes that copies of the model are made for, uid by name; None where none are, or nobody knows."""


def found(
    cards: Known[CardLedger] | Unknown, nodes: Known[Mapping[str, str]] | Unknown, *, near: Collection[str]
) -> Ground:
    """What a look found for pods on the nodes `near`."""
    sick = cards.value.sick_nodes if isinstance(cards, Known) else None
    return Ground(
        near=frozenset(near),
        sick=None if sick is None else {name: _health(node) for name, node in sick.items() if name in near},
        nodes=nodes.value if isinstance(nodes, Known) else None,
    )


def _health(node: SickNode) -> Health:
    short = node.allocatable < min(node.requested, node.capacity)
    return frozenset(node.sick), node.capacity, node.allocatable, short


# | at the last look                    | now                      | a look is needed |
# | the cards were known, or not        | they are not known       | no               |
# | the cards were not known            | they are                 | yes              |
# | its nodes had these sick cards      | the same                 | no               |
# | its nodes had these sick cards      | others, more, or fewer   | yes              |
# | copies were made for these nodes    | the same, or not known   | no               |
# | copies were made for these nodes    | others                   | yes              |
# | no copies were made                 | any nodes                | no               |
def is_news(before: Ground, now: Ground) -> bool:
    """Whether a resource should be looked at for what changed under its pods."""
    if now.sick is not None and now.sick != before.sick:
        return True
    return before.nodes is not None and now.nodes is not None and now.nodes != before.nodes
