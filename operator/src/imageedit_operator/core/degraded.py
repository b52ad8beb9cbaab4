"""What is wrong with a resource although it may serve: the condition Degraded, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, is_live
from imageedit_operator.core.relief import Case, Relief, patience_s
from imageedit_operator.core.sick_cards import sick_nodes

REASON = "DeviceUnhealthy"


# | first that fits                                                | said                                 |
# | pods sit on sick cards                                         | DeviceUnhealthy, each with its card  |
# | a node offers fewer cards than pods hold, for two minutes      | DeviceUnhealthy, the pods in question|
# | else                                                           | nothing                              |
def sick_words(
    pods: Sequence[ObservedPod],
    suspected: Mapping[str, Sequence[ObservedPod]],
    cases: Sequence[Case],
    cards: Known[CardLedger] | Unknown,
    *,
    found: Relief | None,
    rolling: bool,
    now: float,
) -> Trouble | None:
    """Which pods sit on sick cards, and what happens to them or is to be done."""
    sick = sorted((pod for pod in pods if pod.sick_card and not pod.terminating), key=lambda pod: pod.name)
    if sick:
        words = (_of_pod(pod, cases, found, cards, rolling=rolling, now=now) for pod in sick)
        return Trouble(reason=REASON, message=". ".join(words))
    since = {case.node: case.since for case in cases if not case.card}
    nodes = sick_nodes(cards)
    said = [
        _of_node(name, nodes[name], ours)
        for name, ours in suspected.items()
        if name in since and now - since[name] >= patience_s(name, cards)
    ]
    return Trouble(reason=REASON, message=". ".join(said)) if said else None


# | the pod                                     | and                                        |
# | is the one that gives way, and has a way    | is replaced on another card                |
# | is the one that gives way, and has none     | stays: no other card is free               |
# | its card was left within a day              | stays: repair or isolate the card          |
# | a rollout is under way                      | is replaced with it, or after it           |
# | has been on it for less than the patience   | is replaced if the card stays so           |
# | else                                        | stays: no other card is free               |
def _of_pod(
    pod: ObservedPod,
    cases: Sequence[Case],
    found: Relief | None,
    cards: Known[CardLedger] | Unknown,
    *,
    rolling: bool,
    now: float,
) -> str:
    case = next((case for case in cases if (case.node, case.card) == (pod.node, pod.sick_card)), None)
    where = f"pod {pod.name} sits on card {pod.sick_card} of node {pod.node}, which is sick ({pod.sick_words}): "
    if found is not None and found.pod.uid == pod.uid and (found.way != "Wait" or not is_live(pod)):
        return where + "a pod on another card takes its place"
    if case is not None and case.replaced_at is not None and case.pod != pod.name:
        return (
            where + "a pod was moved off this card within a day, so this one stays; repair the card, or cordon the node"
        )
    if rolling:
        return where + "it leaves with the rollout, or after it"
    if case is not None and now - case.since < patience_s(pod.node, cards):
        return where + "it is replaced if that lasts"
    return where + "no other card is free, so it stays; free a card, add a node, or repair this one"


def _of_node(name: str, node: SickNode, ours: Iterable[ObservedPod]) -> str:
    names = ", ".join(pod.name for pod in ours)
    if not node.allocatable:
        return (
            f"node {name} offers none of its cards, and pods hold some: {names}; "
            "look at the device plugin there, and at the cards"
        )
    return (
        f"node {name} offers fewer cards than pods hold there, and nobody says which card is whose: {names}; "
        "find the pod on the sick card, and delete it"
    )
