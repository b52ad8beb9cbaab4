"""Rollouts that do not run to their end on a real cluster: rolled back, paused, held at a canary, restarted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.kubectl import Kubectl, condition
from support.load import Tally
from support.resources import Resource
from support.watching import PodWatch

pytestmark = pytest.mark.timeout(240)


def active(resource: Resource) -> list[dict[str, Any]]:
    """Metadata of the pods that are not on their way out."""
    return [pod["metadata"] for pod in resource.pods() if "deletionTimestamp" not in pod["metadata"]]


def revisions_of_pods(resource: Resource) -> list[str]:
    return sorted(pod["labels"]["imageedit.dev/revision"] for pod in active(resource))


def annotate(kubectl: Kubectl, resource: Resource, name: str, value: str) -> None:
    kubectl.run("annotate", "ied", resource.name, "-n", resource.namespace, f"imageedit.dev/{name}={value}")


def test_a_revision_that_never_gets_warm_is_rolled_back_and_no_request_is_lost(resource: Resource) -> None:
    resource.create(replicas=2)
    resource.wait_complete()
    good = resource.read()["status"]["currentRevision"]
    broken = {"model": {"revision": "broken", "source": {"demo": None, "hostPath": {"path": "/usr/share"}}}}

    async def roll_under_load() -> Tally:
        async with resource.load(clients=2) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 2)
            resource.patch(broken)
            await asyncio.to_thread(resource.wait_condition, "Progressing", status="False", reason="RolledBack")
        return load.tally

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(roll_under_load())

    status = resource.read()["status"]
    assert tally.lost_total == 0, tally
    assert min(seen.ready) >= 1
    assert revisions_of_pods(resource) == [good, good]
    assert status["readyReplicas"] == 2
    assert status["lastGoodRevision"] == good
    assert status["failedRevision"] == status["updateRevision"] != good
    assert status["failure"]["reason"] == "ModelMissing"
    assert condition(resource.read(), "RolloutStuck")["reason"] == "RolledBack"
    assert condition(resource.read(), "Available")["status"] == "True"

    before = {pod["uid"] for pod in active(resource)}
    resource.patch({"model": {"revision": "revision-a", "source": {"demo": {}, "hostPath": None}}})
    resource.wait_complete()
    assert {pod["uid"] for pod in active(resource)} == before


def test_a_paused_rollout_replaces_nothing_and_the_number_of_pods_follows(resource: Resource) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    old = resource.read()["status"]["currentRevision"]

    resource.patch({"rollout": {"paused": True}, "model": {"revision": "revision-b"}, "replicas": 2})
    resource.wait_condition("Progressing", status="False", reason="Paused")
    resource.wait_until("two pods that serve", lambda: resource.read()["status"]["readyReplicas"] == 2)
    assert revisions_of_pods(resource) == [old, old]

    resource.patch({"rollout": {"paused": False}})
    resource.wait_complete()
    assert old not in revisions_of_pods(resource)


def test_a_canary_holds_beside_the_old_revision_until_it_is_promoted(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=2)
    resource.wait_complete()
    old = resource.read()["status"]["currentRevision"]

    resource.patch({"rollout": {"canary": {"pods": 1}}, "model": {"revision": "revision-b"}})
    resource.wait_condition("Progressing", status="True", reason="CanaryHold")
    new = resource.read()["status"]["updateRevision"]
    resource.wait_until("both to serve", lambda: resource.read()["status"]["readyReplicas"] == 2)
    assert revisions_of_pods(resource) == sorted([old, new])

    annotate(kubectl, resource, "promoted-revision", new)
    resource.wait_complete()
    assert revisions_of_pods(resource) == [new, new]


def test_a_restart_annotation_replaces_the_pod_without_a_gap(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    before = resource.only_pod()["metadata"]["uid"]
    old = resource.read()["status"]["currentRevision"]

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        annotate(kubectl, resource, "restarted-at", "2026-11-30T08.00.00Z")
        resource.wait_until("another revision", lambda: resource.read()["status"]["updateRevision"] != old)
        resource.wait_complete()

    assert min(seen.ready) >= 1
    assert before not in {pod["uid"] for pod in active(resource)}
