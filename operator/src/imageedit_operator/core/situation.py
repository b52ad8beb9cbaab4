"""What the conditions are derived from, read from one look and the step that follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.core import rollout
from imageedit_operator.core.conditions import Situation, find
from imageedit_operator.core.observed import Known, ObservedPod
from imageedit_operator.core.pods import Trouble, is_serving
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.rollout import Fleet, Step
from imageedit_operator.core.scaling import Decision


def read(
    resource: ImageEditDeployment,
    previous: Mapping[str, Any],
    fleet: Fleet | None,
    step: Step,
    *,
    decision: Decision | None,
    conflict: Trouble | None,
    wanted: int,
    hash_: str,
    ours: Sequence[ObservedPod],
) -> Situation:
    """The situation of one look, with the step that was decided on it."""
    live = fleet.wanted.live if fleet is not None else ()
    serving = sum(is_serving(pod) for pod in ours)
    complete = fleet is not None and _is_complete(fleet, wanted)
    served = previous.get("currentRevision", hash_)
    rolling = not complete and (bool(fleet and fleet.old) or (wanted > 0 and served != hash_))
    announced = find(previous, "Progressing").get("reason") == "PlannedReplacement"
    return Situation(
        wanted=wanted,
        hash=hash_,
        serving=serving,
        complete=complete,
        rolling=rolling,
        strategy=resource.strategy,
        mode=step.mode,
        outage=step.outage or (announced and rolling and serving == 0),
        expected_outage_s=_expected_warmup(previous, ours),
        trouble=conflict or (rollout.first_trouble(fleet) if fleet is not None else None),
        unschedulable=next((pod for pod in live if not pod.node and pod.unschedulable), None),
        resource_name=resource.accelerator.resource_name,
        shrinking=fleet is not None and len(fleet.wanted.pods) > wanted,
        decision=decision,
    )


def _is_complete(fleet: Fleet, wanted: int) -> bool:
    pods = fleet.wanted.pods
    return not fleet.old and len(pods) == wanted == fleet.wanted.deployment.replicas and all(map(is_serving, pods))


def _expected_warmup(previous: Mapping[str, Any], ours: Sequence[ObservedPod]) -> float | None:
    last = previous.get("warmup", {}).get("lastSeconds")
    if isinstance(last, int | float):
        return float(last)
    seen = [pod.report.value.warmup_s for pod in ours if isinstance(pod.report, Known) and pod.report.value.warm]
    return max(seen, default=None)
