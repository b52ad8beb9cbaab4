"""Children that somebody deletes, changes, takes over, or has the name of, against a real apiserver."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from apiserver.operator_plane import create_resource, eventually, kubectl, resource
from apiserver.operator_pods import deployments
from apiserver.operator_scene import NAME, TWO_LISTS_S, Scene, controlled, kube, scene  # noqa: F401 - fixtures
from faults.node import condition
from imageedit_operator.core.pod_template import claim_template_name
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import (
    BUDGETS,
    CLAIM_TEMPLATES,
    DEPLOYMENTS,
    EVENTS,
    IMAGE_EDIT_DEPLOYMENTS,
    PODS,
    SERVICES,
)
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
CLAIMED = {"injection": "DRA", "deviceClassName": "npu.example.com"}
"""Pods that claim their card: a resource with every kind of child."""
PARSED = parse(resource(NAME, accelerator=CLAIMED))
NAMES = {
    "Deployment": deployment_name(NAME, revision_hash(PARSED)),
    "Service": NAME,
    "PodDisruptionBudget": NAME,
    "ResourceClaimTemplate": claim_template_name(PARSED),
}
KINDS = {
    "Deployment": DEPLOYMENTS,
    "Service": SERVICES,
    "PodDisruptionBudget": BUDGETS,
    "ResourceClaimTemplate": CLAIM_TEMPLATES,
}


def foreign(kind: str) -> Manifest:
    """An object of somebody else's with the name of this child."""
    labels = {"app": "other"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
    request = {"name": "r", "exactly": {"deviceClassName": "other"}}
    specs: dict[str, dict[str, Any]] = {
        "Deployment": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
        "Service": {"selector": labels, "ports": [{"port": 80}]},
        "PodDisruptionBudget": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        "ResourceClaimTemplate": {"spec": {"devices": {"requests": [request]}}},
    }
    found = KINDS[kind]
    version = f"{found.group}/{found.version}" if found.group else found.version
    return {"apiVersion": version, "kind": kind, "metadata": {"name": NAMES[kind]}, "spec": specs[kind]}


async def child(here: Scene, kind: str, *, other_than: str = "") -> Manifest:
    """Waits for the child of this kind."""

    async def look() -> Manifest | None:
        found = (item for item in await here.kube.list_all(KINDS[kind], here.namespace))
        ours = (item for item in found if item["metadata"]["name"] == NAMES[kind])
        return next((item for item in ours if item["metadata"]["uid"] != other_than), None)

    return await eventually(look, what=f"{kind} {NAMES[kind]}")


async def event(here: Scene, reason: str, words: str) -> None:
    """Waits for an Event."""

    async def look() -> bool | None:
        found = await here.kube.list_all(EVENTS, here.namespace)
        return True if any(item["reason"] == reason and words in item["note"] for item in found) else None

    await eventually(look, what=f"Event {reason}: {words}")


async def one_that_serves(here: Scene) -> Manifest:
    """The Deployment of a resource with one pod that serves."""
    await here.create()
    await here.serving(1)
    (made,) = await deployments(here.kube, here.namespace)
    return made


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_that_was_deleted_is_made_again(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
    kind: str,
) -> None:
    async with scene(controlled, kube) as here:
        await create_resource(kube, here.namespace, NAME, accelerator=CLAIMED)
        before = (await child(here, kind))["metadata"]["uid"]
        kubectl(controlled, "-n", here.namespace, "delete", kind.lower(), NAMES[kind], "--wait=false")
        again = await child(here, kind, other_than=before)
        assert again["metadata"]["ownerReferences"][0]["name"] == NAME


@pytest.mark.parametrize("kind", KINDS)
async def test_an_object_of_somebody_else_is_never_taken_over_and_is_named_until_it_is_gone(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
    kind: str,
) -> None:
    async with scene(controlled, kube) as here:
        stored = await kube.create(KINDS[kind], here.namespace, foreign(kind))
        await create_resource(kube, here.namespace, NAME, accelerator=CLAIMED)

        said = await here.condition("ChildrenIntact", "NameConflict")
        assert said["message"].startswith(f"{kind} {NAMES[kind]} exists")
        now = await kube.get(KINDS[kind], here.namespace, NAMES[kind])
        assert (now["spec"], now["metadata"].get("ownerReferences")) == (stored["spec"], None)

        await kube.delete(KINDS[kind], here.namespace, NAMES[kind], uid=stored["metadata"]["uid"])
        await child(here, kind, other_than=stored["metadata"]["uid"])
        await here.condition("ChildrenIntact", "AsWritten")


async def test_a_deployment_that_lost_its_owner_is_not_adopted_until_it_gets_it_back(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        made = await one_that_serves(here)
        name, owners = made["metadata"]["name"], made["metadata"]["ownerReferences"]
        await kube.patch(DEPLOYMENTS, here.namespace, name, {"metadata": {"ownerReferences": None}})

        said = await here.condition("ChildrenIntact", "NameConflict")
        assert f"Deployment {name} exists and belongs to nobody" in said["message"]
        assert "ownerReferences" not in (await kube.get(DEPLOYMENTS, here.namespace, name))["metadata"]

        await kube.patch(DEPLOYMENTS, here.namespace, name, {"metadata": {"ownerReferences": owners}})
        await here.condition("ChildrenIntact", "AsWritten")
        await here.condition("Ready", "AllPodsServe")


async def test_an_orphan_of_an_earlier_revision_is_named(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        name = (await one_that_serves(here))["metadata"]["name"]
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, {"spec": {"model": {"revision": "2"}}})
        await deployments(kube, here.namespace, count=1, replicas=0)
        await here.serving(1)
        await kube.patch(DEPLOYMENTS, here.namespace, name, {"metadata": {"ownerReferences": None}})
        assert f"Deployment {name}" in (await here.condition("ChildrenIntact", "Orphaned"))["message"]


async def test_a_pod_template_that_somebody_changed_is_left_and_shown_until_the_next_revision(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        name = (await one_that_serves(here))["metadata"]["name"]
        kubectl(controlled, "-n", here.namespace, "set", "image", f"deployment/{name}", "server=server:by-hand")

        said = await here.condition("ChildrenIntact", "FieldsChanged")
        assert "spec.template.spec.containers[name=server].image by kubectl" in said["message"]
        await here.serving(1)
        left = await kube.get(DEPLOYMENTS, here.namespace, name)
        assert left["spec"]["template"]["spec"]["containers"][0]["image"] == "server:by-hand"

        annotations = {"metadata": {"annotations": {"imageedit.dev/restarted-at": "now"}}}
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, annotations)
        await here.condition("ChildrenIntact", "AsWritten")


async def test_pods_whose_template_somebody_changed_leave_one_by_one(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube, cards=2) as here:
        await here.create(replicas=2)
        before = set(await here.serving(2))
        (name,) = [one["metadata"]["name"] for one in await deployments(kube, here.namespace, replicas=2)]
        kubectl(controlled, "-n", here.namespace, "rollout", "restart", f"deployment/{name}")

        ready: list[int] = []

        async def replaced() -> bool | None:
            pods = await kube.list_all(PODS, here.namespace)
            ready.append(sum(condition(pod, "Ready") == "True" for pod in pods))
            return True if pods and before.isdisjoint(pod["metadata"]["name"] for pod in pods) else None

        await eventually(replaced, what="two other pods")
        await here.serving(2)
        assert min(ready) >= 1


async def test_fields_that_somebody_took_from_a_deployment_are_shown_and_not_fought_over(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        name = (await one_that_serves(here))["metadata"]["name"]
        pod = "/spec/template/spec"
        change = removal(f"{pod}/readinessGates", f"{pod}/containers/0/env/0", f"{pod}/enableServiceLinks")
        kubectl(controlled, "-n", here.namespace, "patch", "deployment", name, "--type=json", "-p", change)

        said = (await here.condition("ChildrenIntact", "FieldsChanged"))["message"]
        for field in ("readinessGates", "containers[name=server].env[name=IMAGEEDIT_DEPLOYMENT]", "enableServiceLinks"):
            assert f"spec.template.spec.{field} taken away" in said
        await here.serving(1)
        changed = (await kube.get(DEPLOYMENTS, here.namespace, name))["metadata"]["generation"]

        await asyncio.sleep(TWO_LISTS_S)
        assert (await kube.get(DEPLOYMENTS, here.namespace, name))["metadata"]["generation"] == changed


async def test_a_field_that_somebody_took_from_an_earlier_revision_that_still_serves_is_shown(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        name = (await one_that_serves(here))["metadata"]["name"]
        later = {"spec": {"model": {"revision": "2"}, "rollout": {"paused": True}}}
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, later)
        await here.condition("Progressing", "Paused")
        await here.condition("ChildrenIntact", "AsWritten")
        change = removal("/spec/template/spec/enableServiceLinks")
        kubectl(controlled, "-n", here.namespace, "patch", "deployment", name, "--type=json", "-p", change)

        said = (await here.condition("ChildrenIntact", "FieldsChanged"))["message"]
        assert f"Deployment {name} was changed: spec.template.spec.enableServiceLinks taken away" in said


def removal(*paths: str) -> str:
    """A JSON patch that takes away what stands there."""
    return json.dumps([{"op": "remove", "path": path} for path in paths])


A_LABEL, FOUND_BY, REVISION = (
    f"/metadata/labels/{name}"
    for name in ("app.kubernetes.io~1name", "imageedit.dev~1deployment", "imageedit.dev~1revision")
)


@pytest.mark.parametrize(
    ("kind", "paths", "words"),
    [
        ("Service", ["/spec/ports/0/name", A_LABEL], "spec.ports[port=80,protocol=TCP].name taken away"),
        ("PodDisruptionBudget", ["/spec/unhealthyPodEvictionPolicy"], "spec.unhealthyPodEvictionPolicy taken away"),
        ("Deployment", [A_LABEL, FOUND_BY, REVISION], "the labels app.kubernetes.io/name, imageedit.dev/deployment"),
    ],
)
async def test_what_can_come_back_without_a_restart_comes_back_and_that_is_told(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
    kind: str,
    paths: list[str],
    words: str,
) -> None:
    async with scene(controlled, kube) as here:
        await here.create()
        pods, name = await here.serving(1), deployment_of(await deployments(here.kube, here.namespace))
        child_name = name if kind == "Deployment" else NAME
        before = await kube.get(KINDS[kind], here.namespace, child_name)
        change = removal(*paths)
        kubectl(controlled, "-n", here.namespace, "patch", kind.lower(), child_name, "--type=json", "-p", change)
        await event(here, "PutBack", f"{kind} {child_name} was changed and is put back: ")
        await event(here, "PutBack", words)

        async def put_back() -> bool | None:
            now = await kube.get(KINDS[kind], here.namespace, child_name)
            same = (now["spec"], now["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])
            return True if same else None

        await eventually(put_back, what=f"{kind} as it was")
        assert await here.serving(1) == pods


def deployment_of(found: list[Manifest]) -> str:
    """The name of the only one."""
    (made,) = found
    return str(made["metadata"]["name"])


async def test_a_deployment_that_somebody_scales_goes_back_and_that_is_told(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        name = (await one_that_serves(here))["metadata"]["name"]
        kubectl(controlled, "-n", here.namespace, "scale", "deployment", name, "--replicas=2")
        await event(here, "PutBack", "was scaled by kubectl and goes to 1 replicas")
        await deployments(kube, here.namespace)
        await here.serving(1)


async def test_a_service_to_whose_selector_somebody_added_a_label_goes_back_and_that_is_told(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create()
        wanted = (await child(here, "Service"))["spec"]["selector"]
        change = '{"spec": {"selector": {"app": "other"}}}'
        kubectl(controlled, "-n", here.namespace, "patch", "service", NAME, "--type=merge", "-p", change)
        await event(here, "PutBack", "Service edit was changed and is put back: spec.selector")

        async def put_back() -> bool | None:
            return True if (await child(here, "Service"))["spec"]["selector"] == wanted else None

        await eventually(put_back, what="the selector")
