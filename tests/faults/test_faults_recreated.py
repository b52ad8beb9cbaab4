"""A resource that is deleted in the middle of a rollout and made again under its name: it has pods of its own."""

from __future__ import annotations

from apiserver.operator_plane import eventually
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from faults.scene import NAME, scene
from imageedit_operator.core.stored import find
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, Resource
from localcluster.controlplane import ControlPlane

REPLICA_SETS = Resource(group="apps", version="v1", plural="replicasets")
SOON_S = 60.0


async def test_a_resource_made_again_does_not_take_the_pods_of_the_one_before_it(
    plane: ControlPlane, kube: KubeClient
) -> None:
    """The collector is held up at the old ReplicaSets, so that their pods live on beside the new resource."""
    async with scene(kube, cards=4) as stage, operator(plane.kubeconfig, *stage.flags()) as running:
        await stage.create()
        await stage.complete()
        await stage.roll("next")

        async def under_way() -> bool | None:
            return True if len(await kube.list_all(PODS, stage.namespace)) == 2 else None

        await eventually(under_way, what="the middle of the rollout")
        stage.observer.harmed = True
        held = {"metadata": {"finalizers": ["test.imageedit.dev/held"]}}
        sets = [item["metadata"]["name"] for item in await kube.list_all(REPLICA_SETS, stage.namespace)]
        for name in sets:
            await kube.patch(REPLICA_SETS, stage.namespace, name, held)
        old = await kube.get(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, NAME)
        await kube.delete(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, NAME, uid=old["metadata"]["uid"])
        left = {pod["metadata"]["uid"] for pod in await kube.list_all(PODS, stage.namespace)}
        await stage.create()

        async def serves() -> bool | None:
            return True if find(await status_of(kube, stage.namespace), "Ready").get("status") == "True" else None

        await eventually(serves, what="the new resource", within_s=SOON_S)
        pods = await kube.list_all(PODS, stage.namespace)
        assert [pod for pod in pods if pod["metadata"]["uid"] not in left], "it counts pods that are not its own"
        assert [pod for pod in pods if pod["metadata"]["uid"] in left], "the collector was not held up"
        new = await kube.get(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, NAME)
        for child in await kube.list_all(DEPLOYMENTS, stage.namespace):
            assert child["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]
        for name in sets:
            await kube.patch(REPLICA_SETS, stage.namespace, name, {"metadata": {"finalizers": None}})
        await stage.complete()
        assert running.process.returncode is None, running.messages()
