"""Whether a rollout is held: paused by the spec, before the model is copied, or at its canary."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_operator.core.record import Record
from imageedit_operator.core.rollout_spec import Rollout
from imageedit_operator.core.stored import timestamp


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """A limit on how far a rollout goes for now."""

    reason: str
    """Paused, Prefetching or CanaryHold."""
    message: str
    pods: int | None = None
    """Most pods of the new revision; None: as many as there are."""

    def new_pods(self, wanted: int) -> int:
        """Most pods of the new revision. At least one pod of several stays old."""
        most = max(1, wanted - 1)
        return most if self.pods is None else min(self.pods, most)

    def old_pods(self, wanted: int) -> int:
        """Fewest pods of the old revisions; one of them even where a single pod is wanted."""
        return 0 if self.pods is None else max(1, wanted - self.new_pods(wanted))


# | first that fits                                    | hold        |
# | no pods are wanted                                 | none        |
# | nothing to replace, and the revision is good       | none        |
# | rollout.paused                                     | Paused      |
# | copies of the model are not there yet              | Prefetching |
# | no rollout.canary, or a roll back                  | none        |
# | nothing to replace                                 | none        |
# | the revision was promoted by annotation            | none        |
# | the canary's pods were all warm `hold` ago         | none        |
# | else                                               | CanaryHold  |
def find(
    rollout: Rollout,
    *,
    name: str,
    target: str,
    good: bool,
    replaces: bool,
    promoted: str,
    prefetching: str,
    record: Record | None,
    wanted: int,
    now: float,
) -> Hold | None:
    """What holds the rollout of the resource `name` to `target`.

    `good` says that the target was complete before, `replaces` that older pods are there, `prefetching` what is
    said of copies that are not there yet, empty when all are.
    """
    if wanted == 0 or (not replaces and good):
        return None
    if rollout.paused:
        on = f"kubectl imageedit resume {name}, or paused: false"
        words = f"spec.rollout.paused is set: no pod is replaced until {on}; the number of pods still follows"
        return Hold(reason="Paused", message=words)
    if prefetching:
        return Hold(reason="Prefetching", message=prefetching)
    canary = rollout.canary
    if canary is None or good or not replaces or promoted == target:
        return None
    since = record.held_since if record is not None and record.revision == target else None
    if since is not None and canary.hold_s is not None and now - since >= canary.hold_s:
        return None
    promote = f"kubectl imageedit promote {name}"
    if canary.hold_s is None:
        until = f"until {promote}, or the annotation imageedit.dev/promoted-revision: {target}"
    elif since is None:
        until = f"for rollout.canary.hold once they are warm; {promote} goes on at once"
    else:
        until = f"until {timestamp(since + canary.hold_s)}; {promote} goes on at once"
    words = f"holds at {canary.pods} of revision {target} {until}"
    return Hold(reason="CanaryHold", message=words, pods=canary.pods)
