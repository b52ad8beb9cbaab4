"""Pods that cannot be made, as the apiserver refuses them."""

from __future__ import annotations

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    pod,
)
from apiserver.operator_pods import deployments, status_of
from apiserver.operator_process import operator
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import DEPLOYMENTS, PODS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)


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
