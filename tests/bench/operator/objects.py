"""What the objects cost, whoever makes them: those of a start, made by one client, without an operator.

It is the least that a start can take on a machine whose processor is the limit. The gate of each pod is opened by
kwok, and one status is written for each resource, before its pod is ready; reads, Events and passes are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.figures import Figure
from bench.operator.fleet import HASH, HOW, Place, is_available, places, ready_s, resource, rounded
from bench.operator.world import World
from imageedit_operator.core.actions import ApplyBudget, ApplyService, CreateDeployment
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import deployment_name
from imageedit_operator.kube.kinds import BUDGETS, DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, SERVICES

KIND_OF = {ApplyService: SERVICES, ApplyBudget: BUDGETS, CreateDeployment: DEPLOYMENTS}


async def objects_s(world: World, count: int, tell: Callable[[str], None]) -> float | None:
    """Everything that a start makes, in a world whose gates open by themselves."""

    async def create(place: Place) -> None:
        await _make(world, *place)

    return await ready_s(
        world,
        DEPLOYMENTS,
        places("alone", count),
        create=create,
        done=is_available,
        tell=tell,
        named=lambda name: deployment_name(name, HASH),
    )


def figures(count: int, bare_s: float | None, objects_s: float | None) -> list[Figure]:
    """How long they took, and by how much longer than as many bare Deployments."""
    ratio = None if bare_s is None or objects_s is None else round(objects_s / bare_s, 2)
    how = "resource, Service, budget, Deployment and one status of each, gates opened by kwok, no operator"
    return [
        Figure(name=f"objects_{count}_s", value=rounded(objects_s, 1), how=f"{HOW}, {how}"),
        Figure(
            name="objects_ratio",
            value=ratio,
            how=f"by bare Deployments in the same cluster just before: {rounded(bare_s, 1)} s",
        ),
    ]


async def _make(world: World, namespace: str, name: str) -> None:
    """The resource, what the operator's first plan for it writes, and its status."""
    stored = await world.kube.create(IMAGE_EDIT_DEPLOYMENTS, namespace, resource(name))
    planned, _ = plan(parse(stored), Observed(), PlanMemory(), time.time())
    for action in planned.actions:
        if isinstance(action, ApplyService | ApplyBudget | CreateDeployment):
            await world.kube.apply(KIND_OF[type(action)], namespace, action.manifest)
    body = {"status": dict(planned.status)}
    await world.kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, name, body, subresource="status")
