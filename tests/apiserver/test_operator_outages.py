"""The operator as a process whose way to the apiserver is disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.operator_faults import LEADER_CHANGED
from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from apiserver.operator_pods import deployments
from apiserver.operator_process import behind_proxy
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.wake_ups import WATCHED
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


async def test_an_outage_is_survived_and_what_happened_meanwhile_is_found(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    async with behind_proxy(plane, tmp_path, "--resync", "3") as (proxy, running):
        gone = await create_resource(kube, namespace, "gone")
        await deployments(kube, namespace)
        await proxy.down()
        await kube.delete(IMAGE_EDIT_DEPLOYMENTS, namespace, "gone", uid=gone["metadata"]["uid"])
        await create_resource(kube, namespace, "meanwhile")
        await asyncio.sleep(5)
        await proxy.up()
        await deployments(kube, namespace, count=2)

        async def forgotten() -> bool | None:
            _, text = await running.get("/metrics")
            return True if 'imageedit_deployment="gone"' not in text else None

        await eventually(forgotten, what="the end of the series of a resource that was deleted unseen")
        assert running.process.returncode is None, running.messages()


async def test_a_watch_that_kopf_cannot_bear_is_started_anew(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    async with behind_proxy(plane, tmp_path) as (proxy, running):
        assert proxy.inject(LEADER_CHANGED) == len(WATCHED)

        async def restarted() -> bool | None:
            return True if await running.metric("imageedit_operator_watch_restarts_total") >= 1 else None

        await eventually(restarted, what="a restart of the watches")
        await create_resource(kube, namespace)
        await deployments(kube, namespace)
        assert running.process.returncode is None, running.messages()
