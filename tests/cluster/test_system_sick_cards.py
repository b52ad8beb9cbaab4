"""A card that falls sick under a pod: the pod goes to the other card, and every accepted edit is answered."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from localcluster.cluster import Cluster
from support.kubectl import Kubectl, condition
from support.load import Tally
from support.resources import Resource
from support.system import OPERATOR_NAMESPACE, RELEASE

pytestmark = pytest.mark.timeout(300)
CARD = "huawei.com/Ascend910"


class Plugin:
    """What an Ascend device plugin writes besides: which card a pod holds, and which cards of the node are sick."""

    def __init__(self, kubectl: Kubectl) -> None:
        (node,) = kubectl.get("nodes")["items"]
        self.kubectl = kubectl
        self.node = node["metadata"]["name"]
        self.config_map = f"mindx-dl-deviceinfo-{self.node}"

    def says(self, *sick: str) -> None:
        """The ConfigMap of the node."""
        body = {"DeviceInfo": {"DeviceList": {f"{CARD}-Unhealthy": ",".join(sick)}, "UpdateTime": int(time.time())}}
        metadata = {"name": self.config_map, "namespace": "kube-system"}
        data = {"DeviceInfoCfg": json.dumps(body)}
        self.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    def tells_card_of(self, pod: dict[str, Any]) -> int:
        """Annotates the pod with the number of its card, and returns that."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        number = int(self.kubectl.run("exec", name, "-n", namespace, "--", "printenv", "ASCEND_VISIBLE_DEVICES"))
        real = f"huawei.com/AscendReal=Ascend910-{number}"
        self.kubectl.run("annotate", "pod", name, "-n", namespace, "--overwrite", real)
        return number


@pytest.fixture
def plugin(cluster: Cluster, installed: None, kubectl: Kubectl) -> Iterator[Plugin]:
    """The plugin's ConfigMap, in which all cards are well, and operators that did not look before it was there."""
    if not cluster.embedded:
        pytest.skip("KUBECONFIG names a cluster without simulated cards")
    made = Plugin(kubectl)
    made.says()
    deployment = ("deployment", RELEASE, "-n", OPERATOR_NAMESPACE)
    kubectl.run("rollout", "restart", *deployment)
    kubectl.run("rollout", "status", *deployment, "--timeout=120s", timeout_s=140)
    yield made
    kubectl.run("delete", "configmap", made.config_map, "-n", "kube-system")


def wait_degraded(resource: Resource) -> dict[str, Any]:
    """The condition, once it is True; at rest the operator looks every two minutes, so it is called."""

    def reached() -> bool:
        call = f"tests/called-at={time.monotonic():.0f}"
        name, namespace = resource.name, resource.namespace
        resource.kubectl.run("annotate", "imageeditdeployment", name, "-n", namespace, "--overwrite", call)
        return bool(condition(resource.read(), "Degraded")["status"] == "True")

    resource.wait_until("Degraded", reached)
    return condition(resource.read(), "Degraded")


def test_a_card_that_falls_sick_in_the_middle_of_edits_is_left_for_the_other_one(
    cluster: Cluster, plugin: Plugin, resource: Resource
) -> None:
    resource.wait_allocatable(2)
    resource.create(replicas=1)
    resource.wait_complete()
    first = resource.only_pod()
    card = plugin.tells_card_of(first)

    async def fall_sick() -> Tally:
        async with resource.load(clients=2) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 2)
            cluster.set_card_health(card, healthy=False)
            plugin.says(f"Ascend910-{card}")
            sick = await asyncio.to_thread(wait_degraded, resource)
            assert (
                f"pod {first['metadata']['name']} sits on card Ascend910-{card} of node {plugin.node}"
                in sick["message"]
            )
            gone = lambda: first["metadata"]["name"] not in {pod["metadata"]["name"] for pod in resource.pods()}  # noqa: E731
            await asyncio.to_thread(resource.wait_until, "the pod to leave", gone)
            await asyncio.to_thread(resource.wait_complete)
            answered = load.tally.answered
            await asyncio.to_thread(resource.wait_until, "answers again", lambda: load.tally.answered > answered + 2)
        return load.tally

    tally = asyncio.run(fall_sick())

    assert tally.lost_total == 0, tally
    assert plugin.tells_card_of(resource.only_pod()) != card
    resource.wait_condition("Degraded", status="False", reason="NoFault")
    (case,) = resource.read()["status"]["sickCards"]
    assert (case["pod"], case["card"]) == (first["metadata"]["name"], f"Ascend910-{card}")
    assert condition(resource.read(), "Ready")["status"] == "True"
