"""One node with cards, played over the API: it places pods, runs them and lets them go, like scheduler and kubelet.

Each test has a node and a card type of its own, so that tests do not take each other's cards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from apiserver.operator_pods import Server, serving
from faults.invariants import condition
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import NODES, PODS, KubeClient, Resource
from imageedit_operator.kube.parsing import WARM_GATE, timestamp

TURN_S = 0.1
WARMUP_S = 0.3
REVISION = "imageedit.dev/revision"

Raw = Mapping[str, Any]


def _subresource(name: str, kind: str) -> Resource:
    return Resource(group="", version="v1", plural=f"pods/{name}/{kind}")


@dataclass(kw_only=True)
class Node:
    """The node of one namespace."""

    kube: KubeClient
    namespace: str
    card: str
    cards: int
    stack: AsyncExitStack
    servers: dict[str, Server] = field(default_factory=dict)
    """By the pod's uid."""
    since: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's name."""
        return f"node-{self.namespace}"

    async def register(self) -> None:
        """The Node object, ready and without taints."""
        await self.kube.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}})
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "100", self.card: str(self.cards)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await self.kube.patch(NODES, "", self.name, {"status": status}, subresource="status")
        await self.kube.patch(NODES, "", self.name, {"spec": {"taints": None}})

    async def turn(self) -> None:
        """Every pod goes one step further."""
        pods = await self.kube.list_all(PODS, self.namespace)
        held = sum(1 for pod in pods if pod["spec"].get("nodeName"))
        for pod in pods:
            if "deletionTimestamp" in pod["metadata"]:
                await self._let_go(pod)
            elif not pod["spec"].get("nodeName"):
                if held < self.cards:
                    held += 1
                    await self._bind(pod)
                elif not condition(pod, "PodScheduled"):
                    await self._refuse(pod)
            else:
                await self._run(pod)

    async def _bind(self, pod: Raw) -> None:
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": self.name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.kube.create(_subresource(name, "binding"), self.namespace, binding)

    async def _refuse(self, pod: Raw) -> None:
        why = _condition("PodScheduled", "False") | {"reason": "Unschedulable", "message": f"no {self.card}"}
        await self._report(pod, {"conditions": [why]})

    async def _run(self, pod: Raw) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self.servers:
            server = await self.stack.enter_async_context(serving(pod["metadata"]["labels"][REVISION]))
            server.warm = False
            self.servers[uid], self.since[uid] = server, asyncio.get_running_loop().time()
            await self._report(pod, _running(uid, server.ip))
        self.servers[uid].warm = asyncio.get_running_loop().time() - self.since[uid] > WARMUP_S
        wanted = "True" if condition(pod, WARM_GATE) == "True" else "False"
        if condition(pod, "Ready") != wanted:
            await self._report(pod, {"conditions": [_condition("Ready", wanted)]})

    async def _let_go(self, pod: Raw) -> None:
        """A pod with a node has a grace period, which only a kubelet, or an eviction without grace, ends."""
        name = pod["metadata"]["name"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
        await self.kube.create(_subresource(name, "eviction"), self.namespace, eviction)

    async def _report(self, pod: Raw, status: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self.kube.patch(PODS, self.namespace, name, body, strategic=True, subresource="status")


def _running(uid: str, ip: str) -> dict[str, Any]:
    container = {
        "name": "server",
        "image": "server:1",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{uid}",
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
async def node(kube: KubeClient, namespace: str, *, cards: int) -> AsyncIterator[Node]:
    """A node with that many cards of its own type, for as long as the context lasts."""
    async with AsyncExitStack() as stack:
        played = Node(kube=kube, namespace=namespace, card=f"cards.test/{namespace}", cards=cards, stack=stack)
        await played.register()

        async def live() -> None:
            while True:
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
            living.cancel()
            await asyncio.wait({living})
            if not living.cancelled():
                living.result()
