"""Events: one for each transition, none at rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from imageedit_operator.core import relief
from imageedit_operator.core.actions import Action, DeletePod, PostEvent, SetGate
from imageedit_operator.core.gates import CHECK_FAILED, DIGEST_MISMATCH, RESTARTED, WRONG_REVISION
from imageedit_operator.core.progress import NO_ROLLOUT
from imageedit_operator.core.stored import find

_GATE_FAULTS = frozenset({CHECK_FAILED, WRONG_REVISION, DIGEST_MISMATCH, RESTARTED})


# | transition                                       | type    | reason            |
# | the wanted revision changed                      | Normal  | RolloutStarted    |
# | a rollout ended with the wanted revision complete| Normal  | RolloutCompleted  |
# | the wanted revision was given up                 | Warning | RevisionFailed    |
# | a time without a warm pod was announced          | Warning | PlannedOutage     |
# | the desired number changed                       | Normal  | Scaled            |
# | the rollout is paused, or holds at its canary    | Normal  | Paused, CanaryHold|
# | the rollout waits for copies of the model        | Normal  | Prefetching       |
# | one more copy of the model failed at rest        | Warning | PrefetchFailed    |
# | Progressing took a failure's reason              | Warning | the reason        |
# | Degraded took a reason that Progressing has not  | Warning | the reason        |
# | ChildrenIntact took a reason that neither has    | Warning | the reason        |
# | a pod was chosen to leave its sick card          | Warning | PodReplaced       |
# | a gate closes for a fault                        | Warning | the gate's reason |
# | a pod that is over is removed                    | Warning | UnexpectedAdmission, Evicted, PodFailed |
def transitions(
    previous: Mapping[str, Any], status: Mapping[str, Any], actions: Iterable[Action], over: Mapping[str, str]
) -> tuple[PostEvent, ...]:
    """The events of the way from the stored status to the new one; `over` gives words for removed pods by uid."""
    events = [
        *_of_revision(previous, status),
        *_of_failure(previous, status),
        *_of_scale(previous, status),
        *_of_progress(previous, status),
        *_of_fault(previous, status),
        *_of_children(previous, status),
        *_of_sick_cards(previous, status),
        *_of_prefetch(previous, status),
    ]
    for action in actions:
        if isinstance(action, SetGate) and not action.value and action.reason in _GATE_FAULTS:
            events.append(_warning(action.reason, f"pod {action.pod}: {action.message}"))
        if isinstance(action, DeletePod) and action.uid in over:
            events.append(_warning(action.reason, over[action.uid]))
    return tuple(events)


def ignored_replicas(before: int | None, after: int | None) -> tuple[PostEvent, ...]:
    """`spec.replicas` was written while autoscaling decides; None while it does not."""
    if before is None or after is None or before == after:
        return ()
    words = f"spec.replicas {before} -> {after} has no effect: spec.autoscaling decides the number of pods"
    return (_warning("ReplicasIgnored", f"{words}; change its bounds, or remove it to hand the number over"),)


def _of_revision(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    update = status["updateRevision"]
    before = previous.get("updateRevision")
    if before and before != update:
        yield _normal("RolloutStarted", f"from revision {before} to {update}", _occasion(previous))
    if _is_completed(previous, status):
        yield _normal("RolloutCompleted", f"all pods serve revision {update}", _occasion(previous))


# | the wanted revision          | the stored status                                       | a rollout ended          |
# | is not complete, has no pods | any                                                     | no                       |
# | is complete                  | it was not complete last                                | yes                      |
# | is complete                  | it was, and a rollout is on its way, held, or given up  | yes, with the way back   |
# | is complete                  | it was, and no rollout is under way                     | no: pods came or went    |
def _is_completed(previous: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    update = status["updateRevision"]
    if "rollout" in status or not status["desiredReplicas"] or status.get("lastGoodRevision") != update:
        return False
    under_way = find(previous, "RolloutStuck").get("reason", NO_ROLLOUT) != NO_ROLLOUT
    return bool(previous.get("lastGoodRevision") != update or under_way)


# | the stored status         | the occasion of what it changes to now |
# | has a rollout under way   | when that began                        |
# | has none                  | when the last one ended                |
def _occasion(previous: Mapping[str, Any]) -> str:
    """Which rollout an event is of: one that comes back to an earlier revision has the words of the one before."""
    began = previous.get("rollout", {}).get("startedAt")
    return str(began or find(previous, "Progressing").get("lastTransitionTime", ""))


def _of_failure(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    failed = status.get("failedRevision")
    if failed and previous.get("failedRevision") != failed:
        why = status["failure"]
        words = why["message"] or why["reason"]
        yield _warning("RevisionFailed", f"revision {failed} is given up: {words}")


def _of_scale(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    before, desired = previous.get("desiredReplicas"), status["desiredReplicas"]
    if isinstance(before, int) and before != desired:
        reasons = status.get("scaling", {}).get("reasons", [])
        words = f": {'; '.join(reasons)}" if status.get("scaling") != previous.get("scaling") and reasons else ""
        yield _normal("Scaled", f"{before} -> {desired}{words}")


def _of_progress(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    before, after = find(previous, "Progressing"), find(status, "Progressing")
    if before.get("reason") == after.get("reason"):
        return
    if after["reason"] == "PlannedReplacement":
        yield _warning("PlannedOutage", after["message"], _occasion(previous))
    elif after["reason"] in ("Paused", "Prefetching", "CanaryHold"):
        yield _normal(after["reason"], after["message"], _occasion(previous))
    elif after["status"] == "False" and after["reason"] != "Complete":
        yield _warning(after["reason"], after["message"])


def _of_fault(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    before, after = find(previous, "Degraded"), find(status, "Degraded")
    same = (before.get("status"), before.get("reason")) == (after["status"], after["reason"])
    if after["status"] == "True" and not same and after["reason"] != find(status, "Progressing")["reason"]:
        yield _warning(after["reason"], after["message"])


def _of_children(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    """A name that is taken is told as a fault already."""
    before, after = find(previous, "ChildrenIntact"), find(status, "ChildrenIntact")
    same = (before.get("status"), before.get("reason")) == (after["status"], after["reason"])
    told = {find(status, kind)["reason"] for kind in ("Progressing", "Degraded")}
    if after["status"] == "False" and not same and after["reason"] not in told:
        yield _warning(after["reason"], after["message"])


def _of_sick_cards(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    for case in relief.chosen_between(previous, status):
        yield _warning("PodReplaced", f"pod {case.pod} leaves card {case.card} of node {case.node}, which is sick")


def _of_prefetch(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterable[PostEvent]:
    """While it holds a rollout, Progressing says it already."""
    before, after = previous.get("prefetch", {}), status.get("prefetch", {})
    if after.get("failed", 0) > before.get("failed", 0) and find(status, "Progressing")["reason"] != "PrefetchFailed":
        yield _warning("PrefetchFailed", str(after.get("message", "")))


def _normal(reason: str, message: str, occasion: str = "") -> PostEvent:
    return PostEvent(type="Normal", reason=reason, message=message, occasion=occasion)


def _warning(reason: str, message: str, occasion: str = "") -> PostEvent:
    return PostEvent(type="Warning", reason=reason, message=message, occasion=occasion)
