"""From a resource and one look at the cluster to everything that is to be done now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core import events, gates, manifests, rollout, situation, status
from imageedit_operator.core.actions import (
    Action,
    ApplyService,
    CreateDeployment,
    DeleteDeployment,
    DeletePod,
    DrainPod,
    Plan,
    ScaleDeployment,
    SetDeletionCost,
    SetGate,
)
from imageedit_operator.core.conditions import Situation, find
from imageedit_operator.core.observed import Known, Observed, ObservedDeployment, ObservedPod
from imageedit_operator.core.pods import Trouble, holds_card, is_active, is_over, is_serving
from imageedit_operator.core.resize import Group
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.core.rollout import Fleet, Step
from imageedit_operator.core.scaling import Decision, Memory, decide

MOVING_S = 2.0
"""Something is on its way: a pod warms, drains or is about to appear."""
WATCHING_S = 5.0
"""The queue is followed, or only somebody else can help."""
RESTING_S = 120.0

REVISION_HISTORY = 3
"""Deployments of earlier revisions that are kept at no replicas, to go back to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanMemory:
    """What a key's plans remember in process; losing it delays a scale-down and does nothing else."""

    scaling: Memory = field(default_factory=Memory)


def plan(resource: ImageEditDeployment, observed: Observed, memory: PlanMemory, now: float) -> tuple[Plan, PlanMemory]:
    """Actions, wanted status and time of the next look."""
    if resource.deleting:
        # Owner references take the children away; nothing may be created behind them.
        return Plan(actions=(), status=observed.status, requeue_after_s=RESTING_S), memory
    hash_ = revision_hash(resource)
    owned = tuple(item for item in observed.deployments if item.owned)
    ours = tuple(pod for pod in observed.pods if pod.revision_hash in {item.revision_hash for item in owned})
    conflict = _name_conflict(resource, observed, hash_)
    wanted, decision, scaling = _wanted(resource, observed, memory, owned, ours, now=now)
    groups = _groups(owned, ours)
    fleet = _fleet(hash_, groups, ours)
    step = _step(resource, observed, fleet, wanted, now)
    actions = (
        *_service(resource, observed),
        *(() if fleet is not None or conflict is not None else _create(resource, hash_)),
        *_sweep(ours),
        *step.actions,
    )
    actions += gates.changes(
        ours,
        revisions={item.revision_hash for item in owned},
        leaving=_leaving(actions),
        settling={group.deployment.revision_hash for group in groups if group.settling or _shrinks(group, actions)},
    )
    actions += _forget(hash_, owned, observed.pods)
    found = situation.read(
        resource,
        observed.status,
        fleet,
        step,
        decision=decision,
        conflict=conflict,
        wanted=wanted,
        hash_=hash_,
        ours=ours,
    )
    facts = status.Facts(
        generation=resource.generation,
        selector=manifests.selector(resource),
        pods=ours,
        cards=observed.cards,
        warmups_s=_warmups(ours, actions),
    )
    after = status.build(found, facts, observed.status, now=now)
    posts = events.transitions(observed.status, after, actions, _over_words(ours))
    made = Plan(
        actions=(*actions, *posts),
        status=after,
        requeue_after_s=_requeue(found, actions),
        reasons=_reasons(decision, after, actions, observed.status),
    )
    return made, PlanMemory(scaling=scaling)


def _wanted(
    resource: ImageEditDeployment,
    observed: Observed,
    memory: PlanMemory,
    owned: Sequence[ObservedDeployment],
    ours: Sequence[ObservedPod],
    *,
    now: float,
) -> tuple[int, Decision | None, Memory]:
    """The total number of pods, from `spec.replicas` or from the queue."""
    if resource.autoscaling is None:
        return resource.replicas, None, Memory()
    current = observed.status.get("desiredReplicas")
    if not isinstance(current, int):
        # A status that was lost (a restored backup) must not remove pods that serve.
        current = sum(item.replicas for item in owned)
    cards_per_pod = _cards_per_pod(resource)
    free = rollout.free_pods(observed.cards, cards_per_pod)
    decision, scaling = decide(
        memory.scaling,
        observed.queue,
        resource.autoscaling,
        current=current,
        warm_pods=sum(is_serving(pod) for pod in ours),
        card_limit=None if free is None else free + sum(holds_card(pod) for pod in ours),
        now=now,
    )
    return decision.desired, decision, scaling


def _cards_per_pod(resource: ImageEditDeployment) -> int:
    return resource.accelerator.count if resource.accelerator.resource_name else 0


def _groups(owned: Sequence[ObservedDeployment], ours: Sequence[ObservedPod]) -> list[Group]:
    """Each revision's Deployment with its active pods, oldest first."""

    def group(deployment: ObservedDeployment) -> Group:
        pods = (pod for pod in ours if pod.revision_hash == deployment.revision_hash and is_active(pod))
        return Group(deployment=deployment, pods=tuple(pods))

    return [group(deployment) for deployment in sorted(owned, key=lambda item: (item.created_at, item.name))]


def _fleet(hash_: str, groups: Sequence[Group], ours: Sequence[ObservedPod]) -> Fleet | None:
    """The groups of a rollout; None while the wanted revision has no Deployment."""
    wanted = next((item for item in groups if item.deployment.revision_hash == hash_), None)
    if wanted is None:
        return None
    return Fleet(
        wanted=wanted,
        old=tuple(item for item in groups if item is not wanted and (item.deployment.replicas or item.pods)),
        terminating=tuple(pod for pod in ours if pod.terminating and holds_card(pod)),
    )


