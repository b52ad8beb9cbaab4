"""When a child that others change or delete again and again is written once more.

A watch tells of what somebody did within moments, and a program can do it again as soon as it is undone: a webhook, a
controller, a sync from Git. Two programs that each wait for the other alone would write as fast as the apiserver lets
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from imageedit_operator.core.actions import Action, ApplyService, CreateDeployment, LabelDeployment

FREE_WRITES = 3
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
QUIET_S = 600.0
"""What was not written for so long begins anew."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """How often each child was written for one generation of the resource, and when last, by its kind and name."""

    generation: int = 0
    writes: Mapping[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What is written now."""

    actions: tuple[Action, ...]
    after: Contest
    often: frozenset[str]
    """Children of which a write has to pause, or had to."""
    wait_s: float | None = None
    """Until the first of those that pause is written; None when none does."""


def of(action: Action) -> str:
    """The child that the action writes because somebody may have changed it, by kind and name; else nothing."""
    match action:
        case ApplyService(manifest=manifest):
            return f"Service {manifest['metadata']['name']}"
        case CreateDeployment(manifest=manifest):
            return f"Deployment {manifest['metadata']['name']}"
        case LabelDeployment(name=name):
            return f"Deployment {name}"
    return ""


# | a child, in this generation of the resource          | is written                             |
# | was written up to twice, or not for ten minutes      | at once                                |
# | was written n times, n from 3, each within that time | 2^(n-2) s after the last, at most 60 s |
# Another generation begins anew: what a user asks for is never late. A clock that was set back pauses nothing.
def pause_s(count: int) -> float:
    """Seconds between the last of so many writes and the next one."""
    return 0.0 if count < FREE_WRITES else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (min(count, 30) - FREE_WRITES))


def turn(actions: Sequence[Action], before: Contest, *, generation: int, now: float) -> Turn:
    """The actions without those that have to pause, in their order."""
    writes = {
        name: (count, last)
        for name, (count, last) in before.writes.items()
        if before.generation == generation and 0 <= now - last < QUIET_S
    }
    kept, waits, often = list[Action](), list[float](), set[str]()
    for action in actions:
        name = of(action)
        count, last = writes.get(name, (0, now))
        left_s = pause_s(count) - (now - last)
        if name and count >= FREE_WRITES:
            often.add(name)
            if left_s > 0:
                waits.append(left_s)
                continue
        if name:
            writes[name] = (count + 1, now)
        kept.append(action)
    after = Contest(generation=generation, writes=writes)
    return Turn(actions=tuple(kept), after=after, often=frozenset(often), wait_s=min(waits, default=None))
