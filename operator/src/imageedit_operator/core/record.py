"""What the status remembers of a rollout under way: when it moved last, was in trouble first, reached its canary.

A plan acts on what the status holds already, never on what it is about to write: so an operator
that dies between an action and its status decides the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.known import Unknown
from imageedit_operator.core.pods import Trouble, has_container, is_serving
from imageedit_operator.core.stored import epoch_s, timestamp


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """`status.rollout`; times are UTC epoch seconds."""

    revision: str
    """Where the rollout goes."""
    started_at: float
    stepped_at: float
    """When the number of old, placed or warm pods changed last."""
    old_pods: int = 0
    placed_pods: int = 0
    """Pods of the new revision that have a node."""
    warm_pods: int = 0
    trouble_since: float | None = None
    held_since: float | None = None
    """Since when the canary's pods were all warm, once; a later fault does not take it back."""


def read(status: Mapping[str, Any]) -> Record | None:
    """The record of a stored status; None where it has none, or one that cannot be read."""
    stored = status.get("rollout")
    if not isinstance(stored, Mapping):
        return None
    try:
        return Record(
            revision=str(stored["revision"]),
            started_at=epoch_s(stored["startedAt"]),
            stepped_at=epoch_s(stored["steppedAt"]),
            old_pods=int(stored.get("oldPods", 0)),
            placed_pods=int(stored.get("placedPods", 0)),
            warm_pods=int(stored.get("warmPods", 0)),
            trouble_since=_optional(stored, "troubleSince"),
            held_since=_optional(stored, "heldSince"),
        )
    except (KeyError, TypeError, ValueError):
        return None


def write(record: Record) -> dict[str, Any]:
    """The record as it is stored."""
    stored: dict[str, Any] = {
        "revision": record.revision,
        "startedAt": timestamp(record.started_at),
        "steppedAt": timestamp(record.stepped_at),
        "oldPods": record.old_pods,
        "placedPods": record.placed_pods,
        "warmPods": record.warm_pods,
    }
    for name, value in (("troubleSince", record.trouble_since), ("heldSince", record.held_since)):
        if value is not None:
            stored[name] = timestamp(value)
    return stored


def follow(
    before: Record | None, target: str, fleet: Fleet | None, *, trouble: Trouble | None, canary: int | None, now: float
) -> Record:
    """The record after this look; `canary` is the number of new pods at which the rollout is held."""
    if before is None or before.revision != target:
        before = Record(revision=target, started_at=now, stepped_at=now)
    if fleet is None:
        return before
    old, placed, warm = _counts(fleet)
    same = (old, placed, warm) == (before.old_pods, before.placed_pods, before.warm_pods)
    reached = canary is not None and fleet.serving >= canary
    return Record(
        revision=target,
        started_at=before.started_at,
        stepped_at=before.stepped_at if same else now,
        old_pods=old,
        placed_pods=placed,
        warm_pods=warm,
        trouble_since=_trouble_since(before, fleet, trouble, now),
        held_since=before.held_since if before.held_since is not None else now if reached else None,
    )


def _counts(fleet: Fleet) -> tuple[int, int, int]:
    old = sum(len(group.pods) for group in fleet.old) + len(fleet.terminating)
    return old, sum(bool(pod.node) for pod in fleet.wanted.pods), fleet.serving


# | a pod of the new revision         | trouble since          |
# | in trouble                        | as before, or now      |
# | not warm, and does not answer now | as before: nobody knows|
# | none                              | forgotten              |
def _trouble_since(before: Record, fleet: Fleet, trouble: Trouble | None, now: float) -> float | None:
    if trouble is not None:
        return before.trouble_since if before.trouble_since is not None else now
    silent = any(
        has_container(pod) and not is_serving(pod) and isinstance(pod.report, Unknown) for pod in fleet.wanted.live
    )
    return before.trouble_since if silent else None


def _optional(stored: Mapping[str, Any], name: str) -> float | None:
    return epoch_s(stored[name]) if stored.get(name) else None
