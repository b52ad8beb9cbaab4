"""From a resource and one look at the cluster to everything that is to be done now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from imageedit_operator.core import (
    budget,
    children,
    demand,
    events,
    expectations,
    fleet,
    gates,
    handover,
    history,
    hold,
    intact,
    manifests,
    next_look,
    prefetch,
    record,
    refusals,
    rollout,
    sick_cards,
    sickness,
    situation,
    status,
    sweep,
    target,
    template,
    unwritten,
)
from imageedit_operator.core.actions import Action, DeletePod, DrainPod, Plan, ScaleDeployment, SetDeletionCost, SetGate
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.observed import Known, Observed, ObservedPod
from imageedit_operator.core.resize import Group
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import files_key, revision_hash
from imageedit_operator.core.rollout import Step, Terms
from imageedit_operator.core.scaling import Decision, Memory
from imageedit_operator.core.stored import find
from imageedit_operator.core.target import Target


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanMemory:
    """What a key's plans remember in process; losing it delays a scale-down, or costs a measured warm-up."""

    scaling: Memory = field(default_factory=Memory)
    ignored_replicas: int | None = None
    """`spec.replicas` while autoscaling decides; None while it does not."""
    unwritten_s: tuple[float, ...] | None = None
    """Warm-ups for the status that the last plan left to this one; None when it wrote its own."""


