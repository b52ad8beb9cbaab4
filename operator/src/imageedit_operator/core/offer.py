"""Which nodes have cards of a name at all, and why none of them may be had: labels, taints, cordons, sick cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MOST_NAMED = 3
"""Taints that are named: each node may have one of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Nodes with enough cards for a pod, whoever may land there; each is counted once."""

    nodes: int = 0
    unlabelled: int = 0
    """Without the labels that the pods ask for."""
    closed: int = 0
    """Cordoned or not ready."""
    repelled: int = 0
    """With a taint that the pods do not tolerate."""
    taints: tuple[str, ...] = ()
    """These taints as the scheduler writes them, `key: value`, sorted."""

    @property
    def sick(self) -> int:
        """Nodes that take the pods, and have no healthy card for them."""
        return self.nodes - self.unlabelled - self.closed - self.repelled


# | nodes with such cards                | what is said                              | what to look at                 |
# | none                                 | that                                      | device plugin, resourceName     |
# | lack the labels that the pods ask for| with the labels                           | spec.accelerator.nodeSelector   |
# | have a taint                         | with the taints                           | spec.accelerator.tolerations    |
# | are cordoned or not ready            | that                                      | the nodes                       |
# | else                                 | that no card there is healthy             | the cards                       |
def nowhere(offer: Offer, resource_name: str, *, count: int, labels: Mapping[str, str], counted: bool) -> str:
    """Why no node that takes the pods offers them cards, and what to look at.

    Nodes are `counted` for a plan; in a condition their number would rewrite the status whenever one comes or goes.
    """
    wanted = resource_name if count == 1 else f"{count} {resource_name}"
    if not offer.nodes:
        return f"no node offers {wanted}; look at spec.accelerator.resourceName and count, and at the device plugin"
    found = list(_reasons(offer, labels))
    if counted:
        said = ", ".join(f"{number} {words}" for number, words, _ in found)
        offers = "1 node offers it" if offer.nodes == 1 else f"{offer.nodes} nodes offer it"
        why = f"{offers}, {said}"
    else:
        why = f"those that offer it are {', or '.join(words for _, words, _ in found)}"
    return f"no node that takes these pods offers {wanted}: {why}; look at {', '.join(at for _, _, at in found)}"


def no_node(offer: Offer, labels: Mapping[str, str]) -> str:
    """The same of pods that ask for no card by name, where `offer` is of all nodes, with their numbers."""
    found = list(_reasons(offer, labels))
    said = ", ".join(f"{number} {words}" for number, words, _ in found)
    nodes = "1 node" if offer.nodes == 1 else f"{offer.nodes} nodes"
    return f"no node takes these pods: of {nodes}, {said}; look at {', '.join(at for _, _, at in found)}"


def reasons(offer: Offer) -> tuple[str, ...]:
    """The scheduler's words for nodes that do not take the pods; empty where a card is what is missing."""
    found = (
        *(["node(s) didn't match Pod's node affinity/selector"] if offer.unlabelled else []),
        *([f"node(s) had untolerated taint {{{taint}}}" for taint in offer.taints] if offer.repelled else []),
        *(["node(s) were unschedulable"] if offer.closed else []),
    )
    return () if offer.sick else found


def _reasons(offer: Offer, labels: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    if offer.unlabelled:
        named = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        yield offer.unlabelled, f"without the labels {named}", "spec.accelerator.nodeSelector"
    if offer.repelled:
        named = ", ".join(f"{{{taint}}}" for taint in offer.taints[:MOST_NAMED])
        named += " and others" if len(offer.taints) > MOST_NAMED else ""
        yield offer.repelled, f"with a taint that is not tolerated ({named})", "spec.accelerator.tolerations"
    if offer.closed:
        yield offer.closed, "cordoned or not ready", "kubectl get nodes"
    if offer.sick:
        yield offer.sick, "without a healthy card", "the cards of these nodes"
