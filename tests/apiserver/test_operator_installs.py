"""Both ways of installing: an operator with the rights and flags of the rendered chart, and with nothing more."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.operator_plane import (
    ROOT,
    client,
    create_resource,
    eventually,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from apiserver.operator_pods import add_pod, deployments, gate, report_running, serving
from apiserver.operator_process import operator
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, NODES
from localcluster import binaries
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
CARD = "huawei.com/Ascend910"
RBAC = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


def rendered(release: str, namespace: str, watched: Sequence[str]) -> list[dict[str, Any]]:
    """The chart's objects."""
    values = ("--set", f"watchNamespaces={{{','.join(watched)}}}") if watched else ()
    chart = str(ROOT / "helm/imageedit-operator")
    command = [str(binaries.path_of("helm")), "template", release, chart, "--namespace", namespace, *values]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return [document for document in yaml.safe_load_all(text) if document]


def flags_of(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the chart starts the operator with."""
    (deployment,) = [item for item in objects if item["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def as_account(plane: ControlPlane, account: str, namespace: str, path: Path) -> Path:  # noqa: F811
    """A kubeconfig with a token of this service account."""
    config = json.loads(plane.kubeconfig.read_text())
    token = kubectl(plane, "-n", namespace, "create", "token", account).strip()
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


async def bound(plane: ControlPlane, account: str, system: str, where: str) -> None:  # noqa: F811
    """Waits until the authorizer knows the roles."""

    async def look() -> bool | None:
        subject = f"system:serviceaccount:{system}:{account}"
        questions = (("patch", "pods/status", where), ("create", "leases.coordination.k8s.io", system))
        try:
            for verb, resource, namespace in questions:
                kubectl(plane, "auth", "can-i", verb, resource, "-n", namespace, "--as", subject)
            kubectl(plane, "auth", "can-i", "list", "nodes", "--as", subject)
        except subprocess.CalledProcessError:
            return None
        return True

    await eventually(look, what="the chart's rights")


@pytest.mark.parametrize("scope", ["cluster", "namespaces"])
async def test_the_charts_rights_are_enough_for_everything_that_the_operator_does(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
    scope: str,
) -> None:
    system, served, other = [await new_namespace(kube) for _ in range(3)]
    objects = rendered(f"op-{system}", system, [served] if scope == "namespaces" else [])
    rights = [item for item in objects if item["kind"] in RBAC]
    kubectl(plane, "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": rights}))
    (account,) = [item["metadata"]["name"] for item in rights if item["kind"] == "ServiceAccount"]
    await bound(plane, account, system, served)
    await kube.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{system}"}})
    config = as_account(plane, account, system, tmp_path / "kubeconfig")
    async with operator(config, *flags_of(objects), "--lease-namespace", system) as running:
        await create_resource(kube, other)
        await create_resource(kube, served, accelerator={"resourceName": CARD})
        (revision,) = await deployments(kube, served)
        async with serving(revision["metadata"]["labels"]["imageedit.dev/revision"]) as server:
            await add_pod(kube, served, revision, "p")
            await report_running(kube, served, "p", server.ip)
            await gate(kube, served, "p", True)
        _, text = await running.get("/metrics")
        assert [line for line in text.splitlines() if 'code="403"' in line] == []
        if scope == "cluster":
            await deployments(kube, other)
        else:
            await asyncio.sleep(1)
            assert await kube.list_all(DEPLOYMENTS, other) == []
    assert not any("WriteRefused" in str(line) for line in running.log)
