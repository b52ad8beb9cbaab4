"""Two field managers of one resource: each owns its part of the spec, and what one takes away is gone."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from apiserver.operator_plane import kubectl, resource
from apiserver.operator_pods import deployments
from apiserver.operator_scene import NAME, Scene, controlled, kube, scene  # noqa: F401 - fixtures
from imageedit_operator.kube.client import KubeClient, Manifest
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)


def apply(plane: ControlPlane, here: Scene, manager: str, **spec: Any) -> None:
    """`kubectl apply --server-side` of these fields as this manager; raises CalledProcessError."""
    whole = resource(NAME)
    manifest = {"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": {"name": NAME}, "spec": spec}
    arguments = ("apply", "--server-side", f"--field-manager={manager}", "-f", "-")
    kubectl(plane, "-n", here.namespace, *arguments, stdin=json.dumps(manifest))


def base(here: Scene) -> dict[str, Any]:
    """What team-a owns: all that must be there."""
    spec: dict[str, Any] = resource(NAME)["spec"]
    return {**spec, "accelerator": {"device": "cpu", "resourceName": here.node.card, "count": 1}}


async def template(here: Scene) -> dict[str, Any]:
    """The spec of the pods that serve."""
    await here.serving(1)
    (made,) = await deployments(here.kube, here.namespace, replicas=1)
    found: dict[str, Any] = made["spec"]["template"]["spec"]
    return found


def added(pod: Manifest, name: str) -> list[str]:
    """The values of this environment variable."""
    return [item.get("value", "") for item in pod["containers"][0]["env"] if item["name"] == name]


async def test_a_second_team_adds_to_the_pods_and_takes_it_away_again(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        apply(controlled, here, "team-a", **base(here))
        assert "priorityClassName" not in await template(here)

        own: dict[str, Any] = {"env": [{"name": "TEAM", "value": "b"}], "priorityClassName": "system-node-critical"}
        apply(controlled, here, "team-b", server=own)
        await here.condition("Progressing", "RollingOut")
        await here.condition("Progressing", "Complete")
        pod = await template(here)
        assert (added(pod, "TEAM"), pod["priorityClassName"]) == (["b"], "system-node-critical")

        apply(controlled, here, "team-b", server={"env": [{"name": "OTHER", "value": "c"}]})
        await here.condition("Progressing", "RollingOut")
        await here.condition("Progressing", "Complete")
        pod = await template(here)
        assert (added(pod, "TEAM"), added(pod, "OTHER"), "priorityClassName" in pod) == ([], ["c"], False)


async def test_a_field_of_the_other_team_is_refused_with_its_name(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        apply(controlled, here, "team-a", **base(here))
        with pytest.raises(subprocess.CalledProcessError) as caught:
            apply(controlled, here, "team-b", server={"image": "server:b"})
        assert 'conflict with "team-a": .spec.server.image' in caught.value.stderr