def _step(resource: ImageEditDeployment, observed: Observed, fleet: Fleet | None, wanted: int, now: float) -> Step:
    if fleet is None:
        return Step(actions=(), mode="Steady")
    return rollout.step(
        fleet,
        wanted=wanted,
        strategy=resource.strategy,
        cards_per_pod=_cards_per_pod(resource),
        cards=observed.cards,
        now=now,
    )


def _name_conflict(resource: ImageEditDeployment, observed: Observed, hash_: str) -> Trouble | None:
    name = deployment_name(resource.name, hash_)
    foreign = next((item for item in observed.deployments if item.name == name and not item.owned), None)
    if foreign is not None:
        return _taken(f"Deployment {name}", foreign.foreign_owner)
    if observed.service_foreign_owner:
        return _taken(f"Service {resource.name}", observed.service_foreign_owner)
    return None


def _taken(what: str, owner: str) -> Trouble:
    message = f"{what} exists and belongs to {owner or 'nobody'}; delete or rename it, or this resource"
    return Trouble(reason="NameConflict", message=message)


def _service(resource: ImageEditDeployment, observed: Observed) -> tuple[Action, ...]:
    if observed.service_foreign_owner or (observed.service_exists and observed.service_matches):
        return ()
    return (ApplyService(manifest=manifests.service(resource)),)


def _create(resource: ImageEditDeployment, hash_: str) -> tuple[Action, ...]:
    return (CreateDeployment(manifest=manifests.deployment(resource, hash_)),)


def _sweep(ours: Sequence[ObservedPod]) -> tuple[Action, ...]:
    """Pods that are over hold nothing but a name; their ReplicaSet has replaced them."""
    over = (pod for pod in ours if is_over(pod) and not pod.terminating)
    return tuple(DeletePod(pod=pod.name, uid=pod.uid, why=pod.failed_reason or pod.phase) for pod in over)


def _over_words(ours: Sequence[ObservedPod]) -> dict[str, str]:
    return {
        pod.uid: f"pod {pod.name} on {pod.node or 'no node'}: {pod.failed_reason or pod.phase}"
        for pod in ours
        if is_over(pod)
    }


def _forget(hash_: str, owned: Sequence[ObservedDeployment], pods: Sequence[ObservedPod]) -> tuple[Action, ...]:
    """Delete the oldest Deployments beyond the history; only ones without replicas and without any pod."""
    with_pods = {pod.revision_hash for pod in pods}
    past = [
        item
        for item in owned
        if item.revision_hash != hash_ and not item.replicas and item.revision_hash not in with_pods
    ]
    newest_first = sorted(past, key=lambda item: (item.created_at, item.name), reverse=True)
    return tuple(
        DeleteDeployment(name=item.name, uid=item.uid, resource_version=item.resource_version)
        for item in newest_first[REVISION_HISTORY:]
    )


def _shrinks(group: Group, actions: Sequence[Action]) -> bool:
    deployment = group.deployment
    scales = (action for action in actions if isinstance(action, ScaleDeployment) and action.uid == deployment.uid)
    return any(action.replicas < deployment.replicas for action in scales)


def _leaving(actions: Sequence[Action]) -> frozenset[str]:
    """Pods that this plan sends away: their gate is not touched again."""
    uids: set[str] = set()
    for action in actions:
        if isinstance(action, SetGate | DrainPod | DeletePod) or (
            isinstance(action, SetDeletionCost) and action.cost < 0
        ):
            uids.add(action.uid)
    return frozenset(uids)


def _warmups(ours: Sequence[ObservedPod], actions: Sequence[Action]) -> tuple[float, ...]:
    opened = {action.uid for action in actions if isinstance(action, SetGate) and action.value}
    return tuple(pod.report.value.warmup_s for pod in ours if pod.uid in opened and isinstance(pod.report, Known))


# | situation                                           | next look |
# | something to do, or on its way                      | 2 s       |
# | only the user or another's card can help            | 5 s       |
# | at rest, autoscaling set                            | 5 s       |
# | at rest                                             | 120 s     |
def _requeue(found: Situation, actions: Sequence[Action]) -> float:
    if not found.complete or actions:
        stuck = found.trouble is not None or found.unschedulable is not None
        return WATCHING_S if stuck and not actions else MOVING_S
    return RESTING_S if found.decision is None else WATCHING_S


def _reasons(
    decision: Decision | None, after: Mapping[str, Any], actions: Sequence[Action], previous: Mapping[str, Any]
) -> tuple[str, ...]:
    words = [] if decision is None else [f"scaling: {'; '.join(decision.reasons)}"]
    for action in actions:
        if isinstance(action, ScaleDeployment):
            words.append(f"{action.name} to {action.replicas}: {action.why}")
        elif isinstance(action, DeletePod):
            words.append(f"deletes pod {action.pod}: {action.why}")
    progressing = find(after, "Progressing")
    if progressing["message"] != find(previous, "Progressing").get("message"):
        words.append(f"{progressing['reason']}: {progressing['message']}")
    return tuple(words)
