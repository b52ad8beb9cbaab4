"""What the watches tell of harm by hand: it is mended within seconds, however rarely the operator lists, and told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apiserver.operator_plane import eventually, kubectl
from apiserver.operator_pods import deployments
from apiserver.operator_process import Operator, operator
from apiserver.operator_scene import NAME, Scene, controlled, kube, stage  # noqa: F401 - fixtures
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, EVENTS, SERVICES, Resource
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
LISTED = "imageedit_operator_last_resync_timestamp_seconds"
SECONDS = 8.0
"""A look comes a second after a change, and the machine may be busy."""


@asynccontextmanager
async def serving(plane: ControlPlane, kube: KubeClient) -> AsyncIterator[tuple[Scene, Operator]]:  # noqa: F811
    """A resource that serves, and an operator whose next list is an hour away."""
    async with stage(kube) as here:
        flags = ("--namespaces", here.namespace, "--leader-elect", "off", "--resync", "3600")
        async with operator(plane.kubeconfig, *flags) as running:

            async def listed() -> float | None:
                return await running.metric(LISTED) or None

            first = await eventually(listed, what="the first list")

            async def again() -> bool | None:
                return True if await running.metric(LISTED) > first else None

            await here.create()
            await here.serving(1)
            await eventually(again, what="the list that follows the beginning of the watches")
            yield here, running


async def noted(here: Scene, words: str) -> Manifest:
    """Waits for the Event PutBack with these words."""

    async def look() -> Manifest | None:
        found = await here.kube.list_all(EVENTS, here.namespace)
        return next((one for one in found if one["reason"] == "PutBack" and words in one["note"]), None)

    return await eventually(look, what=f"Event PutBack: {words}", within_s=SECONDS)


async def as_it_was(here: Scene, before: Manifest) -> None:
    """Waits for the Service with the spec and the labels that it had."""

    async def look() -> bool | None:
        now = await here.kube.get(SERVICES, here.namespace, NAME)
        same = now["spec"] == before["spec"] and now["metadata"].get("labels") == before["metadata"]["labels"]
        return True if same else None

    await eventually(look, what="the Service as it was", within_s=SECONDS)


async def another(here: Scene, kind: Resource, name: str, *, than: str) -> None:
    """Waits for the object of this name with another uid."""

    async def look() -> bool | None:
        found = [item["metadata"] for item in await here.kube.list_all(kind, here.namespace)]
        return True if any(one["name"] == name and one["uid"] != than for one in found) else None

    await eventually(look, what=f"{kind.plural} {name}", within_s=SECONDS)


async def test_a_service_whose_selector_somebody_changed_is_mended_within_seconds(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with serving(controlled, kube) as (here, running):
        before, listed = await kube.get(SERVICES, here.namespace, NAME), await running.metric(LISTED)
        change = '{"spec": {"selector": {"app.kubernetes.io/component": "other"}}}'
        kubectl(controlled, "-n", here.namespace, "patch", "service", NAME, "--type=merge", "-p", change)
        await as_it_was(here, before)
        told = await noted(here, "Service edit was changed and is put back: spec.selector")
        assert told["type"] == "Warning"
        assert await running.metric(LISTED) == listed


async def test_a_service_whose_port_somebody_gave_another_number_is_mended_within_seconds(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    """An apply alone would put the port beside the other of its name, which the apiserver refuses."""
    async with serving(controlled, kube) as (here, _):
        before = await kube.get(SERVICES, here.namespace, NAME)
        change = '[{"op": "replace", "path": "/spec/ports/0/port", "value": 8080}]'
        kubectl(controlled, "-n", here.namespace, "patch", "service", NAME, "--type=json", "-p", change)
        await as_it_was(here, before)
        await noted(here, "Service edit was changed and is put back: spec.ports[port=80,protocol=TCP] taken away")


async def test_a_service_whose_labels_somebody_took_away_gets_them_back_within_seconds(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    """The watch, which asks for our labels, tells that it is gone."""
    async with serving(controlled, kube) as (here, running):
        before, listed = await kube.get(SERVICES, here.namespace, NAME), await running.metric(LISTED)
        change = '{"metadata": {"labels": null}}'
        kubectl(controlled, "-n", here.namespace, "patch", "service", NAME, "--type=merge", "-p", change)
        await as_it_was(here, before)
        await noted(here, "metadata.labels taken away")
        assert (await kube.get(SERVICES, here.namespace, NAME))["metadata"]["uid"] == before["metadata"]["uid"]
        assert await running.metric(LISTED) == listed


async def test_a_service_that_somebody_deleted_is_back_within_seconds_and_that_is_told(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with serving(controlled, kube) as (here, running):
        before, listed = await kube.get(SERVICES, here.namespace, NAME), await running.metric(LISTED)
        kubectl(controlled, "-n", here.namespace, "delete", "service", NAME, "--wait=false")
        await another(here, SERVICES, NAME, than=before["metadata"]["uid"])
        await noted(here, "Service edit was deleted and is made anew")
        assert await running.metric(LISTED) == listed


async def test_a_deployment_that_somebody_deleted_is_back_within_seconds_and_that_is_told(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with serving(controlled, kube) as (here, running):
        (made,) = await deployments(kube, here.namespace)
        name, listed = made["metadata"]["name"], await running.metric(LISTED)
        kubectl(controlled, "-n", here.namespace, "delete", "deployment", name, "--wait=false")
        await another(here, DEPLOYMENTS, name, than=made["metadata"]["uid"])
        await noted(here, f"Deployment {name} was deleted and is made anew")
        assert await running.metric(LISTED) == listed
