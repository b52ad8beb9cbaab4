"""Sick cards in one look: which pod gives way now, what is said of it, and what the status remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core import degraded, relief, rollout, sick_cards
from imageedit_operator.core.actions import DeletePod
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, is_active, is_live
from imageedit_operator.core.relief import Case, Relief
from imageedit_operator.core.rollout import Terms


@dataclass(frozen=True, kw_only=True, slots=True)
class Sickness:
    """What one look makes of the sick cards."""

    cases: tuple[Case, ...] = ()
    """What the status remembers after this look."""
    relief: Relief | None = None
    """The pod that gives way now: the status knew of it before this look."""
    trouble: Trouble | None = None

    @property
    def unsettled(self) -> bool:
        """Whether a card may be sick, and it is not known yet whether that lasts."""
        return any(case.replaced_at is None for case in self.cases)

    @property
    def at_once(self) -> tuple[DeletePod, ...]:
        """The pod that gives way works on nothing: its ReplicaSet makes another one, on another card."""
        if self.relief is None or self.relief.way != "AtOnce":
            return ()
        pod = self.relief.pod
        why = f"card {pod.sick_card} of node {pod.node} is sick, and another one is free"
        return (DeletePod(pod=pod.name, uid=pod.uid, why=why, reason=degraded.REASON),)


def assess(
    pods: Sequence[ObservedPod],
    fleet: Fleet | None,
    terms: Terms,
    status: Mapping[str, Any],
    *,
    wanted: int,
    now: float,
) -> Sickness:
    """What to do about sick cards; `pods` are ours, marked by sick_cards."""
    cards, cases = terms.cards, relief.read(status)
    stands = rollout.stands(fleet, terms, wanted=wanted)
    suspected = sick_cards.suspects(pods, cards)

    def way(pod: ObservedPod) -> str:
        if fleet is None or wanted == 0:
            return "Wait"
        return relief.find_way(pod, fleet, cards, cards_per_pod=terms.cards_per_pod, wanted=wanted, stands=stands)

    hand = relief.in_hand(cases, pods)
    found = Relief(pod=hand, way=way(hand)) if hand is not None and is_active(hand) else None
    chosen = None if hand is not None else _choose(pods, cases, cards, way=way, now=now)
    after = relief.follow(cases, pods, suspected, chosen=chosen, known=isinstance(cards, Known), now=now)
    said = degraded.sick_words(
        pods,
        suspected,
        after,
        cards,
        found=found if chosen is None else Relief(pod=chosen, way=way(chosen)),
        rolling=fleet is not None and bool(fleet.old),
        now=now,
    )
    return Sickness(cases=after, relief=found, trouble=said)


def _choose(
    pods: Sequence[ObservedPod],
    cases: Sequence[Case],
    cards: Known[CardLedger] | Unknown,
    *,
    way: Callable[[ObservedPod], str],
    now: float,
) -> ObservedPod | None:
    """The next pod to give way: one that cannot serve before one that does, then by name."""
    ready = (
        pod
        for pod in sorted(pods, key=lambda pod: (pod.ready, pod.name))
        if pod.sick_card and is_live(pod) and relief.may_be_chosen(pod, cases, cards, now=now)
    )
    return next((pod for pod in ready if way(pod) != "Wait"), None)
