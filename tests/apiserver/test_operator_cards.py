"""Sick cards as a device plugin writes them, read by an operator with the chart's rights; the nodes are played."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
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
from apiserver.operator_pods import add_pod, deployments, gate, report_running, serving, status_of
from apiserver.operator_process import Operator, operator
from apiserver.test_operator_rights import as_account, granted, roles
from imageedit_operator.kube import access
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import CONFIG_MAPS, NODES, PODS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
CARD = "huawei.com/Ascend910"
KUBE_SYSTEM = "kube-system"


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin, on a cluster with one node of two cards."""
    async with client(plane) as connected:
        yield connected


async def add_node(kube: KubeClient, name: str) -> None:
    """A ready node with two cards, as a kubelet would write it."""
    await kube.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    status = {
        "capacity": {CARD: "2"},
        "allocatable": {CARD: "2"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Played", "message": "played"}],
    }
    await kube.patch(NODES, "", name, {"status": status}, subresource="status")
    await kube.patch(NODES, "", name, {"spec": {"taints": None}})


def device_info(node: str, sick: str) -> Manifest:
    """What an Ascend device plugin writes about a node."""
    fault = {"fault_type": "CardUnhealthy", "npu_name": sick, "fault_level": "RestartNPU", "fault_code": "80E01801"}
    devices = {f"{CARD}-Unhealthy": sick, f"{CARD}-Fault": json.dumps([fault])}
    body = {"DeviceInfo": {"DeviceList": devices, "UpdateTime": int(time.time())}, "CheckCode": "c"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"mindx-dl-deviceinfo-{node}"},
        "data": {"DeviceInfoCfg": json.dumps(body)},
    }


def cluster_rights(account: str, namespace: str) -> str:
    """The chart's roles for counting cards and for their health."""
    rbac = "rbac.authorization.k8s.io"
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]

    def pair(kind: str, rights: tuple[access.Right, ...], **where: str) -> list[dict[str, Any]]:
        metadata = {"name": f"{namespace}-{kind.lower()}", **where}
        rules = [{"apiGroups": [r.group], "resources": [r.resource], "verbs": list(r.verbs)} for r in rights]
        reference = {"apiGroup": rbac, "kind": kind, "name": metadata["name"]}
        bind = {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": subjects}
        return [
            {"apiVersion": f"{rbac}/v1", "kind": kind, "metadata": metadata, "rules": rules},
            bind | {"apiVersion": f"{rbac}/v1"},
        ]

    items = [*pair("ClusterRole", access.FOR_CARDS), *pair("Role", access.FOR_HEALTH, namespace=KUBE_SYSTEM)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


async def degraded(kube: KubeClient, namespace: str, reason: str) -> dict[str, Any]:
    """Waits until Degraded has this reason; the condition."""

    async def look() -> dict[str, Any] | None:
        conditions = (await status_of(kube, namespace)).get("conditions", [])
        found = (item for item in conditions if (item["type"], item["reason"]) == ("Degraded", reason))
        return next(found, None)

    return await eventually(look, what=f"Degraded {reason}")


async def requests(running: Operator, code: str) -> float:
    """How many reads the apiserver answered with this code."""
    _, text = await running.get("/metrics")
    rows = [line for line in text.splitlines() if "api_requests_total" in line and f'code="{code}"' in line]
    return sum(float(line.rsplit(" ", 1)[1]) for line in rows if 'verb="get"' in line)


async def test_a_card_that_the_plugin_calls_sick_gets_its_pod_a_replacement_and_is_told_by_name(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    node = f"node-{namespace}"
    await add_node(kube, node)
    await add_node(kube, f"{node}-without-a-word")
    broken = {**device_info(node, "Ascend910-0"), "data": {"DeviceInfoCfg": "{"}}
    await kube.create(CONFIG_MAPS, KUBE_SYSTEM, broken)
    rights = (*access.REQUIRED, *access.for_lease("imageedit-operator"))
    kubectl(plane, "apply", "-f", "-", stdin=roles(rights, "op", namespace))
    kubectl(plane, "apply", "-f", "-", stdin=cluster_rights("op", namespace))
    await granted(plane, "op", KUBE_SYSTEM, access.FOR_HEALTH[0], of=namespace)
    config = as_account(plane, "op", namespace, tmp_path / "kubeconfig")
    flags = ("--namespaces", namespace, "--lease-namespace", namespace, "--resync", "5")
    async with operator(config, *flags) as running:
        await create_resource(kube, namespace, accelerator={"resourceName": CARD})
        (revision,) = await deployments(kube, namespace)
        async with serving(revision["metadata"]["labels"]["imageedit.dev/revision"]) as server:
            await add_pod(kube, namespace, revision, "p", node=node)
            await kube.patch(
                PODS, namespace, "p", {"metadata": {"annotations": {"huawei.com/AscendReal": "Ascend910-0"}}}
            )
            await report_running(kube, namespace, "p", server.ip)
            await gate(kube, namespace, "p", True)
            await report_running(kube, namespace, "p", server.ip, ready=True)
            await degraded(kube, namespace, "NoFault")  # a broken ConfigMap is no fault, and neither is none
            assert await requests(running, "403") == 0

            await kube.patch(CONFIG_MAPS, KUBE_SYSTEM, f"mindx-dl-deviceinfo-{node}", device_info(node, "Ascend910-0"))
            said = await degraded(kube, namespace, "DeviceUnhealthy")
            assert f"pod p sits on card Ascend910-0 of node {node}" in said["message"]
            assert "fault 80E01801 of level RestartNPU" in said["message"]

            await deployments(kube, namespace, replicas=2)
            (case,) = (await status_of(kube, namespace))["sickCards"]
            assert (case["node"], case["card"], case["pod"]) == (node, "Ascend910-0", "p")
            assert case["replacedAt"]
            assert server.drained_with == ""  # its replacement is not warm yet, and never will be here

            await kube.patch(CONFIG_MAPS, KUBE_SYSTEM, f"mindx-dl-deviceinfo-{node}", device_info(node, "Ascend910-1"))
            await deployments(kube, namespace, replicas=1)
            await degraded(kube, namespace, "NoFault")
            (case,) = (await status_of(kube, namespace))["sickCards"]
            assert case["pod"] == ""
