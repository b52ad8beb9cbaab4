"""The pods of a resource, ordered by revision, as a rollout sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from imageedit_operator.core import drain, refusals
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, holds_card, is_active, is_serving, trouble
from imageedit_operator.core.resize import Group


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The pods of a resource, ordered by revision."""

    wanted: Group
    """The revision that the rollout goes to; its Deployment exists."""
    old: tuple[Group, ...]
    """Other revisions that still have replicas or pods."""
    terminating: tuple[ObservedPod, ...] = ()
    """Pods on their way out that still hold a card."""

    @cached_property
    def serving(self) -> int:
        """Warm, ready pods of the wanted revision."""
        return sum(is_serving(pod) for pod in self.wanted.live)

    @cached_property
    def old_pods(self) -> tuple[ObservedPod, ...]:
        """Old pods that are not chosen to leave, whether they can serve or not."""
        return tuple(pod for group in self.old for pod in group.live)

    @cached_property
    def old_live(self) -> tuple[ObservedPod, ...]:
        """Old pods that serve or may serve again; the ones that cannot are removed outside the budget."""
        useless = self.useless
        return tuple(pod for pod in self.old_pods if pod not in useless)

    # | old pod                                      | useless |
    # | works on nothing and serves nobody           | yes     |
    # | on a lost node, while another pod serves     | yes     |
    # | on a lost node, and no pod serves            | no      |
    # | else                                         | no      |
    # Where all nodes seem lost it is more likely the way to them: the pods may serve on behind it.
    @cached_property
    def useless(self) -> tuple[ObservedPod, ...]:
        """Old pods that nothing is lost with."""
        served = bool(self.serving or self.old_serving)
        return tuple(pod for pod in self.old_pods if drain.removable_at_once(pod) or (pod.lost and served))

    @cached_property
    def old_serving(self) -> tuple[ObservedPod, ...]:
        """Old pods that get requests."""
        return tuple(pod for pod in self.old_pods if is_serving(pod))

    @property
    def old_total(self) -> int:
        """Old pods that count against the ceiling of pods."""
        return sum(max(len(group.pods), group.deployment.replicas) for group in self.old)

    @property
    def old_usable(self) -> int:
        """Replicas of old revisions that are or will be capacity."""
        return sum(group.usable for group in self.old)

    @property
    def draining(self) -> bool:
        """Whether any pod is chosen to leave and still there."""
        return any(group.draining for group in (self.wanted, *self.old))


def groups(
    owned: Sequence[ObservedDeployment], ours: Sequence[ObservedPod], *, drain_timeout_s: float
) -> tuple[Group, ...]:
    """Each revision's Deployment with its active pods, oldest first."""

    def group(deployment: ObservedDeployment) -> Group:
        pods = (pod for pod in ours if pod.revision_hash == deployment.revision_hash and is_active(pod))
        return Group(deployment=deployment, pods=tuple(pods), drain_timeout_s=drain_timeout_s)

    return tuple(group(deployment) for deployment in sorted(owned, key=lambda item: (item.created_at, item.name)))


def assemble(target: str, found: Sequence[Group], ours: Sequence[ObservedPod], *, reserve: str = "") -> Fleet | None:
    """The groups of a rollout; None while the target has no Deployment.

    `reserve` is a revision that counts as old although nothing of it runs: one to grow while a new one is held.
    """
    wanted = next((item for item in found if item.deployment.revision_hash == target), None)
    if wanted is None:
        return None
    old = tuple(item for item in found if item is not wanted and (item.deployment.replicas or item.pods))
    if not old:
        old = tuple(item for item in found if item is not wanted and item.deployment.revision_hash == reserve)
    return Fleet(wanted=wanted, old=old, terminating=tuple(pod for pod in ours if pod.terminating and holds_card(pod)))


def first_trouble(fleet: Fleet) -> Trouble | None:
    """The first fault of the wanted revision that waiting does not cure: a class that is not there, a pod by name."""
    refused = refusals.of(fleet.wanted)
    if refused is not None and refused.reason == "RuntimeClassMissing":
        return refused
    found = (trouble(pod) for pod in sorted(fleet.wanted.live, key=lambda pod: pod.name))
    return next((item for item in found if item is not None), None)
