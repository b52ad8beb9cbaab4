"""What applying a file does to the objects that the operator writes, one by one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_operator.cli.forecast import Forecast
from imageedit_operator.core import budget, demand
from imageedit_operator.core.actions import DeleteBudget
from imageedit_operator.core.known import Unknown
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import deployment_name, revision_hash


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """What happens to one child: create, change, reuse, keep or delete."""

    kind: str
    name: str
    action: str


def children_of(resource: ImageEditDeployment, observed: Observed, seen: Forecast, *, now: float) -> tuple[Child, ...]:
    """What happens to each object that the resource has or will have."""
    service = "keep" if observed.service_matches else "change" if observed.service_exists else "create"
    name = deployment_name(resource.name, revision_hash(resource))
    there = next((item for item in observed.deployments if item.name == name), None)
    wanted = "create" if there is None else "change" if name in seen.deleted else "keep" if there.replicas else "reuse"
    others = [item for item in observed.deployments if item.name != name and item.owned]
    return (
        Child(kind="Service", name=resource.name, action=service),
        *_budget(resource, observed, now),
        Child(kind="Deployment", name=name, action=wanted),
        *(
            Child(kind="Deployment", name=item.name, action="delete" if item.name in seen.deleted else "keep")
            for item in others
        ),
    )


# | what the operator would do about the budget | the child               |
# | not known, or absent and to stay so         | none                    |
# | nothing, and it is there                    | keep                    |
# | delete it                                   | delete                  |
# | apply it, absent or there                   | create, change          |
def _budget(resource: ImageEditDeployment, observed: Observed, now: float) -> tuple[Child, ...]:
    if isinstance(observed.budgets, Unknown):
        return ()
    owned = [item for item in observed.deployments if item.owned]
    there, free = observed.budgets.value.named is not None, demand.free_places(resource, observed)
    for action in budget.changes(resource, observed.budgets, owned, observed.pods, free=free, now=now):
        what = "delete" if isinstance(action, DeleteBudget) else "change" if there else "create"
        return (Child(kind="PodDisruptionBudget", name=resource.name, action=what),)
    return (Child(kind="PodDisruptionBudget", name=resource.name, action="keep"),) if there else ()
