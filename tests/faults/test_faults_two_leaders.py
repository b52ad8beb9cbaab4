"""Two operators that act at the same time, as after a Lease that failed: no fight, no harm, one end."""

from __future__ import annotations

import asyncio

from apiserver.operator_plane import LONG_S, eventually, writes_but_leases
from apiserver.operator_process import PASSES, Operator, operator
from faults.scene import NAME, Scene, scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
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

            async def rests() -> bool | None:
                before = _written(plane, stage.namespace)
                await _make_look(stage, one, times=4)
                return True if _written(plane, stage.namespace) == before else None

            await eventually(rests, what="rest", within_s=2 * LONG_S)
            written = _written(plane, stage.namespace)
            await _make_look(stage, other, times=8)
            assert _written(plane, stage.namespace) == written


async def _make_look(stage: Scene, running: Operator, *, times: int) -> None:
    """Changes what means nothing and is an event all the same: at rest nothing else is looked at."""
    for number in range(times):
        before = await running.metric(PASSES)
        body = {"metadata": {"annotations": {"test.example/look": f"{before}-{number}"}}}
        await stage.kube.patch(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, NAME, body)

        async def looked(before: float = before) -> bool | None:
            return True if await running.metric(PASSES) > before else None

        await eventually(looked, what="a pass")


def _written(plane: ControlPlane, namespace: str) -> list[tuple[str, str, str]]:
    """What the operators wrote; the resource but its status is written by the test alone."""
    ours, tests = f"/namespaces/{namespace}/", f"/{IMAGE_EDIT_DEPLOYMENTS.plural}/{NAME}"
    return [
        write
        for write in writes_but_leases(plane)
        if ours in write[1] and not write[1].partition("?")[0].endswith(tests)
    ]
