"""A node that goes away in the middle of everything: its cards do not count, and nothing waits for its pods."""

from __future__ import annotations

from typing import Any

from apiserver.operator_plane import eventually
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from faults.scene import scene
from imageedit_operator.core.stored import find
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS
from localcluster.controlplane import ControlPlane

SOON_S = 60.0
"""Far less than the drain timeout of ten minutes, which a pod on a lost node would use up."""


async def test_a_rollout_does_not_wait_for_a_pod_on_a_lost_node(plane: ControlPlane, kube: KubeClient) -> None:
    async with (
        scene(kube, replicas=2, cards=(1, 1, 1)) as stage,
        operator(plane.kubeconfig, *stage.flags()) as running,
    ):
        await stage.create()
        await stage.complete()
        pods = await kube.list_all(PODS, stage.namespace)
        gone = pods[0]["spec"]["nodeName"]
        await stage.node.lose(gone)
        await stage.roll("next")

        async def rolled() -> dict[str, Any] | None:
            status = await status_of(kube, stage.namespace)
            new = status.get("updateRevision") != pods[0]["metadata"]["labels"]["imageedit.dev/revision"]
            return status if new and find(status, "Ready").get("status") == "True" else None

        status = await eventually(rolled, what="the end of the rollout", within_s=SOON_S)
        stuck = [p for p in await kube.list_all(PODS, stage.namespace) if p["spec"]["nodeName"] == gone]
        assert stuck, "its kubelet is gone: nobody confirms that its pod ended"
        # The card of the lost node does not count. How many are free is told as of some seconds ago: no test of it.
        assert status["cards"]["allocatable"] == 2
        await stage.node.remove(gone)
        await stage.complete()
        assert running.process.returncode is None, running.messages()


async def test_a_pod_on_a_lost_node_is_named_and_replaced_when_a_card_comes(
    plane: ControlPlane, kube: KubeClient
) -> None:
    async with scene(kube, cards=1) as stage, operator(plane.kubeconfig, *stage.flags()):
        await stage.create()
        await stage.complete()
        stage.observer.harmed = True
        (pod,) = await kube.list_all(PODS, stage.namespace)
        gone = pod["spec"]["nodeName"]
        await stage.node.lose(gone)

        async def said(reason: str, words: str) -> None:
            async def look() -> bool | None:
                found = find(await status_of(kube, stage.namespace), "Available")
                right = found.get("status") == "False" and found.get("reason") == reason and words in found["message"]
                return True if right else None

            await eventually(look, what=f"{reason} with {words}", within_s=SOON_S)

        await said("NodeLost", gone)
        await kube.delete(PODS, stage.namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"])  # the eviction
        await said("WaitingForCard", stage.node.card)
        await stage.node.register(1)

        async def serves() -> bool | None:
            return True if find(await status_of(kube, stage.namespace), "Ready").get("status") == "True" else None

        await eventually(serves, what="the replacement", within_s=SOON_S)
        await stage.node.remove(gone)
        await stage.complete()
