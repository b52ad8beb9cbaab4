"""When a resource is looked at again by itself: soon while something moves, seldom at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.core import relief
from imageedit_operator.core.actions import Action
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.progress import Situation

MOVING_S = 2.0
"""Something is on its way: a pod warms, drains or is about to appear."""
WATCHING_S = 5.0
"""The queue is followed, or only somebody else can help."""
RESTING_S = 120.0


# | situation                                           | next look |
# | the status comes to name what a plan acts on        | at once   |
# | something to do, or on its way                      | 2 s       |
# | only the user, time or another's card can help      | 5 s       |
# | at rest, autoscaling set                            | 5 s       |
# | at rest, a card may be sick, or a copy is missing   | 5 s       |
# | at rest                                             | 120 s     |
def after_s(found: Situation, actions: Sequence[Action], *, remembers: bool, suspects: bool, copying: bool) -> float:
    """Seconds until the resource is looked at again, unless an event comes first."""
    if remembers:
        return 0.0
    if not found.complete or actions:
        stuck = found.trouble is not None or found.unschedulable is not None or found.hold is not None
        return WATCHING_S if stuck and not actions else MOVING_S
    watched = found.decision is not None or found.degraded is not None or suspects or copying
    return WATCHING_S if watched else RESTING_S


def remembers(previous: Mapping[str, Any], after: Mapping[str, Any], owned: Sequence[ObservedDeployment]) -> bool:
    """A failed revision or a sick card is left, and older revisions go, by a plan that finds it in the status."""
    failed = after.get("failedRevision") != previous.get("failedRevision")
    good = after.get("lastGoodRevision") != previous.get("lastGoodRevision")
    return failed or (good and len(owned) > 1) or bool(relief.chosen_between(previous, after))
