"""The card ledger: how many cards the nodes have, and how many are given out.

One snapshot of all nodes and pods serves every resource; it is read again after a few seconds.
What counts: nodes that are ready, schedulable and without a taint that our pods do not tolerate; on
them every pod that has a node and has not ended, foreign ones and terminating ones included, for
a card is free only when its pod is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.observed import CardLedger, Known, Unknown
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import NODES, PODS, Kube

FRESH_S = 3.0
COST_FACTOR = 20.0
"""A snapshot is kept for at least this many times what reading it took: large clusters are read less often."""
HOLDS_CARDS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

Raw = Mapping[str, Any]


@dataclass(kw_only=True, slots=True)
class NodeCards:
    """Extended resources of one node that our pods could use."""

    allocatable: dict[str, int]
    taints: frozenset[tuple[str, str]] = frozenset()
    """Key and effect of the taints that keep pods away."""
    requested: dict[str, int] = field(default_factory=dict)


def usable_node(node: Raw) -> bool:
    """True when the node takes new pods, taints apart."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])
    return ready and not spec.get("unschedulable", False)


def repelling_taints(node: Raw) -> frozenset[tuple[str, str]]:
    """Key and effect of the taints that keep pods away which do not tolerate them."""
    taints = (node.get("spec") or {}).get("taints") or []
    return frozenset((t["key"], t["effect"]) for t in taints if t.get("effect") in {"NoSchedule", "NoExecute"})


def extended(quantities: Raw | None) -> dict[str, int]:
    """The extended resources (`domain/name`) in a map of quantities; they are always whole numbers."""
    found: dict[str, int] = {}
    for name, text in (quantities or {}).items():
        if "/" not in name or "kubernetes.io/" in name:
            continue
        try:
            found[name] = _whole(str(text))
        except ValueError:
            continue  # not a count, so not a card
    return found


def requested_by(pod: Raw) -> dict[str, int]:
    """Extended resources that the pod holds: its containers together, or its largest init container."""
    spec = pod.get("spec") or {}
    total: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(total, _requests(container))
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":  # a sidecar runs beside the containers
            _add(total, _requests(container))
    for container in spec.get("initContainers") or []:
        for name, count in _requests(container).items():
            total[name] = max(total.get(name, 0), count)
    return total


def ledger(nodes: Iterable[NodeCards], *, resource: str, count: int) -> CardLedger:
    """Cards of one kind; what is left on a node beyond whole sets of `count` is not free for a pod.

    Our pods tolerate one taint: NoSchedule with the resource's name, by which card nodes are often reserved.
    """
    allocatable = free = 0
    for node in nodes:
        if node.taints - {(resource, "NoSchedule")}:
            continue
        has = node.allocatable.get(resource, 0)
        allocatable += has
        free += max(0, has - node.requested.get(resource, 0)) // count * count
    return CardLedger(allocatable=allocatable, requested=allocatable - free)


class CardBook:
    """The shared snapshot; `clock` is monotonic, in seconds."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._fresh_s = FRESH_S
        self._nodes: list[NodeCards] | Unknown = Unknown(reason="NotAsked", message="nodes were not read")

    async def read(self, *, resource: str, count: int) -> Known[CardLedger] | Unknown:
        """The ledger of one resource name, from a snapshot of a few seconds at most; never raises ApiError."""
        async with self._lock:
            if self._clock() - self._read_at >= self._fresh_s:
                await self._refresh()
            if isinstance(self._nodes, Unknown):
                return self._nodes
            age_s = self._clock() - self._read_at
            return Known(value=ledger(self._nodes, resource=resource, count=count), age_s=age_s)

    def forget(self) -> None:
        """Something that gives or takes cards was just written: read again at the next question."""
        self._read_at = float("-inf")

    async def _refresh(self) -> None:
        started = self._clock()
        try:
            self._nodes = await self._snapshot()
        except ApiError as error:
            reason = "Forbidden" if error.forbidden else "ApiError"
            hint = "; grant the operator list on nodes and pods in all namespaces" if error.forbidden else ""
            self._nodes = Unknown(reason=reason, message=f"cards are not known: {error.message}{hint}")
        self._read_at = self._clock()
        self._fresh_s = max(FRESH_S, COST_FACTOR * (self._read_at - started))

    async def _snapshot(self) -> list[NodeCards]:
        nodes: dict[str, NodeCards] = {}
        async for page in self._kube.pages(NODES):
            for node in page:
                cards = extended((node.get("status") or {}).get("allocatable"))
                if cards and usable_node(node):
                    nodes[node["metadata"]["name"]] = NodeCards(allocatable=cards, taints=repelling_taints(node))
        if nodes:
            async for page in self._kube.pages(PODS, fields=HOLDS_CARDS):
                for pod in page:
                    node_cards = nodes.get(pod["spec"].get("nodeName", ""))
                    if node_cards is not None:
                        _add(node_cards.requested, requested_by(pod))
        return list(nodes.values())


def _requests(container: Raw) -> dict[str, int]:
    resources = container.get("resources") or {}
    return extended(resources.get("limits")) | extended(resources.get("requests"))


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


def _whole(text: str) -> int:
    for suffix, factor in (("k", 1000), ("M", 1_000_000)):
        if text.endswith(suffix):
            return int(text[:-1]) * factor
    return int(text)
