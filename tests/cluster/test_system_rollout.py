"""A new model revision rolls on a real cluster by the free cards at hand, and loses no request."""

from __future__ import annotations

import asyncio
import re

import pytest

from imageedit_operator.core.stored import epoch_s
from localcluster.cluster import Cluster
from support.kubectl import Kubectl, condition, is_current
from support.load import Load, Tally
from support.resources import Resource
from support.watching import PodWatch

pytestmark = pytest.mark.timeout(240)


async def roll_under_load(resource: Resource, *, clients: int) -> Tally:
    """Change the revision while clients edit, and wait until everything is of the new one."""
    async with resource.load(clients=clients) as load:
        await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > clients)
        resource.roll("revision-b")
        await asyncio.to_thread(resource.wait_complete)
        await asyncio.to_thread(resource.wait_until, "answers of b", lambda: load.tally.revisions["revision-b"] > 0)
    return load.tally


def test_a_free_card_is_used_to_surge_and_no_moment_is_without_a_ready_pod(resource: Resource) -> None:
    resource.create(replicas=1)
    resource.wait_complete()

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(roll_under_load(resource, clients=2))

    assert tally.lost_total == 0, tally
    assert tally.refused_total == 0, tally
    assert min(seen.ready) >= 1
    assert max(seen.total) == 2


def test_two_replicas_on_two_cards_roll_in_place_one_at_a_time(resource: Resource) -> None:
    resource.create(replicas=2)
    resource.wait_complete()

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(roll_under_load(resource, clients=4))

    assert tally.lost_total == 0, tally
    assert min(seen.ready) >= 1
    assert max(seen.total) == 3


def test_one_replica_on_the_only_card_is_a_planned_replacement_with_words(cluster: Cluster, resource: Resource) -> None:
    cluster.set_cards(1)
    resource.wait_allocatable(1)
    resource.create(replicas=1)
    resource.wait_complete()
    said: set[str] = set()

    async def roll() -> Tally:
        async with resource.load(clients=2) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 2)
            resource.roll("revision-b")
            await asyncio.to_thread(resource.wait_complete, said)
            await asyncio.to_thread(resource.wait_until, "answers of b", lambda: load.tally.revisions["revision-b"] > 0)
        return load.tally

    tally = asyncio.run(roll())

    assert tally.lost_total == 0, tally
    planned = [message for message in said if message.startswith("planned replacement: about")]
    assert planned, said
    assert "no card is free" in planned[0]


def test_the_time_without_a_warm_pod_is_about_as_long_as_announced(cluster: Cluster, resource: Resource) -> None:
    cluster.set_cards(1)
    resource.wait_allocatable(1)
    resource.create(replicas=1)
    resource.wait_complete()
    said: set[str] = set()
    since: dict[str, float] = {}

    def complete() -> bool:
        now = resource.read()
        available = condition(now, "Available")
        said.add(condition(now, "Progressing")["message"])
        since[available["status"]] = epoch_s(available["lastTransitionTime"])
        return is_current(now) and bool(condition(now, "Ready")["status"] == "True")

    resource.roll("revision-b")
    resource.wait_until("the roll", complete)

    (announced,) = [re.match(r"planned replacement: about (\d+) s ", words) for words in said if "planned" in words]
    assert announced is not None
    dark_s = since["True"] - since["False"]
    # Both are rounded to seconds, and this machine may be busy with other things at either start.
    assert abs(dark_s - int(announced[1])) <= 3 + 0.3 * dark_s, (said, since)


def test_a_revision_that_cannot_start_stops_and_the_old_one_serves_on(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=2)
    resource.wait_complete()

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        resource.patch({"model": {"revision": "broken", "source": {"demo": None, "hostPath": {"path": "/usr/share"}}}})
        resource.wait_condition("Progressing", status="False", reason="ModelMissing")
        tally = asyncio.run(edits(resource, 5))

    assert tally.answered >= 5
    assert tally.lost_total == 0, tally
    assert min(seen.ready) >= 1
    assert "/models" in condition(resource.read(), "Progressing")["message"]

    resource.patch({"model": {"revision": "revision-a", "source": {"demo": {}, "hostPath": None}}})
    resource.wait_complete()
    assert resource.read()["status"]["readyReplicas"] == 2


async def edits(resource: Resource, count: int) -> Tally:
    """Edit until that many were answered."""
    async with resource.load(clients=1) as load:
        await asyncio.to_thread(resource.wait_until, f"{count} answers", lambda: load.tally.answered >= count)
    return load.tally


def test_kubectl_scale_adds_and_removes_replicas_without_losing_a_request(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=1)
    resource.wait_complete()

    async def scale_up_and_down() -> Load:
        async with resource.load(clients=4) as load:
            for replicas in (2, 1):
                kubectl.run("scale", "ied", resource.name, "-n", resource.namespace, f"--replicas={replicas}")
                await asyncio.to_thread(resource.wait_complete)
                assert resource.read()["status"]["readyReplicas"] == replicas
        return load

    tally = asyncio.run(scale_up_and_down()).tally

    assert tally.lost_total == 0, tally
    assert tally.answered > 4
