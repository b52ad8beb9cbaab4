"""A resource that is nested deeper than Python reads by itself: it is refused, and nobody else notices."""

from __future__ import annotations

import json

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    eventually,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    resource,
)
from apiserver.operator_pods import status_of
from apiserver.operator_process import operator
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)
LEVELS = 9_900
"""An apiserver takes 10,000 in all."""
RESTARTS = "imageedit_operator_watch_restarts_total"


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")], ids=["lists", "maps"])
async def test_a_resource_of_ten_thousand_levels_is_refused_and_the_others_are_served(
    plane: ControlPlane,  # noqa: F811
    opened: str,
    closed: str,
) -> None:
    text = json.dumps(resource("deep", replicas=0, template={"spec": {"x": "nested"}}))
    deep = text.replace('"nested"', opened * LEVELS + "1" + closed * LEVELS)
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        kubectl(plane, "create", "--validate=false", "-n", namespace, "-f", "-", stdin=deep)
        await create_resource(kube, namespace, "fine", replicas=0)

        async def refused() -> bool | None:
            words = kubectl(plane, "get", "imageeditdeployment", "deep", "-n", namespace, "-o", "jsonpath={.status}")
            return True if "nested more than" in words else None

        async def followed() -> bool | None:
            return True if (await status_of(kube, namespace, "fine")).get("desiredReplicas") == 2 else None

        async with operator(plane.kubeconfig, "--namespaces", namespace) as running:
            await eventually(refused, what="the words why it is refused")
            await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "fine", {"spec": {"replicas": 2}})
            await eventually(followed, what="a change of another resource that a watch told")
            assert await running.metric(RESTARTS) == 0
            assert not running.ended()
