"""Which pod leaves first, and how a pod leaves without losing a request."""

from __future__ import annotations

from imageedit_operator.core.actions import Action, DrainPod, SetGate
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import (
    DRAINING,
    gate_container,
    gate_message,
    has_container,
    is_draining,
    is_serving,
    trouble,
)

DELETION_COST = -1000
"""Makes the ReplicaSet choose this pod before others that are equally (not) ready."""

_PHASES = {"Pending": 0, "Unknown": 1}


# Victims leave in this order; among equals the youngest first, it has the least to lose.
# | rank | pod                                                  |
# | 0    | not scheduled: holds no card                         |
# | 1    | on a sick card                                       |
# | 1    | in trouble: crashing, failed check, image not pulled |
# | 2    | scheduled, no running container yet                  |
# | 3    | running, not warm                                    |
# | 4    | warm and idle                                        |
# | 5    | busy, or not known to be idle                        |
def victim_rank(pod: ObservedPod) -> tuple[int, float, str]:
    """Sort key: smaller leaves sooner."""
    if not pod.node:
        rank = 0
    elif pod.sick_card or trouble(pod) is not None:
        rank = 1
    elif not has_container(pod):
        rank = 2
    elif pod.gate is not True or not is_serving(pod):
        rank = 3
    else:
        rank = 4 if _is_idle(pod) else 5
    return rank, -pod.created_at, pod.name


# | pod                                                            | removable at once |
# | the kubelet says ready                                         | no                |
# | draining                                                       | no: see is_done   |
# | no running container                                           | yes               |
# | gate never written: the Service never sent it a request        | yes               |
# | gate False, report says idle                                   | yes               |
# | gate open, or was open and nobody knows what it still works on | no                |
def removable_at_once(pod: ObservedPod) -> bool:
    """Whether this pod certainly works on nothing, so that it need not drain."""
    if pod.ready or is_draining(pod):
        return False
    if not has_container(pod) or pod.gate is None:
        return True
    return pod.gate is False and _is_idle(pod)


# | draining pod                                        | done |
# | the kubelet still says ready                        | no   |
# | its node is lost                                    | yes  |
# | no running container, or another than was drained   | yes  |
# | reports draining, accepting false, nothing in work  | yes  |
# | gate closed longer than the drain timeout           | yes  |
# | else                                                | no   |
def is_done(pod: ObservedPod, now: float, *, timeout_s: float) -> bool:
    """Whether a draining pod has finished, or has had its time, `rollout.drainTimeout`."""
    if not is_draining(pod) or pod.ready:
        return False
    if pod.lost or not has_container(pod) or _another_container(pod):
        return True
    if isinstance(pod.report, Known):
        report = pod.report.value
        if report.draining and not report.accepting and _is_idle(pod):
            return True
    return now - pod.gate_since >= timeout_s


def begin(pod: ObservedPod) -> tuple[Action, ...]:
    """Close the gate, then tell the pod: in this order, so that a crash between cannot forget the drain."""
    gate = SetGate(
        pod=pod.name,
        uid=pod.uid,
        value=False,
        reason=DRAINING,
        message=gate_message(pod.container_id or "none", "drains"),
    )
    return (gate, *_tell(pod))


def remind(pod: ObservedPod) -> tuple[Action, ...]:
    """Tell a draining pod again until it reports that it drains."""
    if not has_container(pod) or _another_container(pod):
        return ()
    told = isinstance(pod.report, Known) and pod.report.value.draining
    return () if told else _tell(pod)


def deletion_key(pod: ObservedPod, cost: int) -> tuple[bool, int, bool, int]:
    """Sort key of a ReplicaSet that removes pods: unassigned, Pending, not ready, then by cost.

    Its later rules (rank by node, age, restarts) are left out: whoever depends on them has a tie.
    """
    return bool(pod.node), _PHASES.get(pod.phase, 2), pod.ready, cost


def _tell(pod: ObservedPod) -> tuple[Action, ...]:
    reachable = pod.ip and has_container(pod) and not pod.lost
    return (DrainPod(pod=pod.name, uid=pod.uid, ip=pod.ip),) if reachable else ()


def _another_container(pod: ObservedPod) -> bool:
    return gate_container(pod.gate_message) != pod.container_id


def _is_idle(pod: ObservedPod) -> bool:
    return isinstance(pod.report, Known) and pod.report.value.running == 0 and pod.report.value.waiting == 0
