"""A rollout that stands: paused, at its canary, or stopped by a bad pod. The number of pods still follows."""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core import drain
from imageedit_operator.core.actions import Action
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.pods import is_serving
from imageedit_operator.core.resize import Group, remove, resize


# | pods            | new revision                                    | old revisions                              |
# | as wanted       | stay; none is added                             | stay; their ReplicaSets heal them          |
# | more are wanted | stay                                            | grow                                       |
# | fewer           | shrink last, and leave one of several old       | shrink first, busy pods drained            |
# | one too many    | stay                                            | shrink by what warm new pods replace       |
def stand(fleet: Fleet, *, wanted: int, most_new: int, keep_old: int, now: float) -> tuple[Action, ...]:
    """Bring the total to `wanted` without moving pods from one revision to the other.

    At most `most_new` pods of the new revision and at least `keep_old` of the old ones stay.
    """
    new = min(fleet.wanted.usable, most_new)
    fewest = max(wanted - new, keep_old)
    most = max(fewest, wanted - min(fleet.serving, new))
    old = min(max(fleet.old_usable, fewest), most)
    return (
        *settle(fleet.old, old, limit=max(0, wanted + 1 - new), now=now),
        *resize(fleet.wanted, new, limit=fleet.wanted.deployment.replicas, now=now),
    )


def settle(groups: Sequence[Group], goal: int, *, limit: int, now: float) -> tuple[Action, ...]:
    """Actions towards `goal` live pods over several revisions; what grows is the one that serves most."""
    usable = sum(group.usable for group in groups)
    if usable < goal and groups:
        main = max(groups, key=lambda group: (sum(map(is_serving, group.live)), group.deployment.created_at))
        others = usable - main.usable
        resized = ((group, goal - others if group is main else group.usable) for group in groups)
        return tuple(
            action for group, size in resized for action in resize(group, size, limit=max(0, limit - others), now=now)
        )
    excess = max(0, usable - goal)
    absent: dict[str, int] = {}
    for group in groups:
        absent[group.deployment.uid] = min(excess, group.missing)
        excess -= absent[group.deployment.uid]
    victims = sorted((pod for group in groups for pod in group.live), key=drain.victim_rank)[:excess]
    return tuple(
        action
        for group in groups
        for action in remove(
            group, [pod for pod in group.live if pod in victims], absent=absent[group.deployment.uid], now=now
        )
    )
