"""The card ledger: how many cards the nodes have, and how many are given out.

One snapshot of all nodes and pods serves every resource; it is read again after a few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.tolerations import Place
from imageedit_operator.core.unplaced import no_volume
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.card_names import held_cards
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import NODES, PODS
from imageedit_operator.kube.node_cards import (
    ANYWHERE,
    HOLDERS,
    Holder,
    NodeCards,
    holder,
    is_ready,
    ledger,
    repelling_taints,
    usable_node,
)
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL, why_unplaced
from imageedit_operator.kube.quantities import add, extended, requested_by

FRESH_S = 3.0
COST_FACTOR = 20.0
"""A snapshot is kept for at least this many times what reading it took: large clusters are read less often."""
WAITS_FOR_NODE = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
HOLDS_CARDS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class SickCards(Protocol):
    """Who names sick cards."""

    async def sick(self, nodes: Collection[str]) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """By node and resource name the sick cards with their reasons; never raises ApiError."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A server pod that has no node yet and will take the next cards; one whose claims have no volume takes none."""

    namespace: str
    deployment: str
    """Name of its ImageEditDeployment."""
    requested: Mapping[str, int]


class CardBook:
    """The shared snapshot; `clock` is monotonic, in seconds. Without `devices` nobody is asked which cards are sick."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float], devices: SickCards | None = None) -> None:
        self._kube = kube
        self._clock = clock
        self._devices = devices
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._cost_s = 0.0
        self._fresh_s = FRESH_S
        self._claims: list[Claim] = []
        self._nodes: list[NodeCards] | Unknown = Unknown(reason="NotAsked", message="nodes were not read")
        self._ready: frozenset[str] = frozenset()
        self._ledgers: dict[str, CardLedger] = {}
        """Counted from this snapshot; a thousand resources ask for few kinds of cards in few places."""

    async def read(
        self, *, resource: str, count: int, place: Place = ANYWHERE, asker: tuple[str, str] = ("", "")
    ) -> Known[CardLedger] | Unknown:
        """The ledger of one resource name, from a snapshot of a few seconds at most; never raises ApiError.

        `asker` is namespace and name of the ImageEditDeployment whose own waiting pods claim nothing from it.
        """
        async with self._lock:
            await self._refresh_if_old()
            if isinstance(self._nodes, Unknown):
                return self._nodes
            age_s = self._clock() - self._read_at
            claimed = sum(
                claim.requested.get(resource, 0)
                for claim in self._claims
                if (claim.namespace, claim.deployment) != asker
            )
            everybodys = self._ledger(self._nodes, resource=resource, count=count, place=place)
            own = {str(Holder(kind=kind, namespace=asker[0], name=asker[1])) for kind in HOLDERS}
            others = tuple(holder for holder in everybodys.holders if holder not in own)
            found = replace(everybodys, claimed=claimed, holders=others)
            return Known(value=found, age_s=age_s)

    def _ledger(self, nodes: Iterable[NodeCards], *, resource: str, count: int, place: Place) -> CardLedger:
        alike = repr((resource, count, place))
        if alike not in self._ledgers:
            self._ledgers[alike] = ledger(nodes, resource=resource, count=count, place=place, ready=self._ready)
        return self._ledgers[alike]

    async def nodes(self, *, resource: str, count: int, place: Place = ANYWHERE) -> Known[Mapping[str, str]] | Unknown:
        """The nodes that could ever run a pod with `count` cards, from the same snapshot: uid by name.

        Sick cards count: they come back, and a device plugin that starts anew takes all of them away for a moment.
        """
        async with self._lock:
            await self._refresh_if_old()
            if isinstance(self._nodes, Unknown):
                return self._nodes
            uids = {
                node.name: node.uid
                for node in self._nodes
                if (health := node.health(resource, place)).takes_pods and health.capacity >= count
            }
            return Known(value=uids, age_s=self._clock() - self._read_at)

    async def _refresh_if_old(self) -> None:
        if self._clock() - self._read_at >= self._fresh_s:
            await self._refresh()

    def forget(self) -> None:
        """Something that gives or takes cards was just written: the snapshot is old, whatever its age.

        It is still not read anew before its cost allows it: while a thousand resources start, each of their writes
        would read the whole cluster. That a card is taken meanwhile can happen with the freshest snapshot too.
        """
        self._fresh_s = self._cost_s * COST_FACTOR

    async def _refresh(self) -> None:
        started = self._clock()
        try:
            self._nodes = await self._snapshot()
            self._claims = await self._waiting() if self._nodes else []
        except ApiError as error:
            reason = "Forbidden" if error.forbidden else "ApiError"
            hint = "; grant the operator list on nodes and pods in all namespaces" if error.forbidden else ""
            self._nodes = Unknown(reason=reason, message=f"cards are not known: {error.message}{hint}")
        self._ledgers.clear()
        self._read_at = self._clock()
        self._cost_s = self._read_at - started
        self._fresh_s = max(FRESH_S, COST_FACTOR * self._cost_s)

    async def _snapshot(self) -> list[NodeCards]:
        nodes: dict[str, NodeCards] = {}
        ready: set[str] = set()
        async for page in self._kube.pages(NODES):
            for node in page:
                if is_ready(node):
                    ready.add(node["metadata"]["name"])
                status = node.get("status") or {}
                allocatable, capacity = extended(status.get("allocatable")), extended(status.get("capacity"))
                if any(allocatable.values()) or any(capacity.values()):
                    nodes[node["metadata"]["name"]] = NodeCards(
                        name=node["metadata"]["name"],
                        uid=node["metadata"].get("uid", ""),
                        allocatable=allocatable,
                        capacity=capacity,
                        usable=usable_node(node),
                        taints=repelling_taints(node),
                        labels=node["metadata"].get("labels") or {},
                    )
        if nodes:
            async for page in self._kube.pages(PODS, fields=HOLDS_CARDS):
                for pod in page:
                    node_cards = nodes.get(pod["spec"].get("nodeName", ""))
                    if node_cards is not None:
                        cards = requested_by(pod)
                        add(node_cards.requested, cards)
                        node_cards.held.update(held_cards(pod))
                        for name in cards:
                            node_cards.holders.setdefault(name, set()).add(holder(pod))
        if nodes and self._devices is not None:
            for name, sick in (await self._devices.sick(nodes.keys())).items():
                nodes[name].sick = sick
        self._ready = frozenset(ready)
        return list(nodes.values())

    async def _waiting(self) -> list[Claim]:
        return [
            Claim(
                namespace=pod["metadata"].get("namespace", ""),
                deployment=pod["metadata"]["labels"][DEPLOYMENT_LABEL],
                requested=requested_by(pod),
            )
            async for page in self._kube.pages(PODS, labels=DEPLOYMENT_LABEL, fields=WAITS_FOR_NODE)
            for pod in page
            if "deletionTimestamp" not in pod["metadata"] and not no_volume(why_unplaced(pod))
        ]
