"""Which pods sit on sick cards, as far as somebody says which card is whose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import holds_card

KUBELET_WORDS = "the kubelet calls it unhealthy"


def sick_nodes(cards: Known[CardLedger] | Unknown) -> dict[str, SickNode]:
    """The nodes with sick cards by name; empty while nobody knows."""
    return dict(cards.value.sick_nodes) if isinstance(cards, Known) else {}


# | the pod                                        | its card               |
# | has no node, or is over                        | none                   |
# | the kubelet calls one of its cards unhealthy   | sick                   |
# | its device plugin names one of its cards sick  | sick                   |
# | else: it holds other cards, or nobody says     | not known to be sick   |
# That a node offers fewer cards than it has does not say whose card it is: see `suspects`.
def mark(pods: Iterable[ObservedPod], cards: Known[CardLedger] | Unknown) -> tuple[ObservedPod, ...]:
    """The pods with `sick_card` and `sick_words` filled in."""
    nodes = sick_nodes(cards)
    return tuple(_marked(pod, nodes.get(pod.node)) for pod in pods)


def _marked(pod: ObservedPod, node: SickNode | None) -> ObservedPod:
    if not holds_card(pod):
        return pod
    named = {card: node.sick[card] for card in pod.held_cards if card in node.sick} if node is not None else {}
    told = dict.fromkeys(pod.unhealthy_cards, KUBELET_WORDS) | named
    if not told:
        return pod
    card = min(told)
    return replace(pod, sick_card=card, sick_words=told[card])


# | the node offers                           | a pod on it is marked sick | suspects           |
# | as many cards as pods hold there, or more | any                        | none               |
# | fewer, and no card is missing             | any                        | none: a race       |
# | fewer, and a card is missing              | yes                        | none: it is that   |
# | fewer, and a card is missing              | no                         | our pods on it     |
def suspects(pods: Sequence[ObservedPod], cards: Known[CardLedger] | Unknown) -> dict[str, tuple[ObservedPod, ...]]:
    """By node our pods of which one may sit on a sick card while nobody says which; by name."""
    found: dict[str, tuple[ObservedPod, ...]] = {}
    for name, node in sorted(sick_nodes(cards).items()):
        ours = sorted((pod for pod in pods if pod.node == name and holds_card(pod)), key=lambda pod: pod.name)
        short = node.allocatable < min(node.requested, node.capacity)
        if ours and short and not any(pod.sick_card for pod in ours) and any(not pod.held_cards for pod in ours):
            found[name] = tuple(pod for pod in ours if not pod.held_cards)
    return found


# | cards known | after the pod has left its node                  | room |
# | no          | -                                                | no   |
# | yes         | its node is not listed: nothing of it is sick    | no   |
# | yes         | enough healthy cards are free there              | yes  |
# | yes         | not enough, or the node takes no pods            | no   |
def room_in_its_place(pod: ObservedPod, cards: Known[CardLedger] | Unknown, cards_per_pod: int) -> bool:
    """Whether a new pod would find healthy cards on this pod's node once it is gone."""
    node = sick_nodes(cards).get(pod.node)
    if node is None or not cards_per_pod:
        return False
    named = sum(card in node.sick for card in pod.held_cards)
    return node.without(cards_per_pod, named_sick=named).free >= cards_per_pod
