"""Cards as the cluster shows them: how many there are, who holds them, which are sick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from imageedit_operator.core.offer import Offer


@dataclass(frozen=True, kw_only=True, slots=True)
class SickNode:
    """A node with sick cards of the wanted resource."""

    sick: Mapping[str, str] = field(default_factory=dict)
    """The cards that the device plugin names, with its words."""
    capacity: int
    allocatable: int
    """Cards that the kubelet gives out: without those that it knows to be sick."""
    requested: int
    """By every pod on the node, those on sick cards included."""
    sick_held: int = 0
    """Of the named cards, those that pods hold."""
    takes_pods: bool = True

    @property
    def healthy(self) -> int:
        """Cards that are well. What kubelet and plugin call sick are the same cards, as far as they can be."""
        return max(0, min(self.allocatable, self.capacity - len(self.sick)))

    @property
    def free(self) -> int:
        """Healthy cards that a new pod could get now.

        The scheduler counts a pod on a sick card as if it held a healthy one, so its view is a limit too.
        """
        if not self.takes_pods:
            return 0
        return max(0, min(self.allocatable - self.requested, self.healthy - self.requested + self.sick_held))

    def without(self, cards: int, *, named_sick: int) -> SickNode:
        """The node once a pod of so many cards has left it, of which `named_sick` are in `sick`."""
        return replace(self, requested=self.requested - cards, sick_held=max(0, self.sick_held - named_sick))


@dataclass(frozen=True, kw_only=True, slots=True)
class CardLedger:
    """Cards of the wanted resource on the nodes that could run our pods."""

    allocatable: int
    requested: int
    """By every pod that holds or was given a card, foreign and terminating ones included."""
    claimed: int = 0
    """Of the free ones, those that waiting pods of other ImageEditDeployments are about to take."""
    sick_nodes: Mapping[str, SickNode] = field(default_factory=dict)
    """By name; nodes whose cards are all well are not listed."""
    offer: Offer | None = None
    """Which nodes have such cards at all, told where no node that takes the pods has enough healthy ones for a pod."""
    holders: tuple[str, ...] = ()
    """Who else holds cards, in words, sorted."""
    ready_nodes: frozenset[str] | None = None
    """Names of all nodes that are ready, with cards or without; None when they are not known."""

    @property
    def free(self) -> int:
        """Cards that a new pod could get now; never below zero."""
        return max(0, self.allocatable - self.requested)
