"""Bring one Deployment to a number of live pods, without ever touching a busy one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from imageedit_operator.core import drain
from imageedit_operator.core.actions import Action, DeletePod, ScaleDeployment, SetDeletionCost
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_draining, is_live


@dataclass(frozen=True, kw_only=True)
class Group:
    """A Deployment with its active pods. A plan asks for some of them dozens of times, and they never change."""

    deployment: ObservedDeployment
    pods: tuple[ObservedPod, ...]
    drain_timeout_s: float = 600.0
    """Longest time a pod may take to finish what it accepted, before it is removed all the same."""

    @cached_property
    def live(self) -> tuple[ObservedPod, ...]:
        """Pods that are not chosen to leave."""
        return tuple(pod for pod in self.pods if is_live(pod))

    @cached_property
    def draining(self) -> tuple[ObservedPod, ...]:
        """Pods that are chosen to leave and still there."""
        return tuple(pod for pod in self.pods if is_draining(pod))

    def done(self, now: float) -> tuple[ObservedPod, ...]:
        """Draining pods that have finished, or have had their time."""
        return tuple(pod for pod in self.draining if drain.is_done(pod, now, timeout_s=self.drain_timeout_s))

    @property
    def missing(self) -> int:
        """Pods that the ReplicaSet has not created yet, or cannot create."""
        return max(0, self.deployment.replicas - len(self.pods))

    @property
    def settling(self) -> bool:
        """The ReplicaSet has yet to remove pods of an earlier scale-down."""
        return len(self.pods) > self.deployment.replicas

    @property
    def usable(self) -> int:
        """Replicas that are or will be capacity: a draining pod is none."""
        return max(0, self.deployment.replicas - len(self.draining))


def resize(group: Group, goal: int, *, limit: int, now: float) -> tuple[Action, ...]:
    """Actions towards `goal` live pods; growth never takes the Deployment over `limit` replicas."""
    if group.settling:
        return _reminders(group.draining)
    if group.usable < goal:
        return _grow(group, goal, limit=limit, now=now)
    excess = group.usable - goal
    absent = min(excess, group.missing)
    ranked = sorted(group.live, key=drain.victim_rank)
    return remove(group, ranked[: excess - absent], absent=absent, now=now)


def remove(group: Group, victims: Iterable[ObservedPod], *, absent: int, now: float) -> tuple[Action, ...]:
    """Take exactly these live pods, the drained ones and `absent` pods that do not exist out of the Deployment.

    What may be busy is drained first. Only what is certainly idle is scaled away, in the
    same plan as the deletion cost that makes the ReplicaSet choose it.
    """
    if group.settling:
        return _reminders(group.draining)
    victims = tuple(victims)
    at_once = tuple(pod for pod in victims if drain.removable_at_once(pod))
    done = group.done(now)
    begun = [action for pod in victims if not drain.removable_at_once(pod) for action in drain.begin(pod)]
    waiting = _reminders(pod for pod in group.draining if pod not in done)
    if _first_to_go(group, (*at_once, *done), costs=_cost_for((*at_once, *done))):
        return (*waiting, *begun, *_scale_away(group, (*at_once, *done), absent=absent))
    # The ReplicaSet would take a younger pod in place of a drained one: name the drained ones.
    named = tuple(_delete(pod) for pod in done)
    return (*waiting, *begun, *_scale_away(group, at_once, absent=absent), *named)


def _grow(group: Group, goal: int, *, limit: int, now: float) -> tuple[Action, ...]:
    done = group.done(now)
    replaced = done[: goal - group.usable]  # their ReplicaSet fills the place with a new pod
    unfinished = len(group.draining) - len(replaced)
    replicas = min(goal + unfinished, max(limit, group.deployment.replicas))
    actions: list[Action] = [*_reminders(pod for pod in group.draining if pod not in done)]
    actions += [_delete(pod) for pod in replaced]
    if replicas > group.deployment.replicas:
        actions.append(_scale(group, replicas, "1 pod is wanted" if goal == 1 else f"{goal} pods are wanted"))
    return tuple(actions)


def _first_to_go(group: Group, chosen: Sequence[ObservedPod], *, costs: Callable[[ObservedPod], int]) -> bool:
    """Whether the ReplicaSet, scaled down by that many, would without a tie remove exactly `chosen`."""
    uids = {pod.uid for pod in chosen}
    going = [drain.deletion_key(pod, costs(pod)) for pod in chosen]
    staying = [drain.deletion_key(pod, costs(pod)) for pod in group.pods if pod.uid not in uids]
    return not going or not staying or max(going) < min(staying)


def _scale_away(group: Group, chosen: Sequence[ObservedPod], *, absent: int) -> tuple[Action, ...]:
    count = len(chosen) + absent
    if count == 0:
        return ()
    wanted_cost = _cost_for(chosen)
    costs = tuple(
        SetDeletionCost(pod=pod.name, uid=pod.uid, cost=wanted_cost(pod))
        for pod in group.pods
        if pod.deletion_cost != wanted_cost(pod)
    )
    # Where only the cost tells a drained pod from a busy one that is not ready just now, the
    # ReplicaSet must know the cost before it is told to remove: the scaling waits for the next look.
    if not _first_to_go(group, chosen, costs=lambda pod: pod.deletion_cost):
        return costs if _first_to_go(group, chosen, costs=wanted_cost) else ()
    names = ", ".join(pod.name for pod in chosen)
    names = names or ("1 pod that does not exist yet" if absent == 1 else f"{absent} pods that do not exist yet")
    return (*costs, _scale(group, max(0, group.deployment.replicas - count), f"removes {names}"))


def _cost_for(chosen: Sequence[ObservedPod]) -> Callable[[ObservedPod], int]:
    uids = {pod.uid for pod in chosen}
    return lambda pod: drain.DELETION_COST if pod.uid in uids else 0


def _scale(group: Group, replicas: int, why: str) -> ScaleDeployment:
    deployment = group.deployment
    return ScaleDeployment(
        name=deployment.name,
        uid=deployment.uid,
        resource_version=deployment.resource_version,
        replicas=replicas,
        why=why,
    )


def _delete(pod: ObservedPod) -> DeletePod:
    return DeletePod(pod=pod.name, uid=pod.uid, why="drained; its place goes to another pod")


def _reminders(pods: Iterable[ObservedPod]) -> tuple[Action, ...]:
    return tuple(action for pod in pods for action in drain.remind(pod))
