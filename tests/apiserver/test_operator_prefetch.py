"""Copies of the model against a real apiserver: its Jobs, what they say, and a rollout that waits for them.

No controllers: the test plays the node, and writes what the Job controller and a kubelet would.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from apiserver.operator_pods import deployments, status_of
from apiserver.operator_process import operator
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import JOBS, NODES, PODS
from localcluster.controlplane import ControlPlane

CARD = "example.com/npu"
NOW = "2026-11-30T03:00:00Z"
MODEL: dict[str, Any] = {"name": "m", "revision": "1", "source": {"pvc": {"claimName": "models"}}}
ON_NODES = {**MODEL, "prefetch": {"hostPath": {"path": "/data/copies"}}}
CARDS = {"device": "npu", "resourceName": CARD}

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


async def add_node(kube: KubeClient, name: str) -> None:
    await kube.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    conditions = [{"type": "Ready", "status": "True"}]
    amounts = {"cpu": "8", CARD: "1"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    await kube.patch(NODES, "", name, {"status": status}, strategic=True, subresource="status")
    await kube.patch(NODES, "", name, {"spec": {"taints": None}})


async def jobs(kube: KubeClient, namespace: str, count: int) -> list[Manifest]:
    """Waits for that many Jobs."""

    async def look() -> list[Manifest] | None:
        found = await kube.list_all(JOBS, namespace)
        return found if len(found) == count else None

    return await eventually(look, what=f"{count} Jobs")


async def complete(kube: KubeClient, namespace: str, job: Manifest) -> None:
    """What the Job controller writes at the end."""
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": NOW} for kind in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": NOW, "completionTime": NOW, "succeeded": 1, "conditions": conditions}
    await kube.patch(JOBS, namespace, job["metadata"]["name"], {"status": status}, subresource="status")


async def fail(kube: KubeClient, namespace: str, job: Manifest, message: str) -> None:
    """The same after a failure, with the pod that says why."""
    name = job["metadata"]["name"]
    template = job["spec"]["template"]
    labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
    spec = {"containers": [{"name": "prefetch", "image": "i"}], "nodeName": "n1", "restartPolicy": "Never"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-x", "labels": labels}, "spec": spec}
    await kube.create(PODS, namespace, pod)
    terminated = {"exitCode": 66, "message": message, "startedAt": NOW, "finishedAt": NOW}
    container = {
        "name": "prefetch",
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": terminated},
    }
    status: dict[str, Any] = {"phase": "Failed", "containerStatuses": [container]}
    await kube.patch(PODS, namespace, f"{name}-x", {"status": status}, strategic=True, subresource="status")
    conditions = [
        {"type": kind, "status": "True", "reason": "PodFailurePolicy", "message": "x", "lastTransitionTime": NOW}
        for kind in ("FailureTarget", "Failed")
    ]
    ended = {"startTime": NOW, "failed": 1, "conditions": conditions}
    await kube.patch(JOBS, namespace, name, {"status": ended}, subresource="status")


async def progressing(kube: KubeClient, namespace: str, reason: str, words: str = "") -> dict[str, Any]:
    """Waits for this reason, and these words in the message."""

    async def look() -> dict[str, Any] | None:
        for item in (await status_of(kube, namespace)).get("conditions", []):
            if (item["type"], item["reason"]) == ("Progressing", reason) and words in item["message"]:
                return dict(item)
        return None

    return await eventually(look, what=f"Progressing {reason} {words}")


async def test_pods_come_when_every_node_has_its_copy_and_a_failure_is_said_with_its_file(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
) -> None:
    namespace = await new_namespace(kube)
    for name in ("n1", "n2"):
        await add_node(kube, name)
    async with operator(plane.kubeconfig):
        await create_resource(kube, namespace, model=ON_NODES, accelerator=CARDS)
        first, second = await jobs(kube, namespace, 2)
        assert {job["metadata"]["annotations"]["imageedit.dev/node"] for job in (first, second)} == {"n1", "n2"}
        assert first["spec"]["podReplacementPolicy"] == "Failed"
        await progressing(kube, namespace, "Prefetching", "0 of 2 nodes have theirs")
        await deployments(kube, namespace, count=1, replicas=0)

        await complete(kube, namespace, first)
        await progressing(kube, namespace, "Prefetching", "1 of 2 nodes have theirs")
        message = "ModelInvalid: /models/vae/x.safetensors is not the file of the manifest; copy it there again"
        await fail(kube, namespace, second, message)
        said = await progressing(kube, namespace, "PrefetchFailed", message)
        assert said["status"] == "False"
        assert f"delete Job {second['metadata']['name']} to try again" in said["message"]
        assert (await status_of(kube, namespace))["prefetch"]["failed"] == 1

        kubectl(plane, "-n", namespace, "delete", "job", second["metadata"]["name"], "--cascade=background")

        async def again() -> Manifest | None:
            found = await kube.list_all(JOBS, namespace)
            fresh = [job for job in found if job["metadata"]["uid"] not in (first["metadata"]["uid"], uid)]
            return fresh[0] if fresh else None

        uid = second["metadata"]["uid"]
        await complete(kube, namespace, await eventually(again, what="a new Job"))
        await deployments(kube, namespace, count=1, replicas=1)
        assert (await status_of(kube, namespace))["prefetch"] == {"wanted": 2, "ready": 2, "failed": 0}


async def test_the_field_can_be_taken_away_and_its_jobs_go(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    in_claim = {**MODEL, "prefetch": {"pvc": {"claimName": "fast"}}}
    async with operator(plane.kubeconfig):
        await create_resource(kube, namespace, model=in_claim)
        await jobs(kube, namespace, 1)
        await progressing(kube, namespace, "Prefetching", "the claim has none yet")
        without = json.dumps({"spec": {"model": {"prefetch": None}}})
        kubectl(plane, "-n", namespace, "patch", "ied", "edit", "--type=merge", "-p", without)
        await jobs(kube, namespace, 0)
        await progressing(kube, namespace, "Starting")
        assert "prefetch" not in await status_of(kube, namespace)
