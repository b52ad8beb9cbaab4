"""A namespace with one resource, a node with cards and an observer; rollouts, and the state in which each must end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from apiserver.operator_plane import create_resource, eventually, new_namespace
from faults.clients import editing
from faults.invariants import CHECKS, Observer, observed
from faults.node import REVISION, Node, condition, node
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES
from imageedit_operator.kube.parsing import WARM_GATE

ROLLOUT_S = 240.0
NAME = "edit"
ENDS = "a rollout ends in the wanted state"

Raw = Mapping[str, Any]


@dataclass(kw_only=True)
class Scene:
    """Where one test plays."""

    kube: KubeClient
    namespace: str
    replicas: int
    node: Node
    observer: Observer

    def flags(self, *others: str) -> tuple[str, ...]:
        """An operator of this namespace that acts at once, and lists often."""
        return ("--namespaces", self.namespace, "--leader-elect", "off", "--resync", "4", *others)

    async def create(self, **spec: Any) -> None:
        """The resource, at its first revision."""
        spec["accelerator"] = {"device": "cpu", "resourceName": self.node.card, "count": 1}
        await create_resource(self.kube, self.namespace, NAME, replicas=self.replicas, **spec)

    async def roll(self, revision: str) -> None:
        """Asks for another revision."""
        body = {"spec": {"model": {"revision": revision}}}
        await self.kube.patch(IMAGE_EDIT_DEPLOYMENTS, self.namespace, NAME, body)

    async def complete(self) -> None:
        """Waits for the one state in which everything must end."""
        await self.complete_unless(lambda: False)

    async def complete_unless(self, cut_short: Callable[[], bool]) -> None:
        """The same, or for something that makes the wait pointless."""
        missing = ""

        async def look() -> bool | None:
            nonlocal missing
            missing = await self.missing()
            return True if not missing or cut_short() else None

        try:
            await eventually(look, within_s=ROLLOUT_S, what="the end of the rollout")
        except AssertionError as error:
            raise AssertionError(f"{error}: {missing}") from None
        CHECKS[ENDS] += 0 if missing else 1

    async def missing(self) -> str:
        """What still differs from the wanted state; empty = nothing."""
        resource = await self.kube.get(IMAGE_EDIT_DEPLOYMENTS, self.namespace, NAME)
        wanted = revision_hash(parse(resource))
        deployments = await self.kube.list_all(DEPLOYMENTS, self.namespace)
        asked = {d["metadata"]["labels"][REVISION]: d["spec"]["replicas"] for d in deployments}
        pods = await self.kube.list_all(PODS, self.namespace)
        services = [item["metadata"]["name"] for item in await self.kube.list_all(SERVICES, self.namespace)]
        facts = {
            "status": _status_tells(resource, wanted, self.replicas),
            "deployments": {hash_: count for hash_, count in asked.items() if count} == {wanted: self.replicas},
            "pods": len(pods) == self.replicas and all(_serves(pod, wanted) for pod in pods),
            "template": all(_has_template(pod, resource["spec"].get("template", {})) for pod in pods),
            "service": services == [NAME],
        }
        wrong = [name for name, right in facts.items() if not right]
        return f"{wrong}: {asked}, wanted {wanted}, {resource.get('status')}" if wrong else ""


def _status_tells(resource: Manifest, wanted: str, replicas: int) -> bool:
    status = resource.get("status") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    return (
        status.get("observedGeneration") == resource["metadata"]["generation"]
        and conditions.get("Ready") == "True"
        and status.get("currentRevision") == wanted
        and status.get("updatedReplicas") == status.get("readyReplicas") == replicas
    )


def _serves(pod: Raw, wanted: str) -> bool:
    return (
        pod["metadata"]["labels"][REVISION] == wanted
        and "deletionTimestamp" not in pod["metadata"]
        and condition(pod, WARM_GATE) == condition(pod, "Ready") == "True"
    )


def _has_template(pod: Raw, template: Raw) -> bool:
    """The labels stand for all of it: they were applied together, or not at all."""
    wanted = (template.get("metadata") or {}).get("labels") or {}
    return bool(wanted.items() <= pod["metadata"]["labels"].items())


@asynccontextmanager
async def scene(kube: KubeClient, *, replicas: int = 1, cards: int | Sequence[int] = 2) -> AsyncIterator[Scene]:
    """A fresh scene with clients, observed until it ends."""
    namespace = await new_namespace(kube)
    async with (
        node(kube, namespace, cards=cards) as played,
        observed(played, replicas=replicas) as observer,
        editing(played, observer),
    ):
        yield Scene(kube=kube, namespace=namespace, replicas=replicas, node=played, observer=observer)
