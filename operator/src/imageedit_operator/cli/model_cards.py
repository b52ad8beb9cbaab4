"""The cards of a forecast: who holds them, and the scheduler's words for a pod that gets none. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from imageedit_operator.core.demand import cards_per_pod
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.offer import Offer, reasons
from imageedit_operator.core.pods import holds_card
from imageedit_operator.core.resource import ImageEditDeployment


@dataclass(frozen=True, kw_only=True, slots=True)
class Cards:
    """Cards of one name as they were seen; none comes or goes."""

    name: str
    each: int
    """That a pod asks for; 0 where it asks for none."""
    seen: Known[CardLedger] | Unknown
    given: int
    """That the resource's own pods held."""

    def held(self, pods: Iterable[ObservedPod]) -> int:
        """Cards that these pods hold."""
        return _held(self.name, pods)

    def ledger(self, pods: Iterable[ObservedPod]) -> Known[CardLedger] | Unknown:
        """The ledger while these are the resource's own pods."""
        if isinstance(self.seen, Unknown):
            return self.seen
        return Known(value=replace(self.seen.value, requested=self._others() + self.held(pods)))

    # Where nobody may know the free cards, none is taken for free: the forecast is the worst case.
    def scheduler_words(self, pods: Iterable[ObservedPod]) -> str:
        """Why one more pod gets no card beside these; empty where it gets one, or asks for none."""
        if not self.each:
            return ""
        free = self._most() - self.held(pods)
        return self._nowhere() or (f"Insufficient {self.name}" if free < self.each else "")

    def _most(self) -> int:
        """Cards that the resource's own pods may hold together."""
        return self.given if isinstance(self.seen, Unknown) else self.seen.value.allocatable - self._others()

    def _others(self) -> int:
        """Cards that are not ours to give."""
        return 0 if isinstance(self.seen, Unknown) else max(0, self.seen.value.requested - self.given)

    def _nowhere(self) -> str:
        """The scheduler's words where no pod that leaves helps, for no node of the pod's has as many cards at all."""
        if isinstance(self.seen, Unknown):
            return ""
        ledger = self.seen.value
        if ledger.offer is None and ledger.allocatable >= self.each:
            return ""
        lacks = reasons(ledger.offer or Offer()) or (f"Insufficient {self.name}",)
        nodes = len(ledger.ready_nodes or ())
        said = ", ".join(f"{nodes} {lack}" for lack in lacks)
        return (
            f"0/{nodes} nodes are available: {said}. "
            f"preemption: 0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
        )


def seen(resource: ImageEditDeployment, observed: Observed) -> Cards:
    """The cards that a resource's pods ask for, as they were observed."""
    name = resource.accelerator.extended_resource
    given = _held(name, observed.pods)
    return Cards(name=name, each=cards_per_pod(resource), seen=observed.cards, given=given)


def _held(name: str, pods: Iterable[ObservedPod]) -> int:
    return sum((pod.cards or {}).get(name, 0) for pod in pods if holds_card(pod))
