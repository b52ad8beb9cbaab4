"""What a plan does: in one order, whatever the outlook is."""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core import budget, children, demand, gates, history, sweep, target, template
from imageedit_operator.core.actions import Action, DeletePod, DrainPod, ScaleDeployment, SetDeletionCost, SetGate
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.outlook import Outlook
from imageedit_operator.core.resize import Group
from imageedit_operator.core.resource import ImageEditDeployment


def actions(resource: ImageEditDeployment, observed: Observed, seen: Outlook, now: float) -> tuple[Action, ...]:
    """Children first, then pods, then gates, then what is of no use any more, and last what may be refused.

    So is the change of a Service that is there: a rule of the cluster, or what somebody wrote into it.
    """
    service = children.service(resource, observed)
    first, last = ((), service) if observed.service_exists else (service, ())  # pods of a new resource need an address
    done = (*first, *_children(resource, observed, seen), *sweep.actions(seen.ours, now=now), *seen.ill.at_once)
    done += seen.step.actions
    done += gates.changes(
        seen.ours,
        revisions=seen.kept - ({seen.hash_} if seen.bare is not None else set()),
        leaving=_leaving(done),
        settling={group.deployment.revision_hash for group in seen.groups if group.settling or _shrinks(group, done)},
    )
    needed = {seen.hash_, seen.goal.revision, target.last_good(observed.status)}
    done += history.forget(seen.owned, observed.pods, entries=seen.revisions, keep=needed, limit=resource.history_limit)
    # Last: where the apiserver refuses one of these, everything else is done all the same.
    done += template.finish(resource, seen.bare, observed.pods, observed.template_refusal)
    free = demand.free_places(resource, observed)
    done += budget.changes(resource, observed.budgets, seen.owned, seen.ours, free=free, now=now)
    return (*done, *seen.copies.actions, *last)


def _children(resource: ImageEditDeployment, observed: Observed, seen: Outlook) -> tuple[Action, ...]:
    held = seen.held is not None or resource.template.given
    first = children.first_replicas(seen.owned, observed.pods, held=held, wanted=seen.wanted)
    there = seen.hash_ in seen.kept or seen.conflict is not None
    return (
        *children.labels(observed),
        *children.claims(resource, observed),
        *(() if seen.outdated is None else (history.delete(seen.outdated),)),
        *(() if there else children.create(resource, seen.hash_, replicas=first)),
    )


def _shrinks(group: Group, done: Sequence[Action]) -> bool:
    deployment = group.deployment
    scales = (action for action in done if isinstance(action, ScaleDeployment) and action.uid == deployment.uid)
    return any(action.replicas < deployment.replicas for action in scales)


def _leaving(done: Sequence[Action]) -> frozenset[str]:
    """Pods that this plan sends away: their gate is not touched again."""
    uids: set[str] = set()
    for action in done:
        if isinstance(action, SetGate | DrainPod | DeletePod) or (
            isinstance(action, SetDeletionCost) and action.cost < 0
        ):
            uids.add(action.uid)
    return frozenset(uids)
