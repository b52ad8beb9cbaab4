"""Pods that the real scheduler finds no place for: what is told of them, in its own words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from apiserver.operator_plane import client, eventually, install, kubectl, new_namespace
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from apiserver.operator_scene import NAME, Scene
from faults.node import Node
from imageedit_operator.core.stored import find
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, NODES, PODS, Resource
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)

CLAIMS = Resource(group="", version="v1", plural="persistentvolumeclaims")


@pytest.fixture(scope="module")
def scheduled() -> Iterator[ControlPlane]:
    """An apiserver with the controllers that make pods, and a scheduler."""
    made_by = ("deployment-controller", "replicaset-controller")
    with controlplane.up_only(with_controllers=made_by, with_scheduler=True) as started:
        install(started)
        yield started


@pytest.fixture
async def kube(scheduled: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client as the admin."""
    async with client(scheduled) as connected:
        yield connected


@asynccontextmanager
async def scene(plane: ControlPlane, kube: KubeClient, *, cards: int = 1) -> AsyncIterator[Scene]:
    """An operator, and a node with that many cards of its own type: pods are placed on it, and nobody runs them."""
    namespace = await new_namespace(kube)
    async with AsyncExitStack() as stack:
        node = Node(kube=kube, namespace=namespace, card=f"cards.test/{namespace}", stack=stack)
        name = await node.register(cards)
        here = Scene(kube=kube, namespace=namespace, node=node)
        async with operator(plane.kubeconfig, *here.flags):
            yield here
        stored = await kube.get(NODES, "", name)
        await kube.delete(NODES, "", name, uid=stored["metadata"]["uid"])


def model(claim: str) -> dict[str, Any]:
    return {"name": "m", "revision": "1", "source": {"pvc": {"claimName": claim}}}


ELSEWHERE = {"model": {"source": {"demo": None, "pvc": {"claimName": "nowhere"}}}}
NO_SUCH_NODE = {"accelerator": {"nodeSelector": {"no": "such-node"}}}


async def said(here: Scene, reason: str) -> dict[str, tuple[str, str, str]]:
    """The conditions once Progressing has this reason: status, reason and message of each."""
    await here.condition("Progressing", reason)
    conditions = (await status_of(here.kube, here.namespace))["conditions"]
    return {item["type"]: (item["status"], item["reason"], item["message"]) for item in conditions}


async def test_a_claim_that_does_not_exist_is_told_as_a_fault_of_the_volume(
    scheduled: ControlPlane, kube: KubeClient
) -> None:
    async with scene(scheduled, kube) as here:
        await here.create(model=model("nowhere"))
        found = await said(here, "VolumeNotReady")
        assert (
            'the scheduler says: persistentvolumeclaim "nowhere" not found; kubectl get pvc'
            in (found["Progressing"][2])
        )
        assert found["Ready"][:2] == found["Available"][:2] == ("False", "VolumeNotReady")
        assert found["WaitingForCard"][:2] == ("False", "VolumeNotReady")


@pytest.mark.parametrize("field", ["model", "server"])
async def test_a_claim_that_is_not_bound_is_told_by_its_name(
    scheduled: ControlPlane, kube: KubeClient, field: str
) -> None:
    async with scene(scheduled, kube) as here:
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "share"}, "spec": spec}
        await kube.create(CLAIMS, here.namespace, claim)
        volume = {"name": "extra", "mountPath": "/extra", "persistentVolumeClaim": {"claimName": "share"}}
        server = {"image": "server:1", "sizes": ["128x128"], "volumes": [volume]}
        await here.create(**({"model": model("share")} if field == "model" else {"server": server}))
        found = await said(here, "VolumeNotReady")
        assert "pod has unbound immediate PersistentVolumeClaims (share)" in found["Progressing"][2]


async def test_a_card_that_another_pod_holds_is_waited_for(scheduled: ControlPlane, kube: KubeClient) -> None:
    async with scene(scheduled, kube, cards=1) as here:
        await here.create(replicas=2)
        found = await said(here, "WaitingForCard")
        assert found["WaitingForCard"][0] == "True"
        assert here.node.card in found["WaitingForCard"][2]


async def test_a_taint_of_the_cards_name_is_no_lack_of_a_card(scheduled: ControlPlane, kube: KubeClient) -> None:
    async with scene(scheduled, kube) as here:
        (name,) = here.node.cards
        taint = {"key": here.node.card, "value": "present", "effect": "NoSchedule"}
        await kube.patch(NODES, "", name, {"spec": {"taints": [taint]}})
        await here.create()
        found = await said(here, "Unschedulable")
        assert "untolerated taint" in found["Progressing"][2]
        assert found["WaitingForCard"][:2] == ("False", "Unschedulable")


@pytest.mark.parametrize(("change", "reason"), [(ELSEWHERE, "VolumeNotReady"), (NO_SUCH_NODE, "Unschedulable")])
async def test_no_pod_that_runs_is_drained_for_one_that_no_node_takes(
    scheduled: ControlPlane, kube: KubeClient, change: dict[str, Any], reason: str
) -> None:
    async with scene(scheduled, kube, cards=1) as here:
        await here.create()
        first = await placed(here)
        await played_warm(scheduled, here, first)
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, {"spec": change})
        await said(here, reason)
        pods = await kube.list_all(PODS, here.namespace)
        (old,) = [pod for pod in pods if pod["metadata"]["name"] == first]
        assert find(old["status"], "imageedit.dev/warm").get("reason") != "Draining"
        assert "deletionTimestamp" not in old["metadata"]


async def placed(here: Scene) -> str:
    """The name of the pod that the scheduler placed."""

    async def look() -> str | None:
        pods = await here.kube.list_all(PODS, here.namespace)
        return next((pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")), None)

    return await eventually(look, what="a pod with a node")


async def played_warm(plane: ControlPlane, here: Scene, name: str) -> None:
    """The pod serves, as its kubelet and the operator would say."""
    conditions = [
        {"type": "imageedit.dev/warm", "status": "True", "reason": "Warm", "message": "container containerd://1: warm"},
        {"type": "Ready", "status": "True"},
    ]
    container = {
        "name": "server",
        "image": "server:1",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "containerID": "containerd://1",
        "state": {"running": {"startedAt": "2026-11-30T03:00:00Z"}},
    }
    body = {"status": {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}}
    kubectl(plane, "patch", "pod", name, "-n", here.namespace, "--subresource=status", "-p", json.dumps(body))
    await here.condition("Ready", "AllPodsServe")
