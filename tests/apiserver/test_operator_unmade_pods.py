"""Pods that cannot be made, as the apiserver refuses them, or cannot start, as their node tells."""

from __future__ import annotations

import time

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    pod,
)
from apiserver.operator_pods import add_pod, deployments, report_running, status_of
from apiserver.operator_process import operator
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, PODS, Resource
from imageedit_operator.kube.parsing import timestamp
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)
CORE_EVENTS = Resource(group="", version="v1", plural="events")
"""As kubelets write them; the operator reads the same objects as events.k8s.io."""


async def test_a_runtime_class_that_is_not_there_is_named_as_the_apiserver_refuses_it(
    plane: ControlPlane,  # noqa: F811
) -> None:
    async with client(plane) as kube, operator(plane.kubeconfig):
        namespace = await new_namespace(kube)
        accelerator = {"device": "npu", "resourceName": "", "injection": "Runtime", "runtimeClassName": "ascend"}
        await create_resource(kube, namespace, accelerator=accelerator)
        (revision,) = await deployments(kube, namespace)
        made = pod("as-its-replicaset-would")
        made["spec"]["runtimeClassName"] = revision["spec"]["template"]["spec"]["runtimeClassName"]
        with pytest.raises(ApiError) as refused:
            await kube.create(PODS, namespace, made)
        # What the controllers make of it, which this apiserver has none of.
        failure = {
            "type": "ReplicaFailure",
            "status": "True",
            "reason": "FailedCreate",
            "message": refused.value.message,
        }
        name = revision["metadata"]["name"]
        await kube.patch(DEPLOYMENTS, namespace, name, {"status": {"conditions": [failure]}}, subresource="status")

        async def said() -> str | None:
            conditions = (await status_of(kube, namespace)).get("conditions", [])
            found = (item["message"] for item in conditions if item["reason"] == "RuntimeClassMissing")
            return next(found, None)

        assert "the cluster has no RuntimeClass ascend" in await eventually(said, what="RuntimeClassMissing")


def failed_mount(pod: Manifest, words: str) -> Manifest:
    """What a kubelet tells of a volume that it cannot mount."""
    metadata, now = pod["metadata"], timestamp(time.time())
    about = {"apiVersion": "v1", "kind": "Pod", **{name: metadata[name] for name in ("namespace", "name", "uid")}}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.mount", "namespace": metadata["namespace"]},
        "involvedObject": about,
        "type": "Warning",
        "reason": "FailedMount",
        "message": words,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 3,
        "source": {"component": "kubelet", "host": "node-1"},
    }


async def test_a_pod_that_hangs_for_a_volume_is_named_with_its_node_s_words_until_it_starts(
    plane: ControlPlane,  # noqa: F811
) -> None:
    words = 'MountVolume.SetUp failed for volume "ascend-driver" : hostPath type check failed: /d is not a directory'
    async with client(plane) as kube, operator(plane.kubeconfig):
        namespace = await new_namespace(kube)
        await create_resource(kube, namespace)
        (revision,) = await deployments(kube, namespace)
        hanging = await add_pod(kube, namespace, revision, "edit-1")
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(time.time() - 120)}
        await kube.create(CORE_EVENTS, namespace, failed_mount(hanging, words))
        await kube.patch(PODS, namespace, "edit-1", {"status": {"conditions": [placed]}}, subresource="status")

        async def ready(reason: str) -> str | None:
            conditions = (await status_of(kube, namespace)).get("conditions", [])
            found = (item["message"] for item in conditions if (item["type"], item["reason"]) == ("Ready", reason))
            return next(found, None)

        said = await eventually(lambda: ready("VolumeNotReady"), what="VolumeNotReady")
        assert f"pod edit-1: node node-1 says: {words}; the claim must be bound" in said

        await report_running(kube, namespace, "edit-1", "127.0.0.1")
        await eventually(lambda: ready("Starting"), what="a pod that starts")
