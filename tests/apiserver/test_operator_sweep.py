"""Pods that are over, as kubelets leave them: removed, counted by reason and told."""

from __future__ import annotations

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from apiserver.operator_pods import add_pod, deployments, status_of
from apiserver.operator_process import operator
from imageedit_operator.kube.kinds import EVENTS, PODS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)
NO_DEVICES = "Allocate failed due to no healthy devices present, which is unexpected"
METRIC = "imageedit_operator_pods_removed_total"


async def test_refused_and_evicted_pods_are_removed_counted_and_told(plane: ControlPlane) -> None:  # noqa: F811
    async with client(plane) as kube, operator(plane.kubeconfig) as running:
        namespace = await new_namespace(kube)
        await create_resource(kube, namespace)
        (revision,) = await deployments(kube, namespace)
        for name, reason, message in (
            ("refused-1", "UnexpectedAdmissionError", NO_DEVICES),
            ("refused-2", "UnexpectedAdmissionError", NO_DEVICES),
            ("evicted", "Evicted", "The node was low on resource: memory."),
        ):
            await add_pod(kube, namespace, revision, name)
            failed = {"status": {"phase": "Failed", "reason": reason, "message": message}}
            await kube.patch(PODS, namespace, name, failed, subresource="status")

        async def said() -> str | None:
            conditions = (await status_of(kube, namespace)).get("conditions", [])
            found = (item for item in conditions if (item["type"], item["status"]) == ("Degraded", "True"))
            return next((f"{item['reason']}: {item['message']}" for item in found), None)

        words = await eventually(said, what="Degraded")
        assert words.startswith(f"UnexpectedAdmission: the kubelet of node-1 refuses pods: {NO_DEVICES}")

        async def swept() -> bool | None:
            return True if not await kube.list_all(PODS, namespace) else None

        await eventually(swept, what="no pod left")
        _, text = await running.get("/metrics")
        counts = {
            reason: sum(
                float(line.rsplit(" ", 1)[1])
                for line in text.splitlines()
                if line.startswith(METRIC) and f'reason="{reason}"' in line and f'"{namespace}"' in line
            )
            for reason in ("UnexpectedAdmission", "Evicted", "PodFailed")
        }
        assert counts == {"UnexpectedAdmission": 2, "Evicted": 1, "PodFailed": 0}
        notes = {event["note"] for event in await kube.list_all(EVENTS, namespace)}
        assert f"pod refused-1 on node-1: UnexpectedAdmissionError: {NO_DEVICES}" in notes
        assert "pod evicted on node-1: Evicted: The node was low on resource: memory." in notes
