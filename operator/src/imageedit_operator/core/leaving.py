"""A pod of ours that is terminating: it holds its card until its last container has ended, a sidecar's too.

The kubelet ends what is left when the grace period is over; a pod that is still there after that needs a person.
"""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.placement import gives_way
from imageedit_operator.core.pods import SERVER_CONTAINER, holds_card
from imageedit_operator.core.stored import timestamp


# | its grace period | its containers that run      | said                                          |
# | is not known     | any                          | ends                                          |
# | runs             | the server, or none known    | ends by then                                  |
# | runs             | others alone                 | ends by then, and what keeps it               |
# | is over          | any                          | should have ended by then, what runs, what to do |
def how(pod: ObservedPod, *, now: float) -> str:
    """How the terminating pod ends, in words that go on after its name."""
    if not pod.ends_by:
        return "ends"
    if now > pod.ends_by:
        still = f", and {_still(pod)}" if pod.running else ""
        advice = f"kubectl describe pod {pod.name}, and look at node {pod.node}"
        return f"should have ended by {timestamp(pod.ends_by)}{still}; {advice}"
    kept = f", for {_still(pod)}" if pod.running and SERVER_CONTAINER not in pod.running else ""
    return f"ends by {timestamp(pod.ends_by)} at the latest{kept}"


def holders(ours: Sequence[ObservedPod], *, resource_name: str, now: float) -> tuple[str, ...]:
    """Our own pods that hold cards of that name although they are terminating, in words."""
    leaving = (pod for pod in ours if pod.terminating and holds_card(pod))
    held = [pod for pod in leaving if gives_way([pod], resource_name=resource_name)]
    named = sorted(held, key=lambda pod: pod.name)
    return tuple(f"pod {pod.name} (terminating, {how(pod, now=now)})" for pod in named)


def _still(pod: ObservedPod) -> str:
    one = len(pod.running) == 1
    return f"its container{'' if one else 's'} {', '.join(pod.running)} still run{'s' if one else ''}"
