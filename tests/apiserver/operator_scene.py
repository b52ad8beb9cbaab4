"""An operator with a namespace and a played node, beside the real controllers that make and judge pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from apiserver.operator_plane import client, create_resource, eventually, install, new_namespace
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from faults.node import Node, node
from imageedit_operator.core.stored import find
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "horizontal-pod-autoscaler-controller",
)
NAME = "edit"
TWO_LISTS_S = 9.0
"""The operator of a scene lists every 4 s: what it fights over, it writes again by then."""


@pytest.fixture(scope="module")
def controlled() -> Iterator[ControlPlane]:
    """An apiserver with those controllers, which knows the custom resource."""
    with controlplane.up_only(with_controllers=CONTROLLERS) as started:
        install(started)
        yield started


@pytest.fixture
async def kube(controlled: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client as the admin."""
    async with client(controlled) as connected:
        yield connected


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Where one test plays."""

    kube: KubeClient
    namespace: str
    node: Node

    @property
    def flags(self) -> tuple[str, ...]:
        """An operator of this namespace that acts at once and lists often."""
        return ("--namespaces", self.namespace, "--leader-elect", "off", "--resync", "4")

    async def create(self, **spec: Any) -> None:
        """The resource; its pods ask for a card of the node."""
        accelerator = {"device": "cpu", "resourceName": self.node.card, "count": 1}
        await create_resource(self.kube, self.namespace, NAME, accelerator=accelerator, **spec)

    async def serving(self, count: int) -> list[str]:
        """Waits until so many pods serve; their names, sorted."""

        async def look() -> list[str] | None:
            ready = (await status_of(self.kube, self.namespace)).get("readyReplicas")
            pods = await self.kube.list_all(PODS, self.namespace)
            names = sorted(pod["metadata"]["name"] for pod in pods if _is_ready(pod))
            return names if ready == count == len(names) else None

        return await eventually(look, what=f"{count} pods that serve")

    async def condition(self, kind: str, reason: str) -> dict[str, Any]:
        """Waits until the condition has this reason."""

        async def look() -> dict[str, Any] | None:
            found = find(await status_of(self.kube, self.namespace), kind)
            return dict(found) if found.get("reason") == reason else None

        return await eventually(look, what=f"{kind} {reason}")


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return (
        "deletionTimestamp" not in pod["metadata"] and find({"conditions": conditions}, "Ready").get("status") == "True"
    )


@asynccontextmanager
async def stage(kube: KubeClient, *, cards: int = 3) -> AsyncIterator[Scene]:
    """A fresh namespace and a node with that many cards, without an operator."""
    namespace = await new_namespace(kube)
    async with node(kube, namespace, cards=cards) as played:
        yield Scene(kube=kube, namespace=namespace, node=played)


@asynccontextmanager
async def scene(plane: ControlPlane, kube: KubeClient, *, cards: int = 3) -> AsyncIterator[Scene]:
    """The same with an operator of its own."""
    async with stage(kube, cards=cards) as here, operator(plane.kubeconfig, *here.flags):
        yield here
