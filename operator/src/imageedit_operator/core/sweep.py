"""Pods that are over: counted, told, and removed, but never so fast that a loop of them turns faster."""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core.actions import DeletePod
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, is_over

REFUSED = frozenset(
    {
        "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TopologyAffinityError", "InvalidNodeInfo",
        "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "AppArmor", "SysctlForbidden",
    }
)  # fmt: skip
"""Reasons of a kubelet that did not take a pod, besides `OutOf...`."""

SENT_AWAY = frozenset({"Evicted", "Preempting", "Preempted", "NodeShutdown", "Shutdown", "Terminated", "NodeLost"})
"""Reasons of a node that had to let a pod go."""

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 300.0
MOST_KEPT = 10
"""Refused pods that are left for people to look at while more of them come."""
MOST_AT_ONCE = 20

LONGEST_WORDS = 400


# | phase and reason of the pod                                        | counted as          |
# | Failed: UnexpectedAdmissionError, OutOfcpu, OutOf..., and the like | UnexpectedAdmission |
# | Failed: Evicted, Preempting, NodeShutdown, Terminated              | Evicted             |
# | Failed for another reason, Succeeded                               | PodFailed           |
def kind(pod: ObservedPod) -> str:
    """Why a pod is over, as one of three reasons of Events and of the metric."""
    if pod.failed_reason in REFUSED or pod.failed_reason.startswith("OutOf"):
        return "UnexpectedAdmission"
    return "Evicted" if pod.failed_reason in SENT_AWAY else "PodFailed"


# A ReplicaSet replaces a refused pod at once, and the kubelet refuses again. With n refused pods there, the wait is
# 10 s doubled n - 1 times, at most 5 min: as long as new ones come, ever fewer are removed.
# | a pod that is over                    | the youngest refused pod | removed                 |
# | evicted, or over for another reason   | any                      | yes                     |
# | refused                               | older than the wait      | yes                     |
# | refused, one of the ten youngest      | younger                  | no                      |
# | refused, older than these             | younger                  | yes                     |
# At most twenty pods a look, the oldest first.
def actions(pods: Sequence[ObservedPod], *, now: float) -> tuple[DeletePod, ...]:
    """Removes pods that are over: they hold nothing but a name, and their ReplicaSet has replaced them."""
    over = sorted((pod for pod in pods if _is_left(pod)), key=lambda pod: (pod.created_at, pod.name))
    refused = [pod for pod in over if kind(pod) == "UnexpectedAdmission"]
    kept: frozenset[str] = frozenset()
    if refused and now - refused[-1].created_at < wait_s(len(refused)):
        kept = frozenset(pod.uid for pod in refused[-MOST_KEPT:])
    gone = [pod for pod in over if pod.uid not in kept][:MOST_AT_ONCE]
    return tuple(
        DeletePod(pod=pod.name, uid=pod.uid, why=pod.failed_reason or pod.phase, reason=kind(pod)) for pod in gone
    )


def wait_s(refused: int) -> float:
    """How long no pod must have been refused before so many of them are removed."""
    return float(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(refused - 1, 16)))


def words(pods: Sequence[ObservedPod]) -> dict[str, str]:
    """Words for each pod that is over, by uid."""
    return {pod.uid: _words(pod) for pod in pods if is_over(pod)}


def trouble(pods: Sequence[ObservedPod]) -> Trouble | None:
    """What kubelets that refuse pods say, while one of these pods is still there."""
    refused = [pod for pod in pods if _is_left(pod) and kind(pod) == "UnexpectedAdmission"]
    if not refused:
        return None
    nodes = ", ".join(sorted({pod.node for pod in refused if pod.node})) or "a node"
    said = min(pod.failed_message or pod.failed_reason for pod in refused)[:LONGEST_WORDS].strip().rstrip(".")
    message = (
        f"the kubelet of {nodes} refuses pods: {said}; look at the device plugin there: "
        "after a reboot it may need a while to offer its cards"
    )
    return Trouble(reason="UnexpectedAdmission", message=message)


def _is_left(pod: ObservedPod) -> bool:
    return is_over(pod) and not pod.terminating


def _words(pod: ObservedPod) -> str:
    said = f": {pod.failed_message[:LONGEST_WORDS].strip()}" if pod.failed_message else ""
    return f"pod {pod.name} on {pod.node or 'no node'}: {pod.failed_reason or pod.phase}{said}"
