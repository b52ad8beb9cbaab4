"""What must hold at every moment, whatever fails; checked by an observer that knows nothing of the operator's plans."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from faults.node import Node, condition
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, PODS
from imageedit_operator.kube.parsing import WARM_GATE

LOOK_S = 0.15
CHECKS: Counter[str] = Counter()
"""How often each invariant was checked, over the whole run."""

NEVER_MORE = "no more replicas are asked for than wanted plus one"
NEVER_CROWDED = "no more pods than cards, and one that waits for the next"
NEVER_SHARED = "no card is held by the processes of two pods"
NEVER_ZERO = "a pod is Ready, once one was"
NEVER_OPEN = "a pod that goes was taken out of service before"
NEVER_LOST = "an edit that a server accepted is answered"

Raw = Mapping[str, Any]


@dataclass(kw_only=True)
class Observer:
    """Looks at one namespace with `replicas` pods in all, of one resource or of several."""

    kube: KubeClient
    namespace: str
    node: Node
    replicas: int
    resources: int = 1
    serving: bool = False
    """A pod was Ready once: from here on one always is."""
    harmed: bool = False
    """The test itself takes pods away, so what happens to them is not the operator's choice."""
    broken: list[str] = field(default_factory=list)

    async def look(self) -> None:
        """One snapshot of the pods and one of the Deployments."""
        pods = await self.kube.list_all(PODS, self.namespace)
        deployments = await self.kube.list_all(DEPLOYMENTS, self.namespace)
        self._never_more(deployments)
        self._never_crowded(pods)
        self._never_shared()
        if not self.harmed:
            self._never_zero(pods)
            self._never_open(pods)

    def _never_more(self, deployments: Sequence[Raw]) -> None:
        asked = sum(item["spec"]["replicas"] for item in deployments)
        self._check(NEVER_MORE, asked <= self.replicas + self.resources, f"{asked} replicas")

    def _never_crowded(self, pods: Sequence[Raw]) -> None:
        """Pods of a lost node are not counted, and neither are its cards."""
        cards = sum(count for name, count in self.node.cards.items() if name not in self.node.lost)
        here = [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") not in self.node.lost]
        self._check(NEVER_CROWDED, len(here) <= max(cards, self.replicas) + self.resources, f"{here} on {cards} cards")

    def _never_shared(self) -> None:
        for name, cards in self.node.cards.items():
            held = self.node.at_work(name)
            self._check(NEVER_SHARED, len(held) <= cards, f"{held} on the {cards} cards of {name}")

    def _never_zero(self, pods: Sequence[Raw]) -> None:
        ready = [pod for pod in pods if condition(pod, "Ready") == "True" and not _leaves(pod)]
        if self.serving:
            self._check(NEVER_ZERO, bool(ready), str([pod["metadata"]["name"] for pod in pods]))
        self.serving = self.serving or bool(ready)

    def _never_open(self, pods: Sequence[Raw]) -> None:
        for pod in pods:
            if _leaves(pod):
                self._check(NEVER_OPEN, condition(pod, WARM_GATE) != "True", pod["metadata"]["name"])

    def answered(self, uid: str, *, lives: bool) -> None:
        """An edit came to its end; `lives`: so did not the server that accepted it."""
        if not self.harmed:
            self._check(NEVER_LOST, lives, f"of the pod {uid}")

    def _check(self, name: str, holds: bool, seen: str) -> None:
        CHECKS[name] += 1
        if not holds:
            self.broken.append(f"{name}: {seen}")


def _leaves(pod: Raw) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@asynccontextmanager
async def observed(node: Node, *, replicas: int, resources: int = 1) -> AsyncIterator[Observer]:
    """An observer that looks all along; at the end the test fails when an invariant was broken."""
    observer = Observer(kube=node.kube, namespace=node.namespace, node=node, replicas=replicas, resources=resources)
    over = asyncio.Event()

    async def watch() -> None:
        while not over.is_set():
            try:
                await observer.look()
            except ApiError:
                continue  # the apiserver itself is under load; the next look counts
            finally:
                await asyncio.sleep(LOOK_S)

    watching = asyncio.create_task(watch())
    try:
        yield observer
    finally:
        over.set()
        await watching  # it looks to the end
    if observer.broken:
        raise AssertionError("\n".join(dict.fromkeys(observer.broken)))
