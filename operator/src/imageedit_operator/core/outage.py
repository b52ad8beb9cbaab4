"""How long no pod will be warm while the last one gives its card to its replacement.

It begins when the old pod leaves the Service and ends when the new one is in it. What was measured is taken from the
status and from the pods; what nobody measures before it happens is a figure of a healthy cluster, and stands here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_serving

PROPAGATION_S = 5.0
"""A server that drains accepts on for so long, however idle it is (docs/reference/pod-contract.md)."""

GONE_S = 2.0
"""From the deletion of a pod that has finished until it is gone, and its card with it."""

BOUND_S = 1.0
"""From then until the scheduler has looked again at the pod that waits."""

PREPARED_S = 2.0
"""From its node until a pod can start its container, where no pod tells: volumes and network."""

NOTICED_S = 3.0
"""Beside the warm-up, from the start of the container until the gate is open, where no pod tells: the process comes
up, the kubelet tells of the container, the operator hears that it is warm."""

IN_SERVICE_S = 2.0
"""From the open gate until the pod is in the Service: the kubelet asks every 2 s whether it is ready."""

LONGEST_S = 120.0
"""What took longer was no such step: a node that came back gives its pods their network anew, an operator was away."""


# | the old pods that serve                 | they drain for                                                  |
# | do not answer                           | the drain timeout                                               |
# | report what they work on                | that many edits of the slowest size, that at most               |
# | report less work than that, or none     | the time in which they accept on                                |
def drain_s(fleet: Fleet | None) -> float:
    """Seconds until the slowest of the serving old pods has finished what it accepted, and accepts no more."""
    if fleet is None:
        return 0.0
    most_s = fleet.wanted.drain_timeout_s
    return max((min(most_s, max(PROPAGATION_S, work_s(pod, most_s))) for pod in fleet.old_serving), default=0.0)


def work_s(pod: ObservedPod, unknown_s: float) -> float:
    """Seconds until the pod has finished what it accepted; `unknown_s` where it does not say."""
    if not isinstance(pod.report, Known):
        return unknown_s
    report = pod.report.value
    edits = report.running + report.waiting
    return edits * max(report.edit_s_by_size.values(), default=unknown_s) if edits else 0.0


def handover_s(ours: Sequence[ObservedPod]) -> float:
    """Seconds from the end of the drain until the new pod's container starts, without a pull of its image."""
    seen = [pod.prepared_at - pod.scheduled_at for pod in ours if pod.prepared_at and pod.scheduled_at]
    return GONE_S + BOUND_S + _least(seen, PREPARED_S)


# | pods that serve in their first container     | beside the warm-up it takes              |
# | tell when it started and what they warmed up | what the quickest of them took           |
# | tell no such time                            | the figure of a healthy cluster          |
def start_s(warmup: float | None, ours: Sequence[ObservedPod]) -> float | None:
    """Seconds from the start of the container until the pod is in the Service; None where no warm-up is known."""
    if warmup is None:
        return None
    seen = [
        pod.gate_since - pod.started_at - pod.report.value.warmup_s
        for pod in ours
        if is_serving(pod) and pod.started_at and pod.gate_since and not pod.restarts and isinstance(pod.report, Known)
    ]
    return warmup + _least(seen, NOTICED_S) + IN_SERVICE_S


def _least(seen: Sequence[float], unknown_s: float) -> float:
    return min((length for length in seen if 0 <= length <= LONGEST_S), default=unknown_s)


def warmup_s(previous: Mapping[str, Any], ours: Sequence[ObservedPod]) -> float | None:
    """Seconds of a warm-up as the last one took, from the container's start; None where none was measured."""
    last = previous.get("warmup", {}).get("lastSeconds")
    if isinstance(last, int | float):
        return float(last)
    seen = [pod.report.value.warmup_s for pod in ours if isinstance(pod.report, Known) and pod.report.value.warm]
    return max(seen, default=None)


# | the new pod   | a warm-up was measured | about                             |
# | has no place  | yes                    | drain, handover and start         |
# | has no place  | no                     | drain and handover, and a warm-up |
# | has its place | yes                    | its start, during the drain       |
# | has its place | no                     | a warm-up                         |
def words(*, drain: float, handover: float, start: float | None, placed: bool) -> str:
    """The length of the outage, and of its parts, all in seconds."""
    unknown = "; no warm-up was measured yet"
    if placed:
        length, parts = "a warm-up" if start is None else f"{start:.0f} s", "the new pod has its place"
    else:
        length = f"{drain + handover:.0f} s and a warm-up"
        parts = f"{drain:.0f} s to drain, {handover:.0f} s to hand its place over"
        if start is not None:
            length, parts = f"{drain + handover + start:.0f} s", f"{parts}, {start:.0f} s to start"
    return f"about {length} without a warm pod ({parts}{unknown if start is None else ''})"
