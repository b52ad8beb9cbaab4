"""A server's container that dies in the middle of a rollout: it counts for nothing until it is proven warm again."""

from __future__ import annotations

import asyncio
from typing import Any

from apiserver.operator_plane import eventually
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from faults.node import REVISION, condition
from faults.scene import Scene, scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS
from imageedit_operator.kube.parsing import WARM_GATE
from localcluster.controlplane import ControlPlane

STANDS_S = 8.0


async def test_a_rollout_waits_for_a_pod_whose_container_was_killed_until_its_next_one_is_warm(
    plane: ControlPlane, kube: KubeClient
) -> None:
    async with scene(kube, replicas=2, cards=3) as stage, operator(plane.kubeconfig, *stage.flags()) as running:
        await stage.create()
        await stage.complete()
        old = str((await status_of(kube, stage.namespace))["currentRevision"])
        await stage.roll("next")
        new = await _first_warm_pod(stage, besides=old)
        await stage.node.restart(new)

        async def closed() -> bool | None:
            pod = await kube.get(PODS, stage.namespace, new["metadata"]["name"])
            return True if condition(pod, WARM_GATE) == "False" else None

        await eventually(closed, what="the gate of the new container")
        for _ in range(int(STANDS_S)):
            await asyncio.sleep(1)
            pods = {p["metadata"]["uid"]: p for p in await kube.list_all(PODS, stage.namespace)}
            assert condition(pods[new["metadata"]["uid"]], WARM_GATE) == "False"
            serving = [p for p in pods.values() if p["metadata"]["labels"][REVISION] == old and _serves(p)]
            assert serving, "an old pod that serves left for one that was not warm"
            assert (await status_of(kube, stage.namespace))["readyReplicas"] <= len(serving)
        stage.node.cold.clear()
        await stage.complete()
        assert running.process.returncode is None, running.messages()


def _serves(pod: dict[str, Any]) -> bool:
    return condition(pod, WARM_GATE) == "True" and "deletionTimestamp" not in pod["metadata"]


async def _first_warm_pod(stage: Scene, *, besides: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        pods = await stage.kube.list_all(PODS, stage.namespace)
        warm = [pod for pod in pods if pod["metadata"]["labels"][REVISION] != besides and _serves(pod)]
        return warm[0] if warm else None

    return await eventually(look, what="the first warm pod of the new revision")
