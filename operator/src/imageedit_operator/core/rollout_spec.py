"""How pods are to be replaced: `spec.rollout` as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.fields import InvalidResource, choice, integer, mapping, seconds, switch

STRATEGIES = ("Auto", "Surge", "InPlace", "Recreate")

LONGEST_DRAIN_S = 7200.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Canary:
    """Hold at `pods` pods of a new revision, for `hold_s` seconds or, with None, until somebody promotes it."""

    pods: int
    hold_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """`spec.rollout`; no field of it is part of a revision."""

    strategy: str = "Auto"
    paused: bool = False
    canary: Canary | None = None
    progress_deadline_s: float | None = None
    """None: derived from measured warm-ups."""
    rollback_on_failure: bool = True
    drain_timeout_s: float = 600.0


def parse_rollout(rollout: Mapping[str, Any]) -> Rollout:
    """Typed values; raises InvalidResource."""
    deadline = rollout.get("progressDeadline", "Auto")
    drain_s = seconds(rollout.get("drainTimeout", "10m"), "spec.rollout.drainTimeout")
    if drain_s > LONGEST_DRAIN_S:
        raise InvalidResource("spec.rollout.drainTimeout: at most 2h")
    strategy = choice(rollout, "strategy", "spec.rollout.strategy", STRATEGIES)
    canary = None if rollout.get("canary") is None else _canary(mapping(rollout, "canary", "spec.rollout.canary"))
    if canary is not None and strategy == "Recreate":
        raise InvalidResource("spec.rollout.canary: strategy Recreate never has pods of two revisions")
    return Rollout(
        strategy=strategy,
        paused=switch(rollout, "paused", "spec.rollout.paused", default=False),
        canary=canary,
        progress_deadline_s=None if deadline == "Auto" else seconds(deadline, "spec.rollout.progressDeadline"),
        rollback_on_failure=switch(rollout, "rollbackOnFailure", "spec.rollout.rollbackOnFailure", default=True),
        drain_timeout_s=drain_s,
    )


def _canary(canary: Mapping[str, Any]) -> Canary:
    hold = canary.get("hold")
    return Canary(
        pods=integer(canary, "pods", "spec.rollout.canary.pods", default=1, low=1, high=1000),
        hold_s=None if hold is None else seconds(hold, "spec.rollout.canary.hold"),
    )
