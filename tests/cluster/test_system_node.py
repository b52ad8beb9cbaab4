"""The node's own programs die and come back: what serves goes on serving, and what died meanwhile is proven anew."""

from __future__ import annotations

import asyncio
import time

import pytest

from localcluster.cluster import Cluster
from support.containers import kill_container
from support.kubectl import condition
from support.load import Load, Tally
from support.resources import Resource
from support.watching import PodWatch, container_id, gate_of, is_ready

pytestmark = pytest.mark.timeout(240)

AWAY_S = 5.0
CARDS = 2


def answers(resource: Resource, load: Load, more: int) -> None:
    """Until that many more edits are answered."""
    wanted = load.tally.answered + more
    resource.wait_until(f"{more} more answers", lambda: load.tally.answered >= wanted)


def status_is_true(resource: Resource) -> None:
    """What the status says is what the pods are, and all of it is well."""
    stored, pods = resource.read(), resource.pods()
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert stored["status"]["readyReplicas"] == sum(is_ready(pod) for pod in staying) == len(staying)
    assert {kind: condition(stored, kind)["status"] for kind in ("Ready", "Available")} == {
        "Ready": "True",
        "Available": "True",
    }


def proven(resource: Resource) -> bool:
    """Its only pod is Ready, by a gate that was opened for the container that runs now."""
    pod = resource.only_pod()
    running = container_id(pod)
    return is_ready(pod) and bool(running) and running in gate_of(pod).get("message", "")


@pytest.mark.parametrize("program", ["kubelet", "containerd"])
def test_a_program_of_the_node_that_restarts_costs_no_edit_and_no_pod(
    cluster: Cluster, resource: Resource, program: str
) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    pod, container = resource.only_pod()["metadata"]["uid"], resource.only_container()

    def away(load: Load) -> None:
        answers(resource, load, 2)
        with cluster.without(program):
            answers(resource, load, 4)
            time.sleep(AWAY_S)
        answers(resource, load, 2)
        resource.wait_allocatable(CARDS)
        resource.wait_complete()
        answers(resource, load, 2)

    async def edit_meanwhile() -> Tally:
        async with resource.load(clients=2) as load:
            await asyncio.to_thread(away, load)
        return load.tally

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(edit_meanwhile())

    assert tally.lost_total == 0, tally
    assert max(seen.total) == 1, "nothing was replaced"
    assert (resource.only_pod()["metadata"]["uid"], resource.only_container()) == (pod, container)
    status_is_true(resource)


def test_a_rollout_ends_although_the_kubelet_restarts_in_its_middle(cluster: Cluster, resource: Resource) -> None:
    resource.create(replicas=1)
    resource.wait_complete()

    def roll(load: Load) -> None:
        answers(resource, load, 2)
        resource.roll("revision-b")
        resource.wait_until("the second pod", lambda: len(resource.pods()) == 2)
        with cluster.without("kubelet"):
            time.sleep(AWAY_S)
        resource.wait_complete()
        resource.wait_until("answers of b", lambda: load.tally.revisions["revision-b"] > 0)

    async def roll_meanwhile() -> Tally:
        async with resource.load(clients=2) as load:
            await asyncio.to_thread(roll, load)
        return load.tally

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(roll_meanwhile())

    assert tally.lost_total == 0, tally
    assert max(seen.total) == 2
    status_is_true(resource)


@pytest.mark.parametrize("program", ["kubelet", "containerd"])
def test_a_server_that_dies_while_nobody_looks_after_it_is_proven_warm_anew(
    cluster: Cluster, resource: Resource, program: str
) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    first = resource.only_container()
    with cluster.without(program):
        kill_container(first)
        time.sleep(AWAY_S)
    resource.wait_until("another container", lambda: resource.only_container() not in ("", first))
    resource.wait_until("its own proof", lambda: proven(resource))
    resource.wait_complete()
    status_is_true(resource)
