"""The answer RolloutStuck: whether a rollout, or the first start of a revision, needs a person."""

from __future__ import annotations

from imageedit_operator.core.progress import NO_ROLLOUT, Answer, Situation
from imageedit_operator.core.under_way import HELD, RETRY, back, failed, no_place, not_mounted

_MOVES = "the rollout moves, or has waited for less than its progress deadline"


# | first that fits                                        | status | reason                                       |
# | the spec's revision was given up                       | True   | RolledBack                                   |
# | complete, or the revision was good and nothing is old  | False  | NoRollout                                    |
# | a pod is in trouble, or a name is taken                | True   | the trouble's                                |
# | held                                                   | False  | Paused, Prefetching, CanaryHold              |
# | nothing moved for the progress deadline                | True   | WaitingForCard, Unschedulable,               |
# |                                                        |        | VolumeNotReady, NoProgress                   |
# | else                                                   | False  | Moving                                       |
def rollout_stuck(situation: Situation) -> Answer:  # noqa: PLR0911 - one return a row
    """Whether a rollout, or the first start of a revision, needs a person."""
    if situation.failure is not None:
        words = f"{failed(situation.failure)}; {back(situation)}; {RETRY}"
        return Answer(status=True, reason="RolledBack", message=words)
    if situation.complete or (situation.proven and not situation.rolling):
        return Answer(status=False, reason=NO_ROLLOUT, message="no rollout is under way")
    if situation.trouble is not None:
        return Answer(status=True, reason=situation.trouble.reason, message=situation.trouble.message)
    if situation.hold is not None and situation.mode in HELD:
        return Answer(status=False, reason=situation.hold.reason, message=situation.hold.message)
    unplaced = no_place(situation)
    if situation.still and unplaced is not None:
        return unplaced
    if situation.still and situation.unmounted is not None:
        return not_mounted(situation.unmounted)
    if situation.still:
        words = (
            "nothing has moved for the progress deadline, and no pod says why: read the events, "
            f"kubectl describe deployments,replicasets,pods -l imageedit.dev/deployment={situation.name}"
        )
        return Answer(status=True, reason="NoProgress", message=words)
    return Answer(status=False, reason="Moving", message=_MOVES)
