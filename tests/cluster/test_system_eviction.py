"""Nodes are drained under load: what an evicted pod accepted is answered, and the drain comes to an end."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.kubectl import CommandFailed, Kubectl
from support.load import Tally
from support.resources import Resource
from support.watching import PodWatch

pytestmark = pytest.mark.timeout(300)
DRAIN_S = 150.0


def evict(kubectl: Kubectl, namespace: str, pod: str) -> bool:
    """Asks the eviction API once; False when the budget says to try again later."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    try:
        kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
    except CommandFailed as error:
        if "disruption budget" not in str(error):
            raise
        return False
    return True


def test_pods_are_evicted_one_after_the_other_and_no_request_is_lost(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=2)
    resource.wait_complete()
    first, second = sorted(pod["metadata"]["name"] for pod in resource.pods())

    async def evict_both() -> Tally:
        async with resource.load(clients=4) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 4)
            await asyncio.to_thread(
                resource.wait_until, "the first eviction", lambda: evict(kubectl, resource.namespace, first)
            )
            assert not evict(kubectl, resource.namespace, second)
            await asyncio.to_thread(
                resource.wait_until, "the second eviction", lambda: evict(kubectl, resource.namespace, second)
            )
            gone = lambda: {first, second}.isdisjoint(pod["metadata"]["name"] for pod in resource.pods())  # noqa: E731
            await asyncio.to_thread(resource.wait_until, "both to leave", gone)
            await asyncio.to_thread(resource.wait_complete)
            answered = load.tally.answered
            await asyncio.to_thread(
                resource.wait_until, "answers of others", lambda: load.tally.answered > answered + 4
            )
        return load.tally

    with PodWatch(kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(evict_both())

    assert tally.lost_total == 0, tally
    assert min(seen.ready) >= 1


def test_draining_the_only_node_ends_and_what_the_only_pod_accepted_is_answered(
    resource: Resource, kubectl: Kubectl
) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    (node,) = (item["metadata"]["name"] for item in kubectl.get("nodes")["items"])
    selected = f"--pod-selector=imageedit.dev/deployment={resource.name}"
    drain = ("drain", node, selected, "--delete-emptydir-data", f"--timeout={DRAIN_S:.0f}s")

    async def drain_node() -> Tally:
        async with resource.load(clients=3) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 4)
            try:
                await asyncio.to_thread(kubectl.run, *drain, timeout_s=DRAIN_S + 20)
            finally:
                await asyncio.to_thread(kubectl.run, "uncordon", node)
            await asyncio.to_thread(resource.wait_complete)
            answered = load.tally.answered
            await asyncio.to_thread(resource.wait_until, "answers again", lambda: load.tally.answered > answered + 2)
        return load.tally

    assert (tally := asyncio.run(drain_node())).lost_total == 0, tally
