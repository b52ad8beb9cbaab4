"""What the operator will do from here: its own plan, carried out on a model of the cluster until it rests. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.cli.model import Model
from imageedit_operator.core.actions import (
    Action,
    ApplyTemplate,
    CreateDeployment,
    CreateJob,
    DeleteDeployment,
    DeletePod,
    ScaleDeployment,
    SetGate,
)
from imageedit_operator.core.next_look import DARK_S, MOVING_S
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.pods import DRAINING
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.stored import find

QUIET_STEP_S = 10.0
PATIENCE_S = 300.0
"""Beyond the drain timeout: no grace time of the plan is longer, so what has not moved by then waits for somebody."""
MOST_WORK = 80_000
"""Looks times pods: the rollout of a hundred pods, some ten seconds of computing. Longer ones are cut off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Something that happens, seconds from now."""

    at_s: float
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """How it will go if no pod fails and no card comes or goes."""

    outcome: str
    """Complete, or the reason for which it rests: WaitingForCard, Paused, CanaryHold, NameConflict, ..."""
    message: str
    seconds: float
    """Until it rests."""
    outage_s: float | None
    """Time without a warm pod on the way; None where none is warm to begin with."""
    fewest_warm: int
    most_pods: int
    """At one time, leaving ones included: each holds its cards or waits for them."""
    deleted: tuple[str, ...]
    """Deployments that fall out of the history."""
    steps: tuple[Step, ...]


@dataclass(kw_only=True, slots=True)
class _Notes:
    """What is kept of the looks."""

    serving_at_start: int
    fewest_warm: int
    most_pods: int
    outage_s: float = 0.0
    deleted: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


def forecast(
    resource: ImageEditDeployment, observed: Observed, *, warmup_s: float, now: float, no_place: str = ""
) -> Forecast:
    """Runs the plan of a resource whose number of pods is fixed, from what was observed at `now`.

    `no_place` is what the scheduler will say of new pods that no node takes, whatever leaves; empty else.
    """
    model = Model(resource=resource, observed=observed, warmup_s=warmup_s, now=now, no_place=no_place)
    notes = _Notes(serving_at_start=model.serving, fewest_warm=model.serving, most_pods=len(model.pods))
    memory, moved_at = PlanMemory(), now
    patience_s = PATIENCE_S + resource.rollout.drain_timeout_s
    work = 0
    while work < MOST_WORK:
        work += 1 + len(model.pods)
        made, memory = plan(resource, model.observe(), memory, model.now)
        for action in made.actions:
            _note(notes, action, model.now - now)
            model.execute(action)
        model.status = made.status
        ended = find(made.status, "Progressing")
        if _rests(made.status, model) or model.now - moved_at > patience_s or ended.get("reason") == "Paused":
            return _result(notes, ended, seconds=moved_at - now)
        dark_before = model.serving == 0
        moves = model.advance() or bool(made.actions)
        if moves or model.next_due() is not None:
            moved_at = model.now
        wait_s = _wait_s(model, moves=moves)
        model.now += wait_s
        notes.outage_s += wait_s if dark_before and model.serving == 0 else 0.0
        notes.fewest_warm = min(notes.fewest_warm, model.serving)
        notes.most_pods = max(notes.most_pods, len(model.pods))
    return _result(
        notes,
        {"reason": "TooLong", "message": "the forecast ends here: too many pods for all of it"},
        seconds=model.now - now,
    )


# | what goes on                                | next look                 |
# | something moves, and no pod is warm         | 0.5 s, as the operator    |
# | something moves                             | 2 s, as the operator      |
# | a pod warms or drains, none waits for a card| when it is done           |
# | a pod waits for a card                      | 10 s, or sooner when done |
# | nothing                                     | 10 s                      |
def _wait_s(model: Model, *, moves: bool) -> float:
    step_s = MOVING_S if model.serving else DARK_S
    if moves:
        return step_s
    due = model.next_due()
    if due is None:
        return QUIET_STEP_S
    done_s = max(step_s, due - model.now)
    return min(QUIET_STEP_S, done_s) if model.waiting else done_s


def _rests(status: Mapping[str, Any], model: Model) -> bool:
    return find(status, "Ready").get("status") == "True" and not model.terminating


def _result(notes: _Notes, ended: Mapping[str, Any], *, seconds: float) -> Forecast:
    return Forecast(
        outcome=str(ended.get("reason", "")),
        message=str(ended.get("message", "")),
        seconds=seconds,
        outage_s=notes.outage_s if notes.serving_at_start else None,
        fewest_warm=notes.fewest_warm,
        most_pods=notes.most_pods,
        deleted=tuple(notes.deleted),
        steps=tuple(notes.steps),
    )


def _note(notes: _Notes, action: Action, at_s: float) -> None:
    match action:
        case CreateDeployment(manifest=manifest):
            words = f"creates Deployment {manifest['metadata']['name']}"
        case ApplyTemplate(manifest=manifest):
            words = f"applies spec.template to Deployment {manifest['metadata']['name']}"
        case ScaleDeployment(name=name, replicas=replicas, why=why):
            words = f"scales {name} to {replicas}: {why}"
        case CreateJob(place=place):
            words = f"copies the model to {f'node {place}' if place else 'the claim'} first, however long that takes"
        case SetGate(pod=pod, value=True):
            words = f"pod {pod} is warm and serves"
        case SetGate(pod=pod, reason=reason) if reason == DRAINING:
            words = f"pod {pod} drains"
        case DeletePod(pod=pod):
            words = f"removes pod {pod}"
        case DeleteDeployment(name=name):
            notes.deleted.append(name)
            words = f"forgets Deployment {name}"
        case _:
            return
    notes.steps.append(Step(at_s=at_s, what=words))
