"""Rollouts of real servers under load: with two cards for two pods, with a free card, and with the only card taken."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable

from apiserver.operator_plane import create_resource, eventually, new_namespace
from apiserver.operator_process import operator
from bench.figures import AT_LEAST, AT_MOST, Figure
from bench.operator.clients import SLICES, editing
from bench.operator.kubelet import Kubelet, kubelet
from bench.operator.world import World
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from localcluster.addresses import RESOURCE_NAME

FLAGS = ("--http-port", "18080", "--leader-elect", "off")
EDIT_S = 0.05
LONGEST_S = 240.0
CLIENTS = 4
NAME = "edit"


async def rollout_lost(world: World, *, least: int) -> AsyncIterator[Figure]:
    """Two rollouts, each with its share of the requests."""
    flags = ("--stub-edit-seconds", str(EDIT_S))
    fates: Counter[str] = Counter()
    async with (
        operator(world.operator_kubeconfig, *FLAGS),
        kubelet(world.kube, world.plane.logs, cards=2, flags=flags) as node,
    ):
        for replicas in (2, 1):
            fates += await _roll_under_load(world, replicas=replicas, least=least // 2)
            await _gone(world, node)
    lost = {fate: count for fate, count in fates.items() if fate.startswith("lost")}
    yield Figure(
        name="rollout_lost",
        value=sum(lost.values()),
        target=(AT_MOST, 0),
        how=f"real servers with an engine of {EDIT_S:g} s as pods, {CLIENTS} clients by EndpointSlices, a rollout of 2 "
        f"pods on 2 cards and one of 1 pod with 1 free card; {fates['answered']} answered, {fates['refused']} refused"
        + (f"; {lost}" if lost else ""),
    )
    yield Figure(
        name="rollout_requests",
        value=float(fates["answered"]),
        target=(AT_LEAST, least),
        how="answered in these rollouts",
    )


async def single_card_outage(world: World, *, load_s: float) -> Figure:
    """One pod on the only card: from its leaving the EndpointSlice until the new one is in it."""
    flags = ("--stub-edit-seconds", str(EDIT_S), "--stub-load-seconds", str(load_s), "--drain-propagation", "1")
    async with (
        operator(world.operator_kubeconfig, *FLAGS),
        kubelet(world.kube, world.plane.logs, cards=1, flags=flags) as node,
    ):
        namespace = await _complete(world, replicas=1)
        await _roll(world, namespace)
        left_s = await _when(world, namespace, lambda ready: ready == 0)
        back_s = await _when(world, namespace, lambda ready: ready == 1)
        await _ready(world, namespace)
        status = (await world.kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, NAME))["status"]
        warmup_s = float(status["warmup"]["lastSeconds"])
        await _gone(world, node)
    outage_s = back_s - left_s
    return Figure(
        name="single_card_outage_ratio",
        value=round(outage_s / warmup_s, 3),
        target=(AT_MOST, 1.1),
        how=f"{outage_s:.1f} s without a ready endpoint by {warmup_s:.1f} s of load and warm-up that the pod reports, "
        f"{load_s:g} s of it made by the engine for tests",
    )


async def _roll_under_load(world: World, *, replicas: int, least: int) -> Counter[str]:
    namespace = await _complete(world, replicas=replicas)
    async with editing(world.kube, namespace, NAME, count=CLIENTS) as clients:
        await _answers(clients.fates, least // 4)
        await _roll(world, namespace)
        await _ready(world, namespace)
        await _answers(clients.fates, least)
    return clients.fates


async def _answers(fates: Counter[str], count: int) -> None:
    async def look() -> bool | None:
        return True if fates["answered"] >= count else None

    await eventually(look, what=f"{count} answers, {dict(fates)}", within_s=LONGEST_S)


async def _complete(world: World, *, replicas: int) -> str:
    """A namespace with a resource whose pods serve."""
    namespace = await new_namespace(world.kube)
    accelerator = {"device": "cpu", "resourceName": RESOURCE_NAME, "count": 1}
    await create_resource(world.kube, namespace, NAME, replicas=replicas, accelerator=accelerator)
    await _ready(world, namespace)
    return namespace


async def _roll(world: World, namespace: str) -> None:
    await world.kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, NAME, {"spec": {"model": {"revision": "2"}}})


async def _ready(world: World, namespace: str) -> None:
    """Until the status says that all is of the revision that the spec asks for."""

    async def look() -> bool | None:
        item = await world.kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, NAME)
        status = item.get("status") or {}
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
        seen = status.get("observedGeneration") == item["metadata"]["generation"]
        return True if ready and seen and status.get("currentRevision") == revision_hash(parse(item)) else None

    await eventually(look, what="Ready", within_s=LONGEST_S)


async def _when(world: World, namespace: str, holds: Callable[[int], bool]) -> float:
    """The moment from which on the number of ready endpoints is as asked."""

    async def look() -> float | None:
        slices = await world.kube.list_all(SLICES, namespace)
        ready = [
            endpoint
            for one in slices
            for endpoint in one.get("endpoints") or []
            if endpoint.get("conditions", {}).get("ready")
        ]
        return time.monotonic() if holds(len(ready)) else None

    return await eventually(look, what="endpoints", within_s=LONGEST_S)


async def _gone(world: World, node: Kubelet) -> None:
    """Deletes the resources and waits until their pods are gone, so that the cards are free again."""
    for item in await world.kube.list_all(IMAGE_EDIT_DEPLOYMENTS):
        metadata = item["metadata"]
        await world.kube.delete(IMAGE_EDIT_DEPLOYMENTS, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    async def look() -> bool | None:
        return True if all(process.returncode is not None for process in node.running.values()) else None

    await eventually(look, what="the end of all servers", within_s=LONGEST_S)
