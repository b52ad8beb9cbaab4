"""The conditions of a resource: nine answers, each with one reason and words for people.

At rest a condition is byte for byte what it was: no ages, no counters, no card numbers in
a message; `lastTransitionTime` moves with `status` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imageedit_operator.core.pod_words import card_words
from imageedit_operator.core.pods import ADVICE
from imageedit_operator.core.progress import Answer, Situation
from imageedit_operator.core.scaling import Decision
from imageedit_operator.core.stored import cut, find, timestamp
from imageedit_operator.core.stuck import rollout_stuck
from imageedit_operator.core.under_way import progressing

TYPES = (
    "Available",
    "Ready",
    "Progressing",
    "Degraded",
    "RolloutStuck",
    "WaitingForCard",
    "ScalingActive",
    "MetricsAvailable",
    "ChildrenIntact",
)

REASONS = frozenset(
    {
        # good
        "Serving", "AllPodsServe", "Complete", "Stopped", "Scheduled", "NoCardAsked", "Fresh", "QueueDepth",
        "NoFault",
        # on the way
        "Starting", "RollingOut", "RollingBack", "CanaryHold", "Paused", "Prefetching", "Moving", "NoRollout",
        "PlannedReplacement", "ScalingDown", "WaitingForCard", "CardHandedOver", "Unschedulable", "NodeLost",
        # what others did to the children
        "AsWritten", "FieldsChanged", "Orphaned",
        # faults of pods and of names
        *ADVICE, "PrefetchFailed", "NameConflict", "InvalidSpec", "WriteRefused",
        "TemplateConflict", "TemplateInvalid", "RolledBack", "NoProgress",
        # faults of nodes
        "DeviceUnhealthy", "UnexpectedAdmission", "RuntimeClassMissing", "FailedCreate",
        # scaling
        "ScaledByOthers", "AutoscalingOff", "AtMinimum", "AtMaximum", "CardsExhausted", "HoldWindow", "PartialData",
        "MetricsMissing", "NoSeries", "PrometheusUnreachable", "InvalidValue", "Stale", "BadAnswer", "NotAsked",
    }
)  # fmt: skip
"""Every reason that a condition may carry; queue_metrics uses the last row for Unknown."""


def build(
    situation: Situation, previous: Mapping[str, Any], *, generation: int, now: float
) -> tuple[dict[str, Any], ...]:
    """The conditions in their fixed order, transition times carried over from `previous` status."""
    under_way = progressing(situation, previous)
    answers = {
        "Available": _available(situation, under_way),
        "Ready": _ready(situation, under_way),
        "Progressing": under_way,
        "Degraded": _degraded(situation),
        "RolloutStuck": rollout_stuck(situation),
        "WaitingForCard": _waiting_for_card(situation),
        "ScalingActive": _scaling_active(situation.decision, situation.scaled_by),
        "MetricsAvailable": _metrics_available(situation.decision),
        "ChildrenIntact": situation.children,
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
        "message": cut(answer.message),
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same else timestamp(now),
    }


def _ready(situation: Situation, under_way: Answer) -> Answer:
    if situation.trouble is None and situation.complete and situation.failure is None:
        if situation.wanted == 0:
            return Answer(status=True, reason="Stopped", message="no pods are wanted")
        return Answer(status=True, reason="AllPodsServe", message=f"all pods serve revision {situation.hash}")
    return Answer(status=False, reason=under_way.reason, message=under_way.message)


def _available(situation: Situation, under_way: Answer) -> Answer:
    if situation.serving:
        return Answer(status=True, reason="Serving", message="at least one warm pod serves")
    if situation.wanted == 0:
        return Answer(status=True, reason="Stopped", message="no pods are wanted")
    return Answer(status=False, reason=under_way.reason, message=under_way.message)


# | first that fits                         | status | reason        |
# | a pod sits on a sick card               | True   | that          |
# | a kubelet refuses pods                  | True   | that          |
# | the apiserver refuses pods              | True   | that          |
# | a pod is in trouble, or a name is taken | True   | the trouble's |
# | else                                    | False  | NoFault       |
def _degraded(situation: Situation) -> Answer:
    fault = situation.degraded or situation.trouble
    if fault is not None:
        return Answer(status=True, reason=fault.reason, message=fault.message)
    return Answer(status=False, reason="NoFault", message="no fault is known that waiting does not cure")


# | first that fits                                    | status | reason         |
# | pods ask for no card, or claim devices             | False  | NoCardAsked    |
# | a pod of ours leaves, and its card goes to the pod | False  | CardHandedOver |
# | a pod lacks one: somebody must free it             | True   | WaitingForCard |
# | a pod lacks a volume                               | False  | VolumeNotReady |
# | a pod lacks something else                         | False  | Unschedulable  |
# | else                                               | False  | Scheduled      |
# That a pod has no place does not say that a card is missing: only the scheduler's words or the count of cards do.
def _waiting_for_card(situation: Situation) -> Answer:
    if not situation.resource_name:
        return Answer(status=False, reason="NoCardAsked", message="pods request no card by the name of a resource")
    if situation.cardless is not None:
        if situation.handed:
            return Answer(status=False, reason="CardHandedOver", message=situation.handed)
        return Answer(
            status=True,
            reason="WaitingForCard",
            message=card_words(situation.cardless, situation.resource_name, situation.holders, situation.nowhere),
        )
    for reason, pod, what in (
        ("VolumeNotReady", situation.unmounted, "its volumes"),
        ("Unschedulable", situation.unschedulable, "a place"),
    ):
        if pod is not None and not pod.node:
            words = f"pod {pod.name} waits for {what}, and nobody says that a card is missing"
            return Answer(status=False, reason=reason, message=words)
    return Answer(status=False, reason="Scheduled", message="no pod waits for a card")


# | autoscaling | replicas written by scale | data | ScalingActive                          | MetricsAvailable        |
# | absent      | no                        | -    | False AutoscalingOff                   | False AutoscalingOff    |
# | absent      | yes                       | -    | False ScaledByOthers, who it is        | False AutoscalingOff    |
# | set         | any                       | good | True the limit                         | True Fresh, PartialData |
# | set         | any                       | none | False the data's reason                | False the data's reason |
# With autoscaling a writer of replicas is named, and told that it has no effect.
# HoldWindow and PartialData come and go with every lull of the queue; only what limits growth is a reason here.
def _scaling_active(decision: Decision | None, scaled_by: str) -> Answer:
    if decision is None:
        if not scaled_by:
            return _OFF
        words = f"spec.autoscaling is absent; {scaled_by} writes spec.replicas through the scale subresource"
        return Answer(status=False, reason="ScaledByOthers", message=f"{words}, and the number of pods follows it")
    answer = _of_decision(decision)
    if not scaled_by:
        return answer
    ignored = f"spec.replicas, which {scaled_by} wrote through the scale subresource, has no effect"
    return Answer(status=answer.status, reason=answer.reason, message=f"{answer.message}; {ignored}")


def _of_decision(decision: Decision) -> Answer:
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
