"""The operator with no more rights than it lists, and with one less."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.operator_plane import (
    LONG_S,
    client,
    create_resource,
    eventually,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from apiserver.operator_pods import add_pod, deployments, gate, report_running, serving
from apiserver.operator_process import operator
from imageedit_operator.kube import access
from imageedit_operator.kube.client import KubeClient
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
LEASE = access.for_lease("imageedit-operator")


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


def roles(rights: tuple[access.Right, ...], account: str, namespace: str) -> str:
    """A Role with exactly these rights, bound to a new service account."""
    rules = [
        {"apiGroups": [r.group], "resources": [r.resource], "verbs": list(r.verbs)}
        | ({"resourceNames": [r.name]} if r.name else {})
        for r in rights
    ]
    metadata = {"name": account, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


async def granted(
    plane: ControlPlane,  # noqa: F811
    account: str,
    namespace: str,
    right: access.Right,
    *,
    of: str = "",
) -> None:
    """Waits until the apiserver knows of this right; roles reach its authorizer a moment after they are stored.

    `of` is the account's namespace where it is another one.
    """
    subject = f"system:serviceaccount:{of or namespace}:{account}"
    resource = f"{right.resource}.{right.group}" if right.group else right.resource

    async def look() -> bool | None:
        try:
            kubectl(plane, "-n", namespace, "auth", "can-i", right.verbs[-1], resource, "--as", subject)
        except subprocess.CalledProcessError:
            return None
        return True

    await eventually(look, what=f"{right} for {account}")


def as_account(plane: ControlPlane, account: str, namespace: str, path: Path) -> Path:  # noqa: F811
    """A kubeconfig with a token of this service account."""
    config = json.loads(plane.kubeconfig.read_text())
    token = kubectl(plane, "-n", namespace, "create", "token", account).strip()
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


async def test_the_listed_rights_are_enough_and_cards_are_then_unknown(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    kubectl(plane, "apply", "-f", "-", stdin=roles((*access.REQUIRED, *LEASE), "op", namespace))
    await granted(plane, "op", namespace, access.REQUIRED[-1])
    config = as_account(plane, "op", namespace, tmp_path / "kubeconfig")
    async with operator(config, "--namespaces", namespace, "--lease-namespace", namespace) as running:
        await create_resource(kube, namespace, accelerator={"resourceName": "huawei.com/Ascend910"})
        (revision,) = await deployments(kube, namespace)
        async with serving(revision["metadata"]["labels"]["imageedit.dev/revision"]) as server:
            await add_pod(kube, namespace, revision, "p")
            await report_running(kube, namespace, "p", server.ip)
            await gate(kube, namespace, "p", True)
        assert await running.metric("imageedit_operator_free_cards_known") == 0
        _, text = await running.get("/metrics")
    refused = [line for line in text.splitlines() if 'code="403"' in line]
    assert all('verb="list"' in line for line in refused), refused  # nodes only
    assert not any("WriteRefused" in str(line) for line in running.log)


@pytest.mark.parametrize(
    ("missing", "words"),
    [("pods/status", "patch on pods/status"), ("leases", "create on leases.coordination.k8s.io")],
)
async def test_a_right_that_is_missing_is_named_before_anything_is_watched(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
    missing: str,
    words: str,
) -> None:
    namespace = await new_namespace(kube)
    rights = tuple(right for right in (*access.REQUIRED, *LEASE) if right.resource != missing)
    kubectl(plane, "apply", "-f", "-", stdin=roles(rights, "op", namespace))
    await granted(plane, "op", namespace, rights[0])
    config = as_account(plane, "op", namespace, tmp_path / "kubeconfig")
    async with operator(config, "--namespaces", namespace, "--lease-namespace", namespace) as running:
        assert await asyncio.wait_for(running.process.wait(), timeout=LONG_S) == 3
    assert words in running.messages()
