"""Whether a pod without a card is about to get the one of a pod of ours that leaves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from imageedit_operator.core import leaving as leaving_pods
from imageedit_operator.core import placement
from imageedit_operator.core.actions import Action, DeletePod, SetDeletionCost, SetGate
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import DRAINING, holds_card, is_draining
from imageedit_operator.core.stored import find

REASON = "CardHandedOver"

SETTLING_S = 30.0
"""How long the scheduler and the device plugin have for a card whose pod is gone: seconds, where nothing is wrong."""


# | pods without a card | cards of ours that come free         | the answer                             |
# | none                | any                                  | nothing to say                         |
# | some                | as many, or more                     | the first pod that leaves              |
# | some                | fewer, or those take too long        | nothing: somebody must free a card     |
# | some                | none yet, an old pod gives way soon  | that, and when                         |
# | some                | fewer now, announced half a minute   | as announced: the scheduler gives it   |
# |                     | ago, and nothing moved since         | out now                                |
# Too long is longer than the drain timeout and the margin after it, from when the one waits and the other drains.
def words(
    waiting: Sequence[ObservedPod],
    ours: Sequence[ObservedPod],
    actions: Iterable[Action],
    previous: Mapping[str, Any],
    *,
    resource_name: str,
    drain_timeout_s: float,
    stepped_at: float,
    soon: bool,
    now: float,
) -> str:
    """Whose card the `waiting` pods get, which lack one; empty where no card of ours comes free for each of them.

    `stepped_at` is when the rollout moved last; a pod that is gone is such a move. `soon` says that an old pod is to
    give way to the one that waits.
    """
    since = placement.unschedulable_since(waiting)
    if since is None or not resource_name:
        return ""
    chosen = frozenset(_sent_away(actions))
    patience_s = drain_timeout_s + placement.LEAVING_MARGIN_S
    leaving = [
        pod
        for pod in ours
        if _leaves(pod, chosen)
        and placement.gives_way([pod], resource_name=resource_name)
        and now - max(since, _draining_since(pod)) < patience_s
    ]
    if len(leaving) >= len(waiting):
        first = min(leaving, key=lambda pod: pod.name)
        return f"the new pod waits for the card of {first.name}, which {_how(first, chosen, now)}"
    if soon:
        grace_s = placement.UNSCHEDULABLE_GRACE_S
        return f"the new pod waits for a card; an old pod gives its own if none comes free within {grace_s:.0f} s"
    announced = find(previous, "WaitingForCard")
    if announced.get("reason") == REASON and now - stepped_at < SETTLING_S:
        return str(announced.get("message", ""))
    return ""


def _leaves(pod: ObservedPod, chosen: Collection[str]) -> bool:
    """Certain to give its card back, and holding it still."""
    return holds_card(pod) and (pod.terminating or is_draining(pod) or pod.deletion_cost < 0 or pod.uid in chosen)


def _sent_away(actions: Iterable[Action]) -> Iterable[str]:
    """The pods that this plan begins to drain or removes: their uids."""
    for action in actions:
        match action:
            case SetGate(uid=uid, reason=reason) if reason == DRAINING:
                yield uid
            case SetDeletionCost(uid=uid, cost=cost) if cost < 0:
                yield uid
            case DeletePod(uid=uid):
                yield uid


def _draining_since(pod: ObservedPod) -> float:
    return pod.gate_since if pod.gate_reason == DRAINING else 0.0


# | the pod                                       | said                                 |
# | is terminating, and when it ends is known     | when, and what keeps it until then   |
# | drains, or is chosen to                       | drains                               |
# | else                                          | ends                                 |
def _how(pod: ObservedPod, chosen: Collection[str], now: float) -> str:
    if pod.terminating and pod.ends_by:
        return leaving_pods.how(pod, now=now)
    return "drains" if pod.gate_reason == DRAINING or pod.uid in chosen else "ends"
