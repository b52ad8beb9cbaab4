"""What the apiserver refuses is said in the resource's conditions, and forgotten when the spec is put right."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)


async def test_a_pod_that_the_apiserver_does_not_take_is_said_in_its_words_until_it_is_put_right(
    plane: ControlPlane,  # noqa: F811
) -> None:
    async with client(plane) as kube, operator(plane.kubeconfig):
        namespace = await new_namespace(kube)

        async def progressing(reason: str) -> dict[str, Any]:
            async def look() -> dict[str, Any] | None:
                conditions = (await status_of(kube, namespace)).get("conditions", [])
                found = (item for item in conditions if (item["type"], item["reason"]) == ("Progressing", reason))
                return next(found, None)

            return await eventually(look, what=f"Progressing {reason}")

        resources = {"requests": {"memory": "8Gi"}, "limits": {"memory": "4Gi"}}
        await create_resource(kube, namespace, server={"image": "server:1", "resources": resources})

        said = await progressing("WriteRefused")
        assert said["status"] == "False"
        assert "must be less than or equal to memory limit" in said["message"]

        right = {"spec": {"server": {"resources": {"limits": {"memory": "16Gi"}}}}}
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", right)
        assert (await progressing("Starting"))["status"] == "True"
