"""The conditions of a resource: six answers, each with one reason and words for people.

At rest a condition is byte for byte what it was: no ages, no counters, no card numbers in
a message; `lastTransitionTime` moves with `status` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from imageedit_operator.core.observed import ObservedPod
from imageedit_operator.core.pods import ADVICE, Trouble
from imageedit_operator.core.scaling import Decision

TYPES = ("Available", "Ready", "Progressing", "WaitingForCard", "ScalingActive", "MetricsAvailable")

REASONS = frozenset(
    {
        # good
        "Serving", "AllPodsServe", "Complete", "Stopped", "Scheduled", "NoCardAsked", "Fresh", "QueueDepth",
        # on the way
        "Starting", "RollingOut", "PlannedReplacement", "ScalingDown", "WaitingForCard", "Unschedulable",
        # faults of pods and of names
        *ADVICE, "NameConflict", "InvalidSpec",
        # scaling
        "AutoscalingOff", "AtMinimum", "AtMaximum", "CardsExhausted", "HoldWindow", "PartialData", "MetricsMissing",
        "NoSeries", "PrometheusUnreachable", "InvalidValue", "Stale", "BadAnswer", "NotAsked",
    }
)  # fmt: skip
"""Every reason that a condition may carry; queue_metrics uses the last two rows for Unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What the conditions are derived from."""

    wanted: int
    hash: str
    serving: int
    """Warm, ready pods of every revision."""
    complete: bool
    """All wanted pods serve, all of the wanted revision, nothing old left."""
    rolling: bool
    strategy: str
    mode: str
    outage: bool
    expected_outage_s: float | None
    trouble: Trouble | None
    unschedulable: ObservedPod | None
    """A pod of the wanted revision that the scheduler finds no place for."""
    resource_name: str
    shrinking: bool
    decision: Decision | None
    """None without autoscaling."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Status, reason and message of one condition."""

    status: bool
    reason: str
    message: str


def build(
    situation: Situation, previous: Mapping[str, Any], *, generation: int, now: float
) -> tuple[dict[str, Any], ...]:
    """The conditions in their fixed order, transition times carried over from `previous` status."""
    progressing = _progressing(situation, previous)
    answers = {
        "Available": _available(situation, progressing),
        "Ready": _ready(situation, progressing),
        "Progressing": progressing,
        "WaitingForCard": _waiting_for_card(situation),
        "ScalingActive": _scaling_active(situation.decision),
        "MetricsAvailable": _metrics_available(situation.decision),
    }
    return tuple(written(kind, answer, previous, generation=generation, now=now) for kind, answer in answers.items())


def written(kind: str, answer: Answer, previous: Mapping[str, Any], *, generation: int, now: float) -> dict[str, Any]:
    """One condition as it is stored."""
    status = "True" if answer.status else "False"
    before = find(previous, kind)
    same = before.get("status") == status and "lastTransitionTime" in before
    return {
        "type": kind,
        "status": status,
        "reason": answer.reason,
        "message": answer.message,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same else timestamp(now),
    }


