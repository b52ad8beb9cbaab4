"""A process that begins to act: it looks at every resource by one list, and acts only on what it reads itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.operator_faults import faulty
from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    writes_but_leases,
)
from apiserver.operator_pods import status_of
from apiserver.operator_process import PASSES, Operator, operator
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, SERVICES
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)
NAMES = ("one", "two", "three")
SETTLE_S = 3.0
"""The watches list within it, and a child that is new asks for a look a second later."""


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


@pytest.fixture
async def namespace(plane: ControlPlane, kube: KubeClient) -> str:  # noqa: F811
    """Three resources that want no pods, so that an operator comes to rest with them."""
    name = await new_namespace(kube)
    async with operator(plane.kubeconfig, "--namespaces", name):
        for resource in NAMES:
            await create_resource(kube, name, resource, replicas=0)

        async def settled() -> bool | None:
            before = len(writes_but_leases(plane))
            phases = [(await status_of(kube, name, resource)).get("phase") for resource in NAMES]
            await asyncio.sleep(SETTLE_S)
            return True if all(phases) and len(writes_but_leases(plane)) == before else None

        await eventually(settled, what="rest")
    return name


async def looked(running: Operator, passes: int) -> None:
    """Waits until the process has made so many passes, and a little for more of them."""

    async def look() -> bool | None:
        return True if await running.metric(PASSES) >= passes else None

    await eventually(look, what=f"{passes} passes")
    await asyncio.sleep(SETTLE_S)


async def only_deployment(kube: KubeClient, namespace: str, name: str) -> Manifest | None:
    """The Deployment of a resource, which has one or none."""
    found = await kube.list_all(DEPLOYMENTS, namespace, labels=f"imageedit.dev/deployment={name}")
    assert len(found) <= 1
    return found[0] if found else None


async def test_each_resource_at_rest_is_looked_at_once_and_none_is_read_alone(
    plane: ControlPlane,  # noqa: F811
    namespace: str,
    tmp_path: Path,
) -> None:
    before = len(writes_but_leases(plane))
    async with faulty(plane) as proxy:
        config = proxy.write_kubeconfig(tmp_path / "kubeconfig")
        async with operator(config, "--namespaces", namespace) as running:
            await looked(running, len(NAMES))
            passes = await running.metric(PASSES)
    read = [query["path"] for query in proxy.listed if query["path"].endswith(NAMES)]
    assert passes == len(NAMES)
    assert read == []
    assert [write for write in writes_but_leases(plane)[before:] if "accessreviews" not in write[1]] == []


async def test_what_changed_while_nobody_acted_is_done(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    namespace: str,
) -> None:
    service = await kube.get(SERVICES, namespace, "one")
    await kube.delete(SERVICES, namespace, "one", uid=service["metadata"]["uid"])
    await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "two", {"spec": {"replicas": 3}})
    child = await only_deployment(kube, namespace, "three")
    assert child is not None
    await kube.delete(DEPLOYMENTS, namespace, child["metadata"]["name"], uid=child["metadata"]["uid"])
    async with operator(plane.kubeconfig, "--namespaces", namespace):

        async def done() -> bool | None:
            services = {item["metadata"]["name"] for item in await kube.list_all(SERVICES, namespace)}
            wanted = (await status_of(kube, namespace, "two")).get("desiredReplicas")
            again = await only_deployment(kube, namespace, "three")
            return True if services >= set(NAMES) and wanted == 3 and again else None

        await eventually(done, what="Service, replicas and Deployment as they are wanted")
