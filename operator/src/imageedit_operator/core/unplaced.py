"""What a pod without a place lacks: a card, the volume of a claim, or something else.

Only the scheduler knows, so its words are read, those of kube-scheduler, which Volcano repeats. Counts of nodes in
them come and go; what is told of them does not change while the lack lasts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from imageedit_operator.core.observed_pod import ObservedPod

_NO_VOLUME = re.compile(
    r'persistentvolumeclaim "[^"]*" (?:not found|is being deleted|bound to non-existent persistentvolume "[^"]*")'
    r"|pod has unbound immediate PersistentVolumeClaims"
    r"|node\(s\) didn't find available persistent volumes to bind"
    r"|node\(s\) did not have enough free storage"
    r"|node\(s\) unavailable due to one or more pvc\(s\) bound to non-existent pv\(s\)"
)
_NOT_HELPFUL = re.compile(r"0/(\d+) nodes are available: (\d+) Preemption is not helpful for scheduling")


def seeks(pod: ObservedPod) -> bool:
    """Whether the scheduler looked for a place for it, and found none."""
    return pod.unschedulable and not pod.node


# The first row that fits decides.
# | the scheduler                                   | cards in the ledger | lacks a card |
# | placed it, did not look, or it asks for no card | any                 | no           |
# | says `Insufficient`, and the name of its card   | any                 | yes          |
# | says something else                             | any                 | no           |
# | gives no reason                                 | none is free        | yes          |
# | gives no reason                                 | free, or not known  | no           |
# A card's name alone says nothing: taints of nodes with cards have it too.
def lacks_card(pod: ObservedPod, resource_name: str, *, none_free: bool) -> bool:
    """Whether it is a card that the pod finds no place for; `none_free` when that is known of all cards."""
    if not seeks(pod) or not resource_name:
        return False
    if not pod.unschedulable_message:
        return none_free
    name = re.escape(resource_name)
    return re.search(rf"\bInsufficient {name}(?![\w/-]|\.\w)", pod.unschedulable_message) is not None


# | the scheduler says                                   | what is said here          |
# | that a claim is not there, or lost, or being deleted | that, with the claim       |
# | that claims are not bound                            | that, with the pod's claims|
# | that no volume can be bound on any node              | that, with the pod's claims|
# | anything else; it placed the pod, or did not look    | nothing                    |
# A volume that is there and lies elsewhere is none of these: then the pod's place is at fault.
def volume_words(pod: ObservedPod) -> str:
    """What the scheduler says of claims that have no volume for the pod; empty when they are not what it lacks."""
    return no_volume(pod.unschedulable_message, pod.claims) if seeks(pod) else ""


def no_volume(words: str, claims: Sequence[str] = ()) -> str:
    """The part of a scheduler's words that says it, with a name in quotes, or else with those of the pod's `claims`."""
    found = _NO_VOLUME.search(words)
    if found is None:
        return ""
    named = claims and '"' not in found.group()
    return f"{found.group()} ({', '.join(claims)})" if named else found.group()


# | the scheduler                                            | a pod that leaves could make room |
# | says that claims have no volume                          | no                                |
# | says of each node that preemption is not helpful: taints,| no                                |
# | labels, more cards than the node has                     |                                   |
# | says anything else, or nothing                           | yes                               |
def could_get_room(pod: ObservedPod) -> bool:
    """Whether the pod finds no place, and may find one where another pod leaves."""
    if not seeks(pod) or no_volume(pod.unschedulable_message):
        return False
    found = _NOT_HELPFUL.search(pod.unschedulable_message)
    return found is None or found[1] != found[2]