def plan(resource: ImageEditDeployment, observed: Observed, memory: PlanMemory, now: float) -> tuple[Plan, PlanMemory]:
    """Actions, wanted status and time of the next look."""
    if resource.deleting:
        # Owner references take the children away; nothing may be created behind them.
        return Plan(actions=(), status=observed.status, requeue_after_s=next_look.RESTING_S), memory
    hash_ = revision_hash(resource)
    owned = tuple(item for item in observed.deployments if item.owned)
    goal = target.choose(hash_, observed.status, {item.revision_hash for item in owned})
    outdated = children.outdated(resource, observed, hash_, target=goal.revision)
    owned = tuple(item for item in owned if item is not outdated)
    kept = {item.revision_hash for item in owned}
    bare = template.unfinished(resource, owned, observed.pods, hash_) if goal.revision == hash_ else None
    revisions = history.revisions(observed.status, owned, observed.pods, _entry(resource, hash_))
    deadline_s = expectations.deadline_s(resource.rollout.progress_deadline_s, observed.status)
    owned_pods = tuple(pod for pod in observed.pods if pod.revision_hash in kept)
    copies = prefetch.look(
        resource,
        observed,
        owned_pods,
        revisions,
        hash_=hash_,
        given_up=goal.rolls_back,
        good=target.last_good(observed.status) == hash_,
    )
    ours = expectations.mark(
        sick_cards.mark(owned_pods, observed.cards),
        digests=history.digests(revisions),
        files_at=copies.files_at,
        cards=observed.cards,
        deadline_s=deadline_s,
        now=now,
    )
    conflict = children.name_conflict(resource, observed, hash_)
    wanted, decision, scaling = demand.wanted_pods(resource, observed, memory.scaling, owned, ours, now=now)
    groups = fleet.groups(owned, ours, drain_timeout_s=resource.rollout.drain_timeout_s)
    waits = resource.rollout.paused or copies.missing or bare is not None
    reserve = target.last_good(observed.status) if waits else ""
    pods = fleet.assemble(goal.revision, groups, ours, reserve=reserve)
    before = record.read(observed.status)
    held = _hold(resource, observed, pods, goal=goal, prefetching=copies.words, before=before, wanted=wanted, now=now)
    unfit = template.trouble(observed.template_refusal) if bare is not None else None
    uncopied = copies.trouble if held is not None and held.reason == "Prefetching" else None
    trouble = fleet.first_trouble(pods) if pods is not None else None
    canary = held.new_pods(wanted) if held is not None and held.pods is not None else None
    followed = record.follow(before, goal.revision, pods, trouble=trouble, canary=canary, now=now)
    terms = Terms(
        strategy=resource.rollout.strategy,
        cards_per_pod=demand.cards_per_pod(resource),
        cards=observed.cards,
        resource_name=resource.accelerator.extended_resource,
        hold=held,
        stepped_at=followed.stepped_at,
        whole=bare is None,
    )
    ill = sickness.assess(ours, pods, terms, observed.status, wanted=wanted, now=now)
    terms = replace(terms, relief=ill.relief)
    step = rollout.step(pods, terms, wanted=wanted, now=now) if pods is not None else Step(actions=(), mode="Steady")
    first = children.first_replicas(
        owned, observed.pods, held=held is not None or resource.template.given, wanted=wanted
    )
    actions = (
        *children.service(resource, observed),
        *children.labels(observed),
        *children.claims(resource, observed),
        *(() if outdated is None else (history.delete(outdated),)),
        *(() if hash_ in kept or conflict is not None else children.create(resource, hash_, replicas=first)),
        *sweep.actions(ours, now=now),
        *ill.at_once,
        *step.actions,
    )
    actions += gates.changes(
        ours,
        revisions=kept - ({hash_} if bare is not None else set()),
        leaving=_leaving(actions),
        settling={group.deployment.revision_hash for group in groups if group.settling or _shrinks(group, actions)},
    )
    needed = {hash_, goal.revision, target.last_good(observed.status)}
    actions += history.forget(owned, observed.pods, keep=needed, limit=resource.history_limit)
    # Last: where the apiserver refuses one of these, everything else is done all the same.
    actions += template.finish(resource, bare, observed.pods, observed.template_refusal)
    actions += budget.changes(
        resource, observed.budgets, owned, ours, free=demand.free_places(resource, observed), now=now
    )
    actions += copies.actions
    failure = target.judge(
        goal,
        observed.status,
        kept,
        rollback=resource.rollout.rollback_on_failure,
        trouble=trouble,
        record=before,
        now=now,
    )
    handed = handover.words(
        pods.wanted.live if pods is not None else (),
        ours,
        actions,
        observed.status,
        resource_name=terms.resource_name,
        drain_timeout_s=resource.rollout.drain_timeout_s,
        stepped_at=followed.stepped_at,
        now=now,
    )
    found = situation.read(
        resource,
        observed.status,
        pods,
        step,
        decision=decision,
        trouble=conflict or unfit or trouble or uncopied,
        wanted=wanted,
        goal=goal,
        spec_hash=hash_,
        hold=held,
        still=now - followed.stepped_at >= deadline_s,
        degraded=ill.trouble or sweep.trouble(ours) or refusals.first(groups),
        ours=ours,
        intact=intact.answer(resource, observed, hash_, conflict),
        handed=handed,
        cards=observed.cards,
        now=now,
        copying=bool(copies.missing),
    )
    warmups_s = _warmups(ours, actions)
    facts = status.Facts(
        generation=resource.generation,
        selector=manifests.selector(resource),
        pods=ours,
        cards=observed.cards,
        warmups_s=(*(memory.unwritten_s or ()), *warmups_s),
        revisions=tuple(revisions),
        failure=failure,
        record=followed,
        cases=ill.cases,
        prefetch=copies.status(),
    )
    after = status.build(found, facts, observed.status, now=now)
    ignored = None if resource.autoscaling is None else resource.replicas
    posts = (
        *events.transitions(observed.status, after, actions, sweep.words(ours)),
        *events.ignored_replicas(memory.ignored_replicas, ignored),
        *intact.put_back(observed, actions),
    )
    remembers = next_look.remembers(observed.status, after, revisions=len(owned))
    waits = unwritten.left_to_the_next(
        (*actions, *posts), observed.status, after, remembers=remembers, again=memory.unwritten_s is not None
    )
    made = Plan(
        actions=(*actions, *posts),
        status=observed.status if waits else after,
        requeue_after_s=next_look.after_s(
            found,
            acts=bool(actions),
            leaving=pods is not None and (pods.draining or bool(pods.terminating)),
            follows=copies.missing or ill.unsettled,
            remembers=remembers,
        ),
        reasons=_reasons(decision, after, actions, observed.status),
    )
    return made, PlanMemory(scaling=scaling, ignored_replicas=ignored, unwritten_s=warmups_s if waits else None)


def _entry(resource: ImageEditDeployment, hash_: str) -> Mapping[str, str]:
    return {"hash": hash_, "model": resource.model.revision, "files": files_key(resource)}


def _hold(
    resource: ImageEditDeployment,
    observed: Observed,
    pods: Fleet | None,
    *,
    goal: Target,
    prefetching: str,
    before: record.Record | None,
    wanted: int,
    now: float,
) -> Hold | None:
    return hold.find(
        resource.rollout,
        target=goal.revision,
        good=goal.revision == target.last_good(observed.status),
        replaces=pods is not None and bool(pods.old),
        promoted=resource.promoted,
        prefetching=prefetching,
        record=before,
        wanted=wanted,
        now=now,
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
