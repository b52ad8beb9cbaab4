"""Evictions of server pods against the real eviction API and the real disruption controller."""

from __future__ import annotations

import pytest

from apiserver.operator_plane import LONG_S, eventually
from apiserver.operator_scene import NAME, Scene, controlled, kube, scene  # noqa: F401 - fixtures
from imageedit_operator.core.budget import PATIENCE_S
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import BUDGETS, Resource
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)


async def evict(here: Scene, pod: str) -> bool:
    """Asks as `kubectl drain` does; False when the budget says to try again later."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    try:
        await here.kube.create(Resource(group="", version="v1", plural=f"pods/{pod}/eviction"), here.namespace, body)
    except ApiError as error:
        if error.status == 429:
            return False
        raise
    return True


async def evictable(here: Scene, pod: str) -> None:
    """Asks until it is evicted."""

    async def look() -> bool | None:
        return True if await evict(here, pod) else None

    await eventually(look, what=f"the eviction of {pod}", within_s=PATIENCE_S + LONG_S)


async def budgets(here: Scene) -> list[Manifest]:
    return await here.kube.list_all(BUDGETS, here.namespace)


async def test_one_pod_may_be_evicted_and_the_next_only_when_its_replacement_serves(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube, cards=3) as here:
        await here.create(replicas=2)
        first, second = await here.serving(2)
        await evictable(here, first)
        assert not await evict(here, second)
        assert second in await here.serving(2)
        await evictable(here, second)


async def test_the_only_pod_may_be_evicted(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(replicas=1)
        (only,) = await here.serving(1)
        await evictable(here, only)


async def test_a_pod_that_finds_no_card_does_not_hold_up_the_eviction_of_those_that_serve(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube, cards=1) as here:
        await here.create(replicas=2)
        (only,) = await here.serving(1)
        await here.condition("WaitingForCard", "WaitingForCard")
        await evictable(here, only)
        (budget,) = await budgets(here)
        assert budget["spec"]["maxUnavailable"] == 2


async def test_a_budget_of_ones_own_takes_the_place_of_the_operators(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(replicas=1)
        (only,) = await here.serving(1)
        selector = {"matchLabels": {"imageedit.dev/deployment": NAME}}
        own = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "own"}}
        await kube.create(BUDGETS, here.namespace, {**own, "spec": {"minAvailable": 0, "selector": selector}})

        async def alone() -> bool | None:
            return True if [item["metadata"]["name"] for item in await budgets(here)] == ["own"] else None

        await eventually(alone, what="the operator's budget to go")
        # With two budgets on a pod the eviction API answers with an error to everybody.
        await evictable(here, only)
