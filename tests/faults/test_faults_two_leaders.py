"""Two operators that act at the same time, as after a Lease that failed: no fight, no harm, one end."""

from __future__ import annotations

import asyncio

from apiserver.operator_plane import writes_but_leases
from apiserver.operator_process import at_rest, operator
from faults.scene import scene
from imageedit_operator.kube.client import KubeClient
from localcluster.controlplane import ControlPlane

TOGETHER_S = 30.0


async def test_two_leaders_roll_together_and_come_to_rest(plane: ControlPlane, kube: KubeClient) -> None:
    async with scene(kube, replicas=2, cards=3) as stage:
        await stage.create()
        async with (
            operator(plane.kubeconfig, *stage.flags()) as one,
            operator(plane.kubeconfig, *stage.flags()) as other,
        ):
            end = asyncio.get_running_loop().time() + TOGETHER_S
            await stage.complete()
            rollouts = 0
            while rollouts < 2 or asyncio.get_running_loop().time() < end:
                rollouts += 1
                await stage.roll(f"together-{rollouts}")
                await stage.complete()
            await at_rest(plane, one, passes=4)
            written = len(_written(plane, stage.namespace))
            await at_rest(plane, other, passes=8)
            assert len(_written(plane, stage.namespace)) == written


def _written(plane: ControlPlane, namespace: str) -> list[tuple[str, str, str]]:
    return [write for write in writes_but_leases(plane) if f"/namespaces/{namespace}/" in write[1]]
