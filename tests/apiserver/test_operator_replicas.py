"""Who owns the number of pods: the spec, which others write by the scale subresource, or the operator's autoscaling."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from apiserver.operator_plane import eventually, kubectl, resource
from apiserver.operator_pods import deployments, status_of
from apiserver.operator_scene import NAME, Scene, controlled, kube, scene, stage  # noqa: F401 - fixtures
from imageedit_operator.core.stored import find
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, EVENTS, IMAGE_EDIT_DEPLOYMENTS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
AUTOSCALING = {"maxReplicas": 4, "metrics": {"prometheus": {"address": "http://127.0.0.1:1"}}}


async def managers_of_spec(here: Scene) -> set[str]:
    """Who owns fields of the spec."""
    stored = await here.kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
    return {entry["manager"] for entry in stored["metadata"]["managedFields"] if "f:spec" in entry["fieldsV1"]}


async def owners_of_replicas(here: Scene) -> list[str]:
    """Who owns `spec.replicas`, as the apiserver records it."""
    stored = await here.kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
    entries = stored["metadata"]["managedFields"]
    return [entry["manager"] for entry in entries if "f:replicas" in entry["fieldsV1"].get("f:spec", {})]


async def events(here: Scene, reason: str) -> list[Mapping[str, Any]]:
    return [item for item in await here.kube.list_all(EVENTS, here.namespace) if item["reason"] == reason]


async def test_a_horizontal_pod_autoscaler_owns_replicas_and_the_operator_follows_it(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create()
        await here.serving(1)
        # No metrics are served here: what remains to the autoscaler is to keep its bounds.
        kubectl(controlled, "-n", here.namespace, "autoscale", "ied", NAME, "--min=2", "--max=4", "--cpu=50%")

        await here.serving(2)
        said = await here.condition("ScalingActive", "ScaledByOthers")
        assert (said["status"], "kube-controller-manager" in said["message"]) == ("False", True)
        stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
        assert stored["spec"]["replicas"] == stored["status"]["desiredReplicas"] == 2
        assert "kube-controller-manager" in await managers_of_spec(here)
        # The only owner of the number of each Deployment is the operator.
        (made,) = await deployments(kube, here.namespace, replicas=2)
        entries = made["metadata"]["managedFields"]
        owners = {item["manager"] for item in entries if "f:replicas" in item["fieldsV1"].get("f:spec", {})}
        assert owners == {"imageedit-operator"}


async def test_who_scales_a_resource_that_was_applied_without_replicas_is_noticed_though_nobody_records_it(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        accelerator = {"device": "cpu", "resourceName": here.node.card, "count": 1}
        manifest = json.dumps(resource(NAME, accelerator=accelerator))
        kubectl(controlled, "-n", here.namespace, "apply", "--server-side", "-f", "-", stdin=manifest)
        await here.serving(1)
        kubectl(controlled, "-n", here.namespace, "scale", "ied", NAME, "--replicas=2")

        await here.serving(2)
        assert await owners_of_replicas(here) == []
        assert "somebody writes spec.replicas" in (await here.condition("ScalingActive", "ScaledByOthers"))["message"]


async def test_a_scale_to_zero_takes_the_writers_name_away_and_is_noticed(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(replicas=2)
        await here.serving(2)
        kubectl(controlled, "-n", here.namespace, "scale", "ied", NAME, "--replicas=1")
        assert "kubectl writes spec.replicas" in (await here.condition("ScalingActive", "ScaledByOthers"))["message"]
        kubectl(controlled, "-n", here.namespace, "scale", "ied", NAME, "--replicas=0")

        await here.serving(0)
        assert await owners_of_replicas(here) == []
        assert "somebody writes spec.replicas" in (await here.condition("ScalingActive", "ScaledByOthers"))["message"]


async def test_another_number_is_not_applied_while_the_scaler_is_recorded(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with stage(kube) as here:
        await here.create(replicas=1)
        kubectl(controlled, "-n", here.namespace, "scale", "ied", NAME, "--replicas=2")
        assert await owners_of_replicas(here) == ["kubectl"]
        manifest = json.dumps({**resource(NAME), "spec": {"replicas": 3}})
        apply = ("-n", here.namespace, "apply", "--server-side", "--field-manager=team", "-f", "-")
        with pytest.raises(subprocess.CalledProcessError) as refused:
            kubectl(controlled, *apply, stdin=manifest)
        assert 'conflict with "kubectl" with subresource "scale"' in refused.value.stderr


async def test_a_scale_while_autoscaling_decides_moves_no_pod_and_is_answered(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(autoscaling=AUTOSCALING)
        await here.serving(1)
        kubectl(controlled, "-n", here.namespace, "scale", "ied", NAME, "--replicas=3")

        async def told() -> Mapping[str, Any] | None:
            return next(iter(await events(here, "ReplicasIgnored")), None)

        assert "spec.replicas 1 -> 3 has no effect" in (await eventually(told, what="the Event"))["note"]
        status = await status_of(kube, here.namespace)
        assert "which kubectl wrote" in find(status, "ScalingActive")["message"]
        assert status["desiredReplicas"] == 1
        assert [item["spec"]["replicas"] for item in await kube.list_all(DEPLOYMENTS, here.namespace)] == [1]


async def test_without_autoscaling_the_number_that_was_scaled_to_rules(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(autoscaling=AUTOSCALING)
        await here.serving(1)
        kubectl(controlled, "-n", here.namespace, "scale", "ied", NAME, "--replicas=2")
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, {"spec": {"autoscaling": None}})
        await here.serving(2)
        assert "kubectl writes spec.replicas" in (await here.condition("ScalingActive", "ScaledByOthers"))["message"]
