"""What is expected of each pod: to be warm in time, with the files that its revision had before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_live, is_serving
from imageedit_operator.core.unplaced import volume_words

FIRST_DEADLINE_S = 3600.0
"""Nothing was measured yet: an image of many gigabytes and a checkpoint of fifty may have to come first."""

DEADLINE_FLOOR_S = 600.0
DEADLINE_FACTOR = 3.0


# | rollout.progressDeadline | warm-up measured | deadline                                |
# | a time                   | any              | that time                               |
# | Auto                     | no               | an hour                                 |
# | Auto                     | yes              | ten minutes and three times its p95     |
def deadline_s(wanted_s: float | None, status: Mapping[str, Any]) -> float:
    """How long a pod may be on its node before it must be warm, image pull included."""
    if wanted_s is not None:
        return wanted_s
    warmup = status.get("warmup", {})
    measured = warmup.get("p95Seconds", warmup.get("lastSeconds"))
    if not isinstance(measured, int | float):
        return FIRST_DEADLINE_S
    return DEADLINE_FLOOR_S + DEADLINE_FACTOR * float(measured)


def mark(
    pods: Iterable[ObservedPod],
    *,
    digests: Mapping[str, str],
    files_at: Mapping[str, float],
    cards: Known[CardLedger] | Unknown,
    deadline_s: float,
    now: float,
) -> tuple[ObservedPod, ...]:
    """The pods with what is expected of them.

    `digests` are by revision hash. `files_at` is by uid: when the files that a pod waited for came to its node.
    """
    return tuple(
        replace(
            pod,
            expected_digest=digests.get(pod.revision_hash, ""),
            overdue_s=deadline_s if _is_overdue(pod, files_at.get(pod.uid, 0.0), deadline_s, now) else 0.0,
            lost=_is_lost(pod, cards),
        )
        for pod in pods
    )


# | the pod's node                            | the pod                           | lost |
# | ready, or nobody knows, or it has none    | any                               | no   |
# | not ready, or gone                        | the kubelet's last word was ready | no   |
# | not ready, or gone                        | answers /warmz                    | no   |
# | not ready, or gone                        | else                              | yes  |
# A list of nodes may be older than a new node: only what is not ready either is given up.
def _is_lost(pod: ObservedPod, cards: Known[CardLedger] | Unknown) -> bool:
    """Nobody can drain it or hear that it has ended, until its node is back or its object is removed."""
    if isinstance(cards, Unknown) or cards.value.ready_nodes is None or not pod.node:
        return False
    return pod.node not in cards.value.ready_nodes and not pod.ready and not isinstance(pod.report, Known)


# | the pod                                     | its time runs                                               |
# | is not live, serves, or its gate is open    | not                                                         |
# | has no node, for its claims have no volume  | since the scheduler said so                                 |
# | has none for another reason                 | not: others must give it a place                            |
# | has one                                     | since then, its files are there, or a warm container ended  |
def _is_overdue(pod: ObservedPod, files_at: float, deadline_s: float, now: float) -> bool:
    if volume_words(pod) and is_live(pod):
        return now - (pod.unschedulable_since or pod.created_at) >= deadline_s
    if not is_live(pod) or not pod.node or pod.scheduled_at <= 0 or is_serving(pod) or pod.gate is True:
        return False
    since = max(pod.scheduled_at, files_at, pod.gate_since if pod.gate is False else 0.0)
    return now - since >= deadline_s
