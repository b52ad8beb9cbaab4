"""Two resources that want the same cards: who has none waits and says for whom, and nobody takes turns for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from apiserver.operator_plane import create_resource, eventually, new_namespace
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from faults.invariants import observed
from faults.node import condition, node
from imageedit_operator.core.stored import find
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, PODS
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL, WARM_GATE
from localcluster.controlplane import ControlPlane

SOON_S = 60.0
STILL_S = 8.0
NAMES = ("first", "second")


@dataclass(frozen=True, kw_only=True)
class Rivals:
    """Resources of one namespace that want the cards of one node."""

    kube: KubeClient
    namespace: str
    card: str

    async def create(self, name: str) -> None:
        """A resource of one pod with one card."""
        accelerator = {"device": "cpu", "resourceName": self.card, "count": 1}
        await create_resource(self.kube, self.namespace, name, accelerator=accelerator)

    async def change(self, name: str, **spec: Any) -> None:
        """A patch of its spec."""
        await self.kube.patch(IMAGE_EDIT_DEPLOYMENTS, self.namespace, name, {"spec": spec})

    async def roll(self, name: str) -> None:
        """To another revision."""
        await self.change(name, model={"revision": "next"})

    async def ready(self, name: str) -> None:
        """Waits until the resource, as it is now, is Ready."""

        async def look() -> bool | None:
            return True if await self.is_ready(name) else None

        await eventually(look, what=f"Ready of {name}", within_s=SOON_S)

    async def is_ready(self, name: str) -> bool:
        """Of the generation that is stored."""
        stored = await self.kube.get(IMAGE_EDIT_DEPLOYMENTS, self.namespace, name)
        status = stored.get("status") or {}
        current = status.get("observedGeneration") == stored["metadata"]["generation"]
        return bool(current and find(status, "Ready").get("status") == "True")

    async def waits(self, name: str, *, behind: str) -> None:
        """Waits until the resource says who holds the card."""
        words = f"which ImageEditDeployment {self.namespace}/{behind} holds"

        async def look() -> bool | None:
            found = find(await status_of(self.kube, self.namespace, name), "WaitingForCard")
            return True if found.get("status") == "True" and words in found["message"] else None

        await eventually(look, what=f"{name}: {words}", within_s=SOON_S)

    async def warm_pods(self) -> list[str]:
        """The uids of pods that serve."""
        pods = await self.kube.list_all(PODS, self.namespace)
        return sorted(pod["metadata"]["uid"] for pod in pods if condition(pod, WARM_GATE) == "True")


@asynccontextmanager
async def rivals(plane: ControlPlane, kube: KubeClient, *, cards: int) -> AsyncIterator[Rivals]:
    """A namespace with a node, served by an operator."""
    namespace = await new_namespace(kube)
    flags = ("--namespaces", namespace, "--leader-elect", "off", "--resync", "4")
    async with (
        node(kube, namespace, cards=cards) as played,
        observed(played, replicas=len(NAMES), resources=len(NAMES)) as observer,
        operator(plane.kubeconfig, *flags),
    ):
        observer.harmed = True  # who has no card has no Ready pod, and that is right
        yield Rivals(kube=kube, namespace=namespace, card=played.card)


async def test_who_waits_for_a_card_names_who_has_it_and_gets_it_when_that_one_stops(
    plane: ControlPlane, kube: KubeClient
) -> None:
    async with rivals(plane, kube, cards=1) as stage:
        await stage.create("first")
        await stage.ready("first")
        await stage.create("second")
        await stage.waits("second", behind="first")
        await stage.change("first", replicas=0)
        await stage.ready("second")
        await stage.change("first", replicas=1)
        await stage.waits("first", behind="second")
        stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, "second")
        await kube.delete(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, "second", uid=stored["metadata"]["uid"])
        await stage.ready("first")


async def test_two_rollouts_at_once_on_a_full_node_each_replace_one_pod_once(
    plane: ControlPlane, kube: KubeClient
) -> None:
    async with rivals(plane, kube, cards=2) as stage:
        for name in NAMES:
            await stage.create(name)
        for name in NAMES:
            await stage.ready(name)
        most: Counter[str] = Counter()
        seen: set[str] = set()

        over = asyncio.Event()

        async def count() -> None:
            while not over.is_set():
                pods = await kube.list_all(PODS, stage.namespace)
                seen.update(pod["metadata"]["uid"] for pod in pods)
                for name, number in Counter(pod["metadata"]["labels"][DEPLOYMENT_LABEL] for pod in pods).items():
                    most[name] = max(most[name], number)
                await asyncio.sleep(0.1)

        counting = asyncio.create_task(count())
        await asyncio.gather(*(stage.roll(name) for name in NAMES))
        for name in NAMES:
            await stage.ready(name)
        await asyncio.sleep(STILL_S)
        over.set()
        await counting
        assert max(most.values()) == 2, f"one pod and its one replacement: {most}"
        assert len(seen) == 4, "each resource replaces its one pod once"


async def test_two_rollouts_at_once_on_one_card_end_with_one_that_serves_and_one_that_waits(
    plane: ControlPlane, kube: KubeClient
) -> None:
    async with rivals(plane, kube, cards=1) as stage:
        await stage.create("first")
        await stage.ready("first")
        await stage.create("second")
        await stage.waits("second", behind="first")
        await asyncio.gather(*(stage.roll(name) for name in NAMES))

        async def settled() -> str | None:
            ready = [name for name in NAMES if await stage.is_ready(name)]
            return ready[0] if len(ready) == 1 else None

        winner = await eventually(settled, what="one that serves", within_s=SOON_S)
        loser = "second" if winner == "first" else "first"
        await stage.waits(loser, behind=winner)
        before = await stage.warm_pods()
        await asyncio.sleep(STILL_S)
        assert await stage.warm_pods() == before, "the card changes hands for ever"
        await stage.change(winner, replicas=0)
        await stage.ready(loser)
