"""Whether a replacement can get a card by itself, or only in the place of an old pod."""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_serving
from imageedit_operator.core.unplaced import could_get_room

UNSCHEDULABLE_GRACE_S = 60.0
"""How long a replacement may stay unschedulable while cards seem free, before an old pod gives way."""

LAST_POD_GRACE_S = 120.0
"""How long the last warm pod of several keeps its card while another card, gone or sick, may come back."""

LEAVING_MARGIN_S = 90.0
"""Beyond the drain timeout: how long a replacement waits for the card of a pod that is on its way out.
A pod on a lost node never gets there, and must not hold up the rollout for ever."""


def free_pods(cards: Known[CardLedger] | Unknown, cards_per_pod: int, *, claims: bool = False) -> int | None:
    """How many more pods could get their cards now; None when nobody knows, or no card is asked for.

    With `claims` the cards that other resources' waiting pods are about to take do not count.
    """
    if cards_per_pod == 0 or isinstance(cards, Unknown):
        return None
    taken = cards.value.claimed if claims else 0
    return max(0, cards.value.free - taken) // cards_per_pod


def unschedulable_since(pods: Sequence[ObservedPod]) -> float | None:
    """Since when the first of these pods has found no place; None when none looks for one that could come free.

    A pod whose scheduler wrote no time has found none since its creation.
    """
    since = [pod.unschedulable_since or pod.created_at for pod in pods if could_get_room(pod)]
    return min(since, default=None)


# | unschedulable pod of the wanted revision | free cards | blocked              |
# | none                                     | any        | no                   |
# | one that nobody's leaving helps          | any        | no                   |
# | yes                                      | known, 0   | yes                  |
# | yes                                      | >= 1       | after the grace time |
# | yes                                      | unknown    | after the grace time |
# | yes                                      | none asked | after the grace time |
# Free cards count here even where another resource's pod waits for them too: who is first gets the
# card, and the other one sees none free at the next look.
# The grace time begins anew with each step: a card that an old pod just left is about to be taken.
def is_blocked(
    wanted: Sequence[ObservedPod],
    *,
    cards_per_pod: int,
    cards: Known[CardLedger] | Unknown,
    stepped_at: float,
    now: float,
) -> bool:
    """Whether the replacement can only run in the place of an old pod."""
    since = unschedulable_since(wanted)
    if since is None:
        return False
    return free_pods(cards, cards_per_pod) == 0 or now - max(since, stepped_at) >= UNSCHEDULABLE_GRACE_S


# | the replacement asks for     | an old pod holds        | its place helps |
# | no card                      | anything                | yes             |
# | a card                       | one of the same name    | yes             |
# | a card                       | cards of other names    | no              |
# | a card                       | nobody knows            | yes             |
# | a card                       | it on a lost node       | no              |
def gives_way(olds: Sequence[ObservedPod], *, resource_name: str) -> bool:
    """Whether an old pod that leaves could make room; a mistyped resource name must not empty the service."""
    if not resource_name:
        return True
    return any(not pod.lost and (pod.cards is None or pod.cards.get(resource_name, 0) > 0) for pod in olds)


# | warm pods                  | the replacement has waited since the last step | spent |
# | as many as wanted, or more | any time                                       | no    |
# | fewer, the last of several | less than two minutes                          | yes   |
# | fewer                      | less than a minute                             | yes   |
# | fewer                      | longer                                         | no    |
def budget_spent(wanted_pods: Sequence[ObservedPod], *, warm: int, wanted: int, stepped_at: float, now: float) -> bool:
    """One pod is missing already, and the card that it left may still come to its replacement."""
    since = unschedulable_since(wanted_pods)
    if warm >= wanted or since is None:
        return False
    grace_s = LAST_POD_GRACE_S if warm == 1 else UNSCHEDULABLE_GRACE_S
    return now - max(since, stepped_at) < grace_s


def starting(pods: Sequence[ObservedPod]) -> bool:
    """Whether one of these pods has its place and is not warm yet."""
    return any(pod.node and not is_serving(pod) for pod in pods)


def may_be_placed(pods: Sequence[ObservedPod]) -> bool:
    """Whether one of these pods has its place, or could get one where an old pod leaves, as far as is known."""
    return any(pod.node or not pod.unschedulable or could_get_room(pod) for pod in pods)
