"""Nodes with cards, played over the API: they place pods, run them and let them go, like scheduler and kubelet.

Each test has nodes and a card type of its own, so that tests do not take each other's cards. Most need one node;
one that is lost does nothing any more, and its pods stay as they are.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from apiserver.operator_pods import Server, serving
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import NODES, PODS, Resource
from imageedit_operator.kube.parsing import WARM_GATE, timestamp

TURN_S = 0.1
WARMUP_S = 0.3
TERMINATION_S = 0.3
LIVES_ON_S = 2.0
"""How long the processes of a pod live on that vanished before its kubelet ended them."""
REVISION = "imageedit.dev/revision"

Raw = Mapping[str, Any]


def condition(pod: Raw, type_: str) -> str:
    """The value of a pod's condition; empty when it has none."""
    found = [c["status"] for c in pod.get("status", {}).get("conditions", []) if c["type"] == type_]
    return found[0] if found else ""


def _subresource(name: str, kind: str) -> Resource:
    return Resource(group="", version="v1", plural=f"pods/{name}/{kind}")


@dataclass(kw_only=True)
class Node:
    """The nodes of one namespace."""

    kube: KubeClient
    namespace: str
    card: str
    stack: AsyncExitStack
    cards: dict[str, int] = field(default_factory=dict)
    """Of each node, by its name."""
    lost: set[str] = field(default_factory=set)
    """Nodes whose kubelet is gone."""
    seen: list[Manifest] = field(default_factory=list)
    """The pods as they were a turn ago."""
    cold: set[str] = field(default_factory=set)
    """Uids of pods that do not become warm."""
    servers: dict[str, Server] = field(default_factory=dict)
    """By the pod's uid."""
    since: dict[str, float] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """The node of each pod that ever ran here, by its uid."""
    leaving: dict[str, float] = field(default_factory=dict)
    """Since when a pod is deleted, by its uid."""
    ended: dict[str, float] = field(default_factory=dict)
    """When the processes of a pod ended, by its uid."""

    def at_work(self, name: str) -> list[str]:
        """The uids of pods whose processes hold a card of this node now, whatever the API says of them."""
        now_s = asyncio.get_running_loop().time()
        return [uid for uid, place in self.places.items() if place == name and self.ended.get(uid, now_s + 1) > now_s]

    async def register(self, cards: int) -> str:
        """Another Node object, ready and without taints; its name."""
        name = f"node-{self.namespace}-{len(self.cards)}"
        await self.kube.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "100", self.card: str(cards)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await self.kube.patch(NODES, "", name, {"status": status}, subresource="status")
        await self.kube.patch(NODES, "", name, {"spec": {"taints": None}})
        self.cards[name] = cards
        return name

    async def lose(self, name: str) -> None:
        """Its kubelet is silent; what the node controller then writes: the node's and its pods' Ready."""
        self.lost.add(name)
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "played"}
        await self.kube.patch(NODES, "", name, {"status": {"conditions": [unknown]}}, subresource="status")
        for pod in await self.kube.list_all(PODS, self.namespace):
            if pod["spec"].get("nodeName") == name:
                self.servers[pod["metadata"]["uid"]].deaf = True
                await self._report(pod, {"conditions": [_condition("Ready", "False")]})

    async def remove(self, name: str) -> None:
        """The Node object of a lost node, and what the collector of pods then removes."""
        stored = await self.kube.get(NODES, "", name)
        await self.kube.delete(NODES, "", name, uid=stored["metadata"]["uid"])
        for pod in await self.kube.list_all(PODS, self.namespace):
            if pod["spec"].get("nodeName") == name:
                await self._let_go(pod)

    async def force_away(self, name: str, uid: str) -> None:
        """Takes the pod out of the API at once, whatever its processes do."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
        await self.kube.create(_subresource(name, "eviction"), self.namespace, eviction)

    async def restart(self, pod: Raw) -> None:
        """The server's container ended and began anew: with another id, and cold until the test says otherwise."""
        uid = pod["metadata"]["uid"]
        self.cold.add(uid)
        self.restarts[uid] = self.restarts.get(uid, 0) + 1
        self.servers[uid].warm, self.since[uid] = False, asyncio.get_running_loop().time()
        await self._report(pod, _running(uid, self.servers[uid].ip, restarts=self.restarts[uid]))

    async def turn(self) -> None:
        """Every pod goes one step further."""
        pods = await self.kube.list_all(PODS, self.namespace)
        self.seen = [pod for pod in pods if pod["metadata"]["uid"] in self.servers]
        self._outlive({pod["metadata"]["uid"] for pod in pods})
        held = Counter(pod["spec"].get("nodeName") for pod in pods)
        for pod in pods:
            place = pod["spec"].get("nodeName")
            if place in self.lost:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                leaves = self.leaving.setdefault(pod["metadata"]["uid"], asyncio.get_running_loop().time())
                if asyncio.get_running_loop().time() - leaves >= TERMINATION_S:
                    await self._let_go(pod)
            elif place:
                await self._run(pod)
            else:
                free = [name for name, cards in self.cards.items() if name not in self.lost and held[name] < cards]
                if free:
                    held[free[0]] += 1
                    await self._bind(pod, free[0])
                elif not condition(pod, "PodScheduled"):
                    await self._refuse(pod)

    def _outlive(self, stored: set[str]) -> None:
        """A pod that was deleted by force is gone from the API before its processes are gone from the card."""
        for uid in self.places.keys() - stored - self.ended.keys():
            self.ended[uid] = asyncio.get_running_loop().time() + LIVES_ON_S

    async def _bind(self, pod: Raw, node_name: str) -> None:
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.kube.create(_subresource(name, "binding"), self.namespace, binding)

    async def _refuse(self, pod: Raw) -> None:
        words = f"0/{len(self.cards)} nodes are available: {len(self.cards)} Insufficient {self.card}."
        why = _condition("PodScheduled", "False") | {"reason": "Unschedulable", "message": words}
        await self._report(pod, {"conditions": [why]})

    async def _run(self, pod: Raw) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self.servers:
            server = await self.stack.enter_async_context(serving(pod["metadata"]["labels"][REVISION]))
            server.warm = False
            self.servers[uid], self.since[uid] = server, asyncio.get_running_loop().time()
            self.places[uid] = pod["spec"]["nodeName"]
            await self._report(pod, _running(uid, server.ip))
        past_s = asyncio.get_running_loop().time() - self.since[uid]
        self.servers[uid].warm = past_s > WARMUP_S and uid not in self.cold
        wanted = "True" if condition(pod, WARM_GATE) == "True" and self.servers[uid].warm else "False"
        if condition(pod, "Ready") != wanted:
            await self._report(pod, {"conditions": [_condition("Ready", wanted)]})

    async def _let_go(self, pod: Raw) -> None:
        """A pod with a node has a grace period, which only a kubelet, or an eviction without grace, ends."""
        self.ended.setdefault(pod["metadata"]["uid"], asyncio.get_running_loop().time())
        await self.force_away(pod["metadata"]["name"], pod["metadata"]["uid"])

    async def _report(self, pod: Raw, status: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self.kube.patch(PODS, self.namespace, name, body, strategic=True, subresource="status")


def _running(uid: str, ip: str, *, restarts: int = 0) -> dict[str, Any]:
    container = {
        "name": "server",
        "image": "server:1",
        "imageID": "",
        "ready": True,
        "restartCount": restarts,
        "containerID": f"containerd://{uid}-{restarts}",
        "state": {"running": {"startedAt": "2026-11-30T03:00:00Z"}},
    }
    return {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "containerStatuses": [container],
        "conditions": [_condition("PodScheduled", "True"), _condition("Ready", "False")],
    }


def _condition(type_: str, status: str) -> dict[str, Any]:
    """As a kubelet writes it: rollouts read from the time for how long a pod finds no card."""
    return {"type": type_, "status": status, "lastTransitionTime": timestamp(time.time())}


@asynccontextmanager
async def node(kube: KubeClient, namespace: str, *, cards: int | Sequence[int]) -> AsyncIterator[Node]:
    """A node, or several, with that many cards of their own type, for as long as the context lasts."""
    async with AsyncExitStack() as stack:
        played = Node(kube=kube, namespace=namespace, card=f"cards.test/{namespace}", stack=stack)
        for count in (cards,) if isinstance(cards, int) else cards:
            await played.register(count)

        over = asyncio.Event()

        async def live() -> None:
            while not over.is_set():
                try:
                    await played.turn()
                except ApiError as error:
                    if not (error.conflict or error.not_found or error.status in {0, 429, 500}):
                        raise
                await asyncio.sleep(TURN_S)

        living = asyncio.create_task(live())
        try:
            yield played
        finally:
            over.set()  # a request that is cut off would leave its socket open when the test's loop ends
            await living
