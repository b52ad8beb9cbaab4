"""A thousand resources of one pod each, and as many bare Deployments: one container with a card, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from bench.figures import AT_MOST, Figure
from bench.operator.world import AT_ONCE, World, each
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, Resource
from localcluster.addresses import RESOURCE_NAME

LOOK_S = 0.5
TELL_S = 15.0
LONGEST_S = 300.0
"""Of each of the two: what is not ready by then is no figure, and the run goes on to what does not need it."""
NAMESPACES = Resource(group="", version="v1", plural="namespaces", namespaced=False)
PER_NAMESPACE = 50
Place: TypeAlias = tuple[str, str]
"""Namespace and name."""
HOW = f"from the first create, {AT_ONCE} at a time, until all are seen ready; {PER_NAMESPACE} to a namespace"
SPEC = {
    "model": {"name": "m", "revision": "1", "source": {"demo": {}}},
    "server": {"image": "server:1", "sizes": ["768x768"]},
    "accelerator": {"device": "npu", "resourceName": RESOURCE_NAME, "count": 1},
    "replicas": 1,
}


def resource(name: str) -> Manifest:
    """One of them; all have the same revision."""
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name},
        "spec": SPEC,
    }


HASH = revision_hash(parse(resource("any") | {"metadata": {"name": "any", "namespace": "any", "uid": "any"}}))


def deployment(name: str) -> Manifest:
    """The least that starts a pod with a card: a tenth of the size of ours, and no gate, Service, budget or status."""
    container = {"name": "server", "image": "server:1", "resources": {"limits": {RESOURCE_NAME: "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def is_ready(item: Mapping[str, Any]) -> bool:
    """The condition Ready of a resource."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_available(item: Mapping[str, Any]) -> bool:
    """All pods of a Deployment are ready."""
    return bool((item.get("status") or {}).get("readyReplicas") == item["spec"]["replicas"])


def places(prefix: str, count: int) -> list[Place]:
    """Namespace and name of each, fifty to a namespace."""
    return [(f"{prefix}-{number // PER_NAMESPACE}", f"{prefix}-{number}") for number in range(count)]


async def ready_s(
    world: World,
    kind: Resource,
    where: list[Place],
    *,
    create: Callable[[Place], Awaitable[None]],
    done: Callable[[Mapping[str, Any]], bool],
    tell: Callable[[str], None],
    named: Callable[[str], str] = str,
) -> float | None:
    """Seconds from the first create until all of them are seen done; None when they are not in time.

    What is seen is of that `kind`, and `named` after the place where it is created.
    """
    for namespace in sorted({place[0] for place in where}):
        await world.kube.create(
            NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
    began_s = time.monotonic()
    await each(where, create)
    waiting = {(namespace, named(name)) for namespace, name in where}
    while waiting:
        await _one_done(world, kind, max(waiting), done)
        found = await world.kube.list_all(kind)
        waiting -= {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found if done(item)}
        seconds = time.monotonic() - began_s
        tell(f"{len(where) - len(waiting)} of {len(where)} after {seconds:.0f} s")
        if waiting and seconds > LONGEST_S:
            return None
    return seconds


async def _one_done(world: World, kind: Resource, place: Place, done: Callable[[Mapping[str, Any]], bool]) -> None:
    """Until one is done, or for TELL_S: to list a thousand each second would be most of the load."""
    for _ in range(int(TELL_S / LOOK_S)):
        if done(await world.kube.get(kind, *place)):
            return
        await asyncio.sleep(LOOK_S)


async def deployments_s(world: World, count: int, tell: Callable[[str], None]) -> float | None:
    """Bare Deployments."""

    async def create(place: Place) -> None:
        await world.kube.create(DEPLOYMENTS, place[0], deployment(place[1]))

    return await ready_s(world, DEPLOYMENTS, places("bare", count), create=create, done=is_available, tell=tell)


async def resources_s(world: World, count: int, tell: Callable[[str], None]) -> float | None:
    """Resources of ours."""

    async def create(place: Place) -> None:
        await world.kube.create(IMAGE_EDIT_DEPLOYMENTS, place[0], resource(place[1]))

    where = places("edit", count)
    return await ready_s(world, IMAGE_EDIT_DEPLOYMENTS, where, create=create, done=is_ready, tell=tell)


def start_figures(count: int, bare_s: float | None, ours_s: float | None) -> list[Figure]:
    """How long each took, and the one by the other; what was not reached is none and misses its target."""
    how = "one after the other, Deployments first; they stay while the resources start"
    ratio = None if ours_s is None or bare_s is None else round(ours_s / bare_s, 2)
    return [
        Figure(name=f"deployments_{count}_s", value=rounded(bare_s, 1), how=f"{HOW}, bare Deployments"),
        Figure(name=f"ready_{count}_s", value=rounded(ours_s, 1), how=f"{HOW}, resources"),
        Figure(
            name="ready_ratio",
            value=ratio,
            target=(AT_MOST, 2),
            how=how if ratio is not None else f"{how}; not all were ready within {LONGEST_S:.0f} s",
        ),
    ]


def rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
