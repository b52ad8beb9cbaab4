"""When to look at a resource again, if nothing wakes it before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imageedit_operator.core import relief
from imageedit_operator.core.progress import Situation

DARK_S = 0.5
"""No pod is warm, by plan: each wait between two steps is a wait of the users."""
MOVING_S = 2.0
"""Something is on its way: a pod warms, drains or is about to appear."""
WATCHING_S = 5.0
"""The queue is followed, or only somebody else can help."""
RESTING_S = 1200.0
"""Changes wake; this look finds what no version tells of."""


# The first row that fits decides.
# | situation                                                 | next look |
# | the status comes to name what a plan acts on              | at once   |
# | at rest; autoscaling, a degraded pod, a copy that is not  |           |
# | there yet, or a card that may be sick                     | 5 s       |
# | at rest                                                   | 20 min    |
# | nothing to do or leaving, and only the user, time or      |           |
# | another's card can help                                   | 5 s       |
# | no pod is warm, by plan                                   | 0.5 s     |
# | something to do, on its way, or leaving                   | 2 s       |
def after_s(found: Situation, *, acts: bool, leaving: bool, follows: bool, remembers: bool) -> float:
    """Seconds; `acts` says that the plan does something, `leaving` that a pod drains or terminates.

    `follows` says that something besides pods and the queue changes by time or by others: a copy, a sick card.
    """
    if remembers:
        return 0.0
    if found.complete and not acts:
        at_rest = found.decision is None and found.degraded is None and not follows
        return RESTING_S if at_rest else WATCHING_S
    waits = any(pod is not None for pod in (found.cardless, found.unschedulable, found.unmounted))
    stuck = found.trouble is not None or waits or found.hold is not None
    if stuck and not leaving and not acts:
        return WATCHING_S
    return DARK_S if found.outage else MOVING_S


# | the status comes to name            | acted on by the next plan               |
# | another failed revision             | yes: the pods go back                   |
# | another good one, beside older ones | yes: those beyond the history are freed |
# | another good one, the only one      | no                                      |
# | a pod that leaves its sick card     | yes: it gives way                       |
def remembers(previous: Mapping[str, Any], after: Mapping[str, Any], *, revisions: int) -> bool:
    """Whether the next plan acts on what this one writes into the status; `revisions` have a Deployment."""
    failed = after.get("failedRevision") != previous.get("failedRevision")
    good = after.get("lastGoodRevision") != previous.get("lastGoodRevision")
    return failed or (good and revisions > 1) or bool(relief.chosen_between(previous, after))
