"""From a resource and one look at the cluster to everything that is to be done now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core import (
    acting,
    contest,
    events,
    handover,
    intact,
    manifests,
    next_look,
    outlook,
    placement,
    refusals,
    rollout,
    situation,
    status,
    sweep,
    target,
    template,
    unplaced,
    unwritten,
)
from imageedit_operator.core.actions import Action, DeletePod, Plan, ScaleDeployment, SetGate
from imageedit_operator.core.contest import Contest
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.outlook import Outlook
from imageedit_operator.core.progress import Situation
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.scaling import Decision, Memory
from imageedit_operator.core.stored import find


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanMemory:
    """What a key's plans remember in process; losing it delays a scale-down, or costs a measured warm-up."""

    scaling: Memory = field(default_factory=Memory)
    ignored_replicas: int | None = None
    """`spec.replicas` while autoscaling decides; None while it does not."""
    unwritten_s: tuple[float, ...] | None = None
    """Warm-ups for the status that the last plan left to this one; None when it wrote its own."""
    contest: Contest = field(default_factory=Contest)


def plan(resource: ImageEditDeployment, observed: Observed, memory: PlanMemory, now: float) -> tuple[Plan, PlanMemory]:
    """Actions, wanted status and time of the next look."""
    if resource.deleting:
        # Owner references take the children away; nothing may be created behind them.
        return Plan(actions=(), status=observed.status, requeue_after_s=next_look.RESTING_S), memory
    seen = outlook.at(resource, observed, memory.scaling, now)
    decided = acting.actions(resource, observed, seen, now)
    turn = contest.turn(decided, memory.contest, generation=resource.generation, now=now)
    actions = turn.actions
    found = _situation(resource, observed, seen, actions, now)
    warmups_s = _warmups(seen.ours, actions)
    facts = _facts(resource, observed, seen, warmups_s=(*(memory.unwritten_s or ()), *warmups_s), now=now)
    after = status.build(found, facts, observed.status, now=now)
    ignored = None if resource.autoscaling is None else resource.replicas
    posts = (
        *events.transitions(observed.status, after, actions, sweep.words(seen.ours)),
        *events.ignored_replicas(memory.ignored_replicas, ignored),
        *intact.put_back(observed, actions, often=turn.often),
    )
    remembers = next_look.remembers(observed.status, after, revisions=len(seen.owned))
    waits = unwritten.left_to_the_next(
        (*actions, *posts), observed.status, after, remembers=remembers, again=memory.unwritten_s is not None
    )
    next_look_s = next_look.after_s(
        found,
        acts=bool(actions),
        leaving=seen.pods is not None and (seen.pods.draining or bool(seen.pods.terminating)),
        follows=seen.copies.missing or seen.ill.unsettled,
        remembers=remembers,
    )
    made = Plan(
        actions=(*actions, *posts),
        status=observed.status if waits else after,
        requeue_after_s=next_look_s if turn.wait_s is None else min(next_look_s, turn.wait_s),
        reasons=_reasons(seen.decision, after, actions, observed.status),
    )
    unwritten_s = warmups_s if waits else None
    return made, PlanMemory(scaling=seen.scaling, ignored_replicas=ignored, unwritten_s=unwritten_s, contest=turn.after)


def _situation(
    resource: ImageEditDeployment, observed: Observed, seen: Outlook, actions: Sequence[Action], now: float
) -> Situation:
    unfit = template.trouble(observed.template_refusal) if seen.bare is not None else None
    uncopied = seen.copies.trouble if seen.held is not None and seen.held.reason == "Prefetching" else None
    cardless = _cardless(observed, seen)
    handed = handover.words(
        cardless,
        seen.ours,
        actions,
        observed.status,
        resource_name=seen.terms.resource_name,
        drain_timeout_s=resource.rollout.drain_timeout_s,
        stepped_at=seen.followed.stepped_at,
        soon=seen.step.soon,
        now=now,
    )
    return situation.read(
        resource,
        observed.status,
        seen.pods,
        seen.step,
        decision=seen.decision,
        trouble=seen.conflict or unfit or seen.trouble or uncopied,
        wanted=seen.wanted,
        goal=seen.goal,
        spec_hash=seen.hash_,
        hold=seen.held,
        still=now - seen.followed.stepped_at >= seen.deadline_s,
        degraded=seen.ill.trouble or sweep.trouble(seen.ours) or refusals.first(seen.groups),
        ours=seen.ours,
        intact=intact.answer(resource, observed, seen.hash_, seen.conflict),
        cardless=cardless,
        handed=handed,
        cards=observed.cards,
        now=now,
        copying=bool(seen.copies.missing),
    )


def _cardless(observed: Observed, seen: Outlook) -> tuple[ObservedPod, ...]:
    """Pods that find no card: of the wanted revision, and of older ones too where these are to grow."""
    if seen.pods is None:
        return ()
    grow = rollout.stands(seen.pods, seen.terms, wanted=seen.wanted)
    pods = (*seen.pods.wanted.live, *(seen.pods.old_pods if grow else ()))
    none_free = placement.free_pods(observed.cards, seen.terms.cards_per_pod) == 0
    return tuple(pod for pod in pods if unplaced.lacks_card(pod, seen.terms.resource_name, none_free=none_free))


def _facts(
    resource: ImageEditDeployment, observed: Observed, seen: Outlook, *, warmups_s: tuple[float, ...], now: float
) -> status.Facts:
    failure = target.judge(
        seen.goal,
        observed.status,
        seen.kept,
        rollback=resource.rollout.rollback_on_failure,
        trouble=seen.trouble,
        record=seen.before,
        now=now,
    )
    return status.Facts(
        generation=resource.generation,
        selector=manifests.selector(resource),
        pods=seen.ours,
        cards=observed.cards,
        warmups_s=warmups_s,
        revisions=seen.revisions,
        failure=failure,
        record=seen.followed,
        cases=seen.ill.cases,
        prefetch=seen.copies.status(),
    )


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
