"""What is said of a pod that does not get on, and that no fault of its own keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.place_advice import next_steps, short
from imageedit_operator.core.stored import cut

LONGEST_WORDS = 1000
"""Of the scheduler: where each node has a taint of its own it names them all."""

MOST_NAMED = 3
"""Holders of cards that a message names."""


def card_words(pod: ObservedPod, resource_name: str, holders: Sequence[str], nowhere: str = "") -> str:
    """What to do for a pod that finds no card.

    `holders` are those who have them, as far as it is known; `nowhere` says why no node offers the pod any.
    """
    if nowhere:
        return f"pod {pod.name} waits for {resource_name}, and {nowhere}"
    held = f", which {_named(holders)}" if holders else ""
    return f"pod {pod.name} waits for {resource_name}{held}; free a card, add a node or lower the replicas"


# | holders          | words                    |
# | one              | A holds                  |
# | two or three     | A, B and C hold          |
# | more             | A, B, C and others hold  |
def _named(holders: Sequence[str]) -> str:
    named = [*holders[:MOST_NAMED], *(["others"] if len(holders) > MOST_NAMED else [])]
    return f"{named[0]} holds" if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]} hold"


def place_words(pod: ObservedPod, labels: Mapping[str, str] | None = None) -> str:
    """Why a pod finds no node, as far as the scheduler says, and what to do; `labels` are those it asks of a node."""
    reasons = cut(short(pod.unschedulable_message), LONGEST_WORDS)
    said = f"the scheduler says: {reasons}" if reasons else "the scheduler finds no node for it, and does not say why"
    steps = next_steps(pod.unschedulable_message, pod=pod.name, claims=pod.claims, labels=labels)
    return f"pod {pod.name}: {said}; {'; '.join(steps)}"


def unbegun_words(pod: ObservedPod) -> str:
    """The kubelet tells of a slow pull, and of a volume that it cannot mount, in the pod's events alone."""
    return (
        f"pod {pod.name} has no running container yet: node {pod.node} pulls its image or cannot mount a volume; "
        f"kubectl describe pod {pod.name} says which"
    )


def lost_words(pod: ObservedPod) -> str:
    """What happens to a pod on a lost node."""
    return (
        f"pod {pod.name} is on node {pod.node}, which is not ready or gone; it is replaced once it is evicted "
        "(5 minutes by default) or deleted"
    )