def find(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition of a stored status, empty when it has none."""
    found = (item for item in status.get("conditions", ()) if item.get("type") == kind)
    return next(found, {})


def timestamp(now: float) -> str:
    """RFC 3339 with whole seconds, as Kubernetes writes it."""
    return datetime.fromtimestamp(int(now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# | first that fits                              | status | reason                        |
# | a pod is in trouble, or a name is taken      | False  | the trouble's                 |
# | complete                                     | False  | Complete                      |
# | no pod is warm, by plan                      | True   | PlannedReplacement            |
# | rolling, strategy Surge, no card             | True   | WaitingForCard                |
# | rolling                                      | True   | RollingOut                    |
# | no place for a pod: the card, something else | True   | WaitingForCard, Unschedulable |
# | pods drain to leave                          | True   | ScalingDown                   |
# | else                                         | True   | Starting                      |
def _progressing(situation: Situation, previous: Mapping[str, Any]) -> Answer:  # noqa: PLR0911 - one return a row
    if situation.trouble is not None:
        stopped = "; the rollout stops here and the old revision serves on" if situation.mode == "Stopped" else ""
        return Answer(status=False, reason=situation.trouble.reason, message=situation.trouble.message + stopped)
    if situation.complete:
        words = f"all pods serve revision {situation.hash}" if situation.wanted else "no pods are wanted"
        return Answer(status=False, reason="Complete", message=words)
    if situation.outage:
        return _planned(situation, previous)
    if situation.rolling and situation.mode == "Surge" and _waits_for_card(situation):
        return Answer(status=True, reason="WaitingForCard", message=_WAITS)
    if situation.rolling:
        return Answer(status=True, reason="RollingOut", message=f"to revision {situation.hash}: {_HOW[situation.mode]}")
    if situation.unschedulable is not None:
        return _no_place(situation, situation.unschedulable)
    if situation.shrinking:
        return Answer(status=True, reason="ScalingDown", message="pods finish what they accepted before they leave")
    return Answer(status=True, reason="Starting", message="pods load the model and warm every size")


_WAITS = "the replacement waits for a card; an old pod gives way only once it has one, or with strategy InPlace"

_HOW = {
    "Surge": "each replacement is warm before an old pod drains",
    "InPlace": "one pod at a time gives its card to its replacement",
    "Recreate": "all old pods leave before the new ones start",
    "Steady": "the new pods start",
    "Stopped": "stopped",
}


def _planned(situation: Situation, previous: Mapping[str, Any]) -> Answer:
    before = find(previous, "Progressing")
    if before.get("reason") == "PlannedReplacement" and situation.hash == previous.get("updateRevision"):
        # Cards come free and warm-ups are measured while it lasts; what was announced stays.
        return Answer(status=True, reason="PlannedReplacement", message=str(before.get("message", "")))
    length = situation.expected_outage_s
    about = "a time that is not known yet" if length is None else f"about {length:.0f} s"
    because = "no card is free" if situation.strategy == "Auto" else f"the strategy is {situation.strategy}"
    message = f"planned replacement: {about} without a warm pod, because {because}"
    return Answer(status=True, reason="PlannedReplacement", message=message)


def _ready(situation: Situation, progressing: Answer) -> Answer:
    if situation.trouble is None and situation.complete:
        if situation.wanted == 0:
            return Answer(status=True, reason="Stopped", message="no pods are wanted")
        return Answer(status=True, reason="AllPodsServe", message=f"all pods serve revision {situation.hash}")
    return Answer(status=False, reason=progressing.reason, message=progressing.message)


def _available(situation: Situation, progressing: Answer) -> Answer:
    if situation.serving:
        return Answer(status=True, reason="Serving", message="at least one warm pod serves")
    if situation.wanted == 0:
        return Answer(status=True, reason="Stopped", message="no pods are wanted")
    return Answer(status=False, reason=progressing.reason, message=progressing.message)


def _waiting_for_card(situation: Situation) -> Answer:
    if not situation.resource_name:
        return Answer(status=False, reason="NoCardAsked", message="pods ask for no card")
    if situation.unschedulable is not None and _waits_for_card(situation):
        return Answer(status=True, reason="WaitingForCard", message=_card_words(situation, situation.unschedulable))
    return Answer(status=False, reason="Scheduled", message="no pod waits for a card")


def _waits_for_card(situation: Situation) -> bool:
    pod = situation.unschedulable
    if pod is None or not situation.resource_name:
        return False
    return not pod.unschedulable_message or situation.resource_name in pod.unschedulable_message


def _no_place(situation: Situation, pod: ObservedPod) -> Answer:
    if _waits_for_card(situation):
        return Answer(status=True, reason="WaitingForCard", message=_card_words(situation, pod))
    message = f"pod {pod.name}: {pod.unschedulable_message}"
    return Answer(status=True, reason="Unschedulable", message=message)


def _card_words(situation: Situation, pod: ObservedPod) -> str:
    return f"pod {pod.name} waits for {situation.resource_name}; free a card, add a node or lower the replicas"


# | autoscaling | data | ScalingActive             | MetricsAvailable        |
# | absent      | -    | False AutoscalingOff      | False AutoscalingOff    |
# | set         | good | True the limit            | True Fresh, PartialData |
# | set         | none | False the data's reason   | False the data's reason |
# HoldWindow and PartialData come and go with every lull of the queue; only what limits growth is a reason here.
def _scaling_active(decision: Decision | None) -> Answer:
    if decision is None:
        return _OFF
    if not decision.active:
        reason = _data_reason(decision)
        return Answer(status=False, reason=reason, message=f"holds the number of pods: {decision.message}")
    if decision.limited:
        return Answer(status=True, reason=decision.reason, message=decision.message)
    return Answer(status=True, reason="QueueDepth", message="follows waiting and running requests")


def _metrics_available(decision: Decision | None) -> Answer:
    if decision is None:
        return _OFF
    if not decision.metrics_ok:
        return Answer(status=False, reason=_data_reason(decision), message=decision.message)
    return Answer(status=True, reason="Fresh", message="Prometheus answers for this deployment")


def _data_reason(decision: Decision) -> str:
    return decision.reason if decision.reason in REASONS else "MetricsMissing"


_OFF = Answer(status=False, reason="AutoscalingOff", message="spec.autoscaling is absent; spec.replicas rules")
