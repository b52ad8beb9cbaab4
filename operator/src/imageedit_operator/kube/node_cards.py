"""The cards of one node, who holds them, and the sum over the nodes that a pod may land on. Pure.

What counts: nodes that are ready, schedulable and without a taint that our pods do not tolerate; on
them every pod that has a node and has not ended, foreign ones and terminating ones included, for
a card is free only when its pod is gone. Sick cards are not free, whoever calls them sick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.offer import Offer
from imageedit_operator.core.tolerations import Place, Taint
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL

ANYWHERE = Place()
"""Every node without a taint."""

Raw = Mapping[str, Any]
HOLDERS = ("ImageEditDeployment", "pod")


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """A pod that holds cards, or the ImageEditDeployment that it belongs to."""

    kind: str
    """One of HOLDERS."""
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(kw_only=True, slots=True)
class NodeCards:
    """Extended resources of one node."""

    name: str = ""
    allocatable: dict[str, int]
    uid: str = ""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """Empty = as many as are allocatable."""
    usable: bool = True
    """It takes new pods, taints apart."""
    taints: frozenset[Taint] = frozenset()
    """Those that keep pods away."""
    labels: Mapping[str, str] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Names of the cards that pods hold, as far as somebody says."""
    sick: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By resource name, the cards that the device plugin names as sick, with its words."""
    holders: dict[str, set[Holder]] = field(default_factory=dict)
    """Of each extended resource, who holds some of it."""

    def health(self, resource: str, place: Place) -> SickNode:
        """The node's cards of one name, for pods that may land in `place`."""
        allocatable = self.allocatable.get(resource, 0)
        sick = self.sick.get(resource, {})
        return SickNode(
            sick=sick,
            capacity=max(self.capacity.get(resource, 0), allocatable),
            allocatable=allocatable,
            requested=self.requested.get(resource, 0),
            sick_held=len(self.held & sick.keys()),
            takes_pods=self.usable and place.takes(labels=self.labels, taints=self.taints),
        )


def usable_node(node: Raw) -> bool:
    """True when the node takes new pods, taints apart."""
    return is_ready(node) and not (node.get("spec") or {}).get("unschedulable", False)


def is_ready(node: Raw) -> bool:
    """True when its kubelet reports, and reports well."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def holder(pod: Raw) -> Holder:
    """Who is to be named for the cards of this pod."""
    metadata = pod["metadata"]
    owner = (metadata.get("labels") or {}).get(DEPLOYMENT_LABEL)
    namespace = metadata.get("namespace", "")
    if owner:
        return Holder(kind="ImageEditDeployment", namespace=namespace, name=owner)
    return Holder(kind="pod", namespace=namespace, name=metadata["name"])


def repelling_taints(node: Raw) -> frozenset[Taint]:
    """The taints that keep pods away which do not tolerate them."""
    taints = (node.get("spec") or {}).get("taints") or []
    return frozenset(
        Taint(key=taint["key"], value=taint.get("value", ""), effect=taint["effect"])
        for taint in taints
        if taint.get("effect") in {"NoSchedule", "NoExecute"}
    )


def ledger(
    nodes: Iterable[NodeCards],
    *,
    resource: str,
    count: int,
    place: Place = ANYWHERE,
    ready: frozenset[str] | None = None,
) -> CardLedger:
    """Cards of one kind in a place; what is left on a node beyond whole sets of `count` is not free for a pod."""
    known = list(nodes)
    fits, allocatable, free = False, 0, 0
    sick: dict[str, SickNode] = {}
    holders: set[str] = set()
    for node in known:
        health = node.health(resource, place)
        if health.healthy < health.capacity:
            sick[node.name] = health
        if health.takes_pods:
            fits = fits or health.healthy >= count
            allocatable += health.healthy
            free += health.free // count * count
            holders |= {str(one) for one in node.holders.get(resource, ())}
    return CardLedger(
        allocatable=allocatable,
        offer=None if fits else _offer(known, resource=resource, count=count, place=place),
        requested=allocatable - free,
        sick_nodes=sick,
        holders=tuple(sorted(holders)),
        ready_nodes=ready,
    )


def offer_of_all(nodes: Iterable[Raw], place: Place) -> Offer | None:
    """What keeps pods that ask for no card off every node; None where one takes them, or the cluster has none yet."""
    known = [
        NodeCards(
            allocatable={},
            usable=usable_node(node),
            taints=repelling_taints(node),
            labels=node["metadata"].get("labels") or {},
        )
        for node in nodes
    ]
    found = _closed(known, place)
    return None if found.sick or not known else found


def _offer(nodes: Iterable[NodeCards], *, resource: str, count: int, place: Place) -> Offer:
    return _closed([node for node in nodes if node.health(resource, place).capacity >= count], place)


def _closed(able: Sequence[NodeCards], place: Place) -> Offer:
    """A node that several things close is counted for the first: its labels, its state, its taints."""
    chosen = [node for node in able if place.chooses(node.labels)]
    usable = [node for node in chosen if node.usable]
    repelling = [found for node in usable if (found := place.repelled_by(node.taints))]
    return Offer(
        nodes=len(able),
        unlabelled=len(able) - len(chosen),
        closed=len(chosen) - len(usable),
        repelled=len(repelling),
        taints=tuple(sorted({f"{taint.key}: {taint.value}" for taints in repelling for taint in taints})),
    )
