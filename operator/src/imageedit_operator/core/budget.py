"""How many server pods may be evicted at a time, so that draining a node costs little and never waits for ever.

One budget covers the pods of every revision. The eviction API refuses each eviction of a pod that two budgets
select, so the operator's own goes where somebody else has written one.
"""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core import manifests
from imageedit_operator.core.actions import Action, ApplyBudget, DeleteBudget
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.placement import LEAVING_MARGIN_S
from imageedit_operator.core.pods import holds_card, is_active, trouble
from imageedit_operator.core.resource import ImageEditDeployment

PATIENCE_S = 60.0
"""How long a pod must have been without a place: schedulers look again within seconds."""


# Kubernetes allows an eviction while fewer than maxUnavailable of the replicas asked for are not ready.
# | replica                                             | adds to maxUnavailable             |
# | the first that may be missing                       | 1: a single pod can be evicted     |
# | ready, or on its way: placed, loading, draining     | 0: the eviction waits for it       |
# | without a place, and one comes: a pod leaves one, or| 0                                  |
# | a card is free                                      |                                    |
# | without a place for a minute, and none comes        | 1: its card may be on that node    |
# | the same for longer than any pod takes to leave     | 1, whatever seems free             |
# | in trouble that waiting does not cure               | 1                                  |
# | asked for, but the apiserver refuses its pod        | 1                                  |
def max_unavailable(
    owned: Sequence[ObservedDeployment],
    ours: Sequence[ObservedPod],
    *,
    free: int | None,
    drain_timeout_s: float,
    now: float,
) -> int:
    """Replicas that may be unavailable before an eviction has to wait; `free` places are known for more pods."""
    active = [pod for pod in ours if is_active(pod)]
    waits_s = [now - pod.unschedulable_since for pod in active if pod.unschedulable]
    longest_s = drain_timeout_s + LEAVING_MARGIN_S
    lost = sum(wait_s >= longest_s for wait_s in waits_s)
    places = (free or 0) + sum(pod.terminating and holds_card(pod) for pod in ours)
    without = max(0, sum(PATIENCE_S <= wait_s < longest_s for wait_s in waits_s) - places)
    in_trouble = sum(not pod.ready and not pod.unschedulable and trouble(pod) is not None for pod in active)
    refused = sum(_refused(item, active) for item in owned if item.refused)
    return 1 + lost + without + in_trouble + refused


# | a budget of others selects the pods | the one of our name        | action                 |
# | yes                                 | ours                       | delete it              |
# | yes                                 | absent, or another owner's | none                   |
# | no                                  | absent                     | create it              |
# | no                                  | ours, as it should be      | none                   |
# | no                                  | ours, changed, old number  | apply it               |
# | no                                  | another owner's            | none                   |
def changes(
    resource: ImageEditDeployment,
    budgets: Known[Budgets] | Unknown,
    owned: Sequence[ObservedDeployment],
    ours: Sequence[ObservedPod],
    *,
    free: int | None,
    now: float,
) -> tuple[Action, ...]:
    """What is to be written or deleted."""
    if isinstance(budgets, Unknown):
        return ()
    named = budgets.value.named
    if named is not None and named.foreign_owner:
        return ()
    if budgets.value.others:
        if named is None:
            return ()
        return (DeleteBudget(name=resource.name, uid=named.uid, resource_version=named.resource_version),)
    wanted = max_unavailable(owned, ours, free=free, drain_timeout_s=resource.rollout.drain_timeout_s, now=now)
    if named is not None and named.intact and named.max_unavailable == wanted:
        return ()
    return (ApplyBudget(manifest=manifests.budget(resource, wanted), uid=named.uid if named is not None else ""),)


def _refused(deployment: ObservedDeployment, active: Sequence[ObservedPod]) -> int:
    mine = sum(pod.revision_hash == deployment.revision_hash for pod in active)
    return max(0, deployment.replicas - mine) if mine else 0
