"""A pod on a sick card gives way to one on another card: once for each sickness, one pod at a time.

The status remembers which pod was chosen on which card. A plan acts on what the status holds already, so an
operator that dies between two writes chooses the same pod again, and never a second one for the same sickness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from imageedit_operator.core import drain
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.placement import free_pods
from imageedit_operator.core.pods import is_live, is_serving
from imageedit_operator.core.sick_cards import room_in_its_place, sick_nodes
from imageedit_operator.core.stored import epoch_s, timestamp

SETTLE_S = 20.0
"""How long a card must be sick before its pod is replaced: some faults pass."""

PLUGIN_S = 120.0
"""The same, and the patience with suspicions, on a node that offers none of its cards: its plugin may be restarting."""

REPEAT_S = 24 * 3600.0
"""A card that was left within this time is not left again: what returns at once is not cured by moving pods."""

MOST_CASES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One sick card with the pod that sits on it; times are UTC epoch seconds."""

    node: str
    card: str
    """Empty: one of the node's cards, nobody says which."""
    pod: str
    since: float
    replaced_at: float | None = None
    """When the pod was chosen to be replaced; the case is kept for a day from then on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Relief:
    """The pod that is replaced now, and how."""

    pod: ObservedPod
    way: str
    """Surge, InPlace, AtOnce, or Wait while no card is free for its replacement."""


def read(status: Mapping[str, Any]) -> tuple[Case, ...]:
    """The cases of a stored status; what cannot be read is left out."""
    stored = status.get("sickCards")
    found = (_read(item) for item in stored) if isinstance(stored, Sequence) else ()
    return tuple(case for case in found if case is not None)


def write(cases: Iterable[Case]) -> dict[str, Any]:
    """The cases as they are stored."""
    items = [
        {"node": case.node, "card": case.card, "pod": case.pod, "since": timestamp(case.since)}
        | ({} if case.replaced_at is None else {"replacedAt": timestamp(case.replaced_at)})
        for case in cases
    ]
    return {"sickCards": items} if items else {}


def chosen_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Case, ...]:
    """The cases whose pods were chosen from one status to the next."""
    known = {(case.node, case.card, case.replaced_at) for case in read(before)}
    new = (case for case in read(after) if case.replaced_at is not None and case.pod)
    return tuple(case for case in new if (case.node, case.card, case.replaced_at) not in known)


def in_hand(cases: Iterable[Case], pods: Iterable[ObservedPod]) -> ObservedPod | None:
    """The pod that the status chose, while it is there; it may be terminating already."""
    chosen = {case.pod for case in cases if case.replaced_at is not None}
    return next((pod for pod in pods if pod.name in chosen), None)


# The first row that fits decides. A card is "had" where it is free, or where the replacement has its place already.
# | the pod                        | rollout                         | cards                               | way     |
# | drains already                 | any                             | any                                 | InPlace |
# | works on nothing               | none, or it is no old pod       | known, one is had or comes by it    | AtOnce  |
# | works on nothing               | stands                          | known, one is had or comes by it    | AtOnce  |
# | any                            | under way                       | any                                 | Wait    |
# | any                            | none                            | one is had, or nobody knows         | Surge   |
# | any, and the others serve      | none                            | none, but a healthy one in its place| InPlace |
# | any                            | none                            | none                                | Wait    |
def find_way(
    pod: ObservedPod,
    fleet: Fleet,
    cards: Known[CardLedger] | Unknown,
    *,
    cards_per_pod: int,
    wanted: int,
    stands: bool,
) -> str:
    """How this pod is replaced now."""
    if not is_live(pod):
        return "InPlace"
    free = free_pods(cards, cards_per_pod, claims=True)
    room = room_in_its_place(pod, cards, cards_per_pod)
    ours = any(item.uid == pod.uid for item in fleet.wanted.live)
    if drain.removable_at_once(pod) and (ours or stands) and (room or bool(free)):
        return "AtOnce"
    if fleet.old or not ours:
        return "Wait"
    if _is_had(pod, fleet, wanted) or free is None or free > 0:
        return "Surge"
    others = fleet.serving - is_serving(pod)
    return "InPlace" if room and others >= wanted - 1 else "Wait"


# | the pods beside it, of those wanted           | a card is had         |
# | all have a node                               | yes                   |
# | one has none, and the scheduler looks for one | not known: count them |
# | one has none, and the scheduler did not look  | yes, for now          |
def _is_had(pod: ObservedPod, fleet: Fleet, wanted: int) -> bool:
    others = [item for item in fleet.wanted.live if item.uid != pod.uid]
    return len(others) >= wanted and not any(item.unschedulable and not item.node for item in others)


# | the way         | warm pods beside it | pods that are wanted |
# | Surge           | fewer than wanted   | one more             |
# | Surge           | as many             | as wanted: it leaves |
# | any other, none | any                 | as wanted            |
def goal(fleet: Fleet, found: Relief | None, wanted: int) -> tuple[int, int]:
    """Live pods of a revision that nothing is older than, and the most replicas of its Deployment."""
    draining = len(fleet.wanted.draining)
    if found is None or wanted == 0:
        return wanted, wanted + draining
    if not is_live(found.pod):
        return wanted, wanted + draining - 1  # its place is its replacement's
    beside = fleet.serving - is_serving(found.pod)
    more = 1 if found.way == "Surge" and beside < wanted else 0
    return wanted + more, wanted + more + draining


# | the case                             | its card now                | after this look                     |
# | none                                 | sick, a pod of ours on it   | a new one                           |
# | not chosen                           | sick, a pod of ours on it   | stays, with that pod                |
# | not chosen                           | well, or none of ours on it | is forgotten                        |
# | not chosen, of the pod chosen now    | sick                        | chosen                              |
# | chosen, its pod is live              | well                        | stays without its pod               |
# | chosen                               | any                         | stays for a day, and while its pod  |
# | any                                  | nobody knows the cards      | as it was                           |
# A card that is well again before its pod left counts as left: one that comes and goes must not move pods all day.
def follow(
    cases: Sequence[Case],
    pods: Sequence[ObservedPod],
    suspected: Mapping[str, Sequence[ObservedPod]],
    *,
    chosen: ObservedPod | None,
    known: bool,
    now: float,
) -> tuple[Case, ...]:
    """The cases after this look, in a fixed order; at most MOST_CASES, those with the oldest choice go first."""
    sick = {(pod.node, pod.sick_card): pod.name for pod in pods if pod.sick_card and is_live(pod)}
    sick |= {(node, ""): ours[0].name for node, ours in suspected.items()}
    names = {pod.name for pod in pods}
    well = {pod.name for pod in pods if is_live(pod) and not pod.sick_card} if known else set()
    kept = {
        (case.node, case.card): replace(case, pod="") if case.pod in well else case
        for case in cases
        if (case.replaced_at is None and not known)
        or (case.replaced_at is not None and (case.pod in names or now - case.replaced_at < REPEAT_S))
    }
    before = {(case.node, case.card): case for case in cases}
    for place, pod in sick.items():
        if place not in kept:
            since = before[place].since if place in before else now
            kept[place] = Case(node=place[0], card=place[1], pod=pod, since=since)
    if chosen is not None:
        place = (chosen.node, chosen.sick_card)
        kept[place] = replace(kept[place], pod=chosen.name, replaced_at=now)
    newest = sorted(kept.values(), key=lambda case: case.replaced_at or now, reverse=True)[:MOST_CASES]
    return tuple(sorted(newest, key=lambda case: (case.node, case.card)))


def may_be_chosen(pod: ObservedPod, cases: Sequence[Case], cards: Known[CardLedger] | Unknown, *, now: float) -> bool:
    """Whether this pod's card has been sick long enough, and was not left for the same reason before."""
    case = next((case for case in cases if (case.node, case.card) == (pod.node, pod.sick_card)), None)
    return case is not None and case.replaced_at is None and now - case.since >= patience_s(pod.node, cards)


def patience_s(node: str, cards: Known[CardLedger] | Unknown) -> float:
    """How long a card of this node must be sick before anything is done about it."""
    known = sick_nodes(cards).get(node)
    return PLUGIN_S if known is not None and known.allocatable == 0 else SETTLE_S


def _read(item: object) -> Case | None:
    if not isinstance(item, Mapping):
        return None
    try:
        at = item.get("replacedAt")
        return Case(
            node=str(item["node"]),
            card=str(item["card"]),
            pod=str(item["pod"]),
            since=epoch_s(item["since"]),
            replaced_at=None if at is None else epoch_s(at),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
