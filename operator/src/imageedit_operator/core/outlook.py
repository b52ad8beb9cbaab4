"""What a plan makes of one look at the cluster before it acts: whose pods, which revision, how many, by what step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from imageedit_operator.core import (
    children,
    demand,
    expectations,
    fleet,
    history,
    hold,
    prefetch,
    record,
    rollout,
    sick_cards,
    sickness,
    target,
    template,
)
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.observed import Observed, ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.prefetch import Copies
from imageedit_operator.core.record import Record
from imageedit_operator.core.resize import Group
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import files_key, revision_hash
from imageedit_operator.core.rollout import Step, Terms
from imageedit_operator.core.scaling import Decision, Memory
from imageedit_operator.core.sickness import Sickness
from imageedit_operator.core.target import Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """Everything that is decided from the look alone; what follows from it are actions and words."""

    hash_: str
    """Revision of the spec."""
    goal: Target
    owned: tuple[ObservedDeployment, ...]
    outdated: ObservedDeployment | None
    """Of the goal's revision, but not as it would be written today: it goes, and comes anew."""
    bare: ObservedDeployment | None
    """Waits for `spec.template`, and must have no pods before."""
    revisions: tuple[Mapping[str, Any], ...]
    ours: tuple[ObservedPod, ...]
    """Pods of our Deployments, marked with what is expected of them."""
    copies: Copies
    conflict: Trouble | None
    deadline_s: float
    wanted: int
    decision: Decision | None
    scaling: Memory
    groups: tuple[Group, ...]
    pods: Fleet | None
    held: Hold | None
    before: Record | None
    followed: Record
    trouble: Trouble | None
    terms: Terms
    ill: Sickness
    step: Step

    @property
    def kept(self) -> frozenset[str]:
        """Revisions that have a Deployment."""
        return frozenset(item.revision_hash for item in self.owned)


def at(resource: ImageEditDeployment, observed: Observed, scaling: Memory, now: float) -> Outlook:
    """What this look shows; `scaling` is what the one before remembered."""
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
    good = target.last_good(observed.status)
    copies = prefetch.look(
        resource, observed, owned_pods, revisions, hash_=hash_, given_up=goal.rolls_back, good=good == hash_
    )
    ours = expectations.mark(
        sick_cards.mark(owned_pods, observed.cards),
        digests=history.digests(revisions),
        files_at=copies.files_at,
        cards=observed.cards,
        deadline_s=deadline_s,
        now=now,
    )
    wanted, decision, scaling = demand.wanted_pods(resource, observed, scaling, owned, ours, now=now)
    groups = fleet.groups(owned, ours, drain_timeout_s=resource.rollout.drain_timeout_s)
    waits = resource.rollout.paused or copies.missing or bare is not None
    pods = fleet.assemble(goal.revision, groups, ours, reserve=good if waits else "")
    before = record.read(observed.status)
    held = hold.find(
        resource.rollout,
        name=resource.name,
        target=goal.revision,
        good=goal.revision == good,
        replaces=pods is not None and bool(pods.old),
        promoted=resource.promoted,
        prefetching=copies.words,
        record=before,
        wanted=wanted,
        now=now,
    )
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
    return Outlook(
        hash_=hash_,
        goal=goal,
        owned=owned,
        outdated=outdated,
        bare=bare,
        revisions=tuple(revisions),
        ours=ours,
        copies=copies,
        conflict=children.name_conflict(resource, observed, hash_),
        deadline_s=deadline_s,
        wanted=wanted,
        decision=decision,
        scaling=scaling,
        groups=groups,
        pods=pods,
        held=held,
        before=before,
        followed=followed,
        trouble=trouble,
        terms=terms,
        ill=ill,
        step=step,
    )


def _entry(resource: ImageEditDeployment, hash_: str) -> Mapping[str, str]:
    return {"hash": hash_, "model": resource.model.revision, "files": files_key(resource)}
