"""The conditions of a resource, judged: which need somebody's eye, which are as they should be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.stored import epoch_s


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionView:
    """One condition; `level` is fine, moving or bad."""

    type: str
    status: str
    reason: str
    message: str
    level: str
    since_s: float | None
    """How long it has had this status."""


_COMES = ("Stopped", "Starting", "Prefetching", "PlannedReplacement", "CardHandedOver")
"""Why nothing answers that time alone cures."""


# | condition                        | status | reason                       | level  |
# | Available, Ready                 | True   |                              | fine   |
# | Available                        | False  | Stopped, Starting,           | moving |
# |                                  |        | Prefetching,                 |        |
# |                                  |        | PlannedReplacement,          |        |
# |                                  |        | CardHandedOver               |        |
# | Available                        | False  | else                         | bad    |
# | Ready                            | False  |                              | moving |
# | Progressing                      | True   |                              | moving |
# | Progressing                      | False  | Complete                     | fine   |
# | Progressing                      | False  | Paused                       | moving |
# | Progressing                      | False  | a fault                      | bad    |
# | RolloutStuck, WaitingForCard     | True   |                              | bad    |
# | Degraded                         | True   |                              | bad    |
# | RolloutStuck                     | False  | Paused, Prefetching,         | moving |
# |                                  |        | CanaryHold                   |        |
# | RolloutStuck, WaitingForCard     | False  |                              | fine   |
# | Degraded                         | False  |                              | fine   |
# | ScalingActive, MetricsAvailable  | False  | AutoscalingOff,              | fine   |
# |                                  |        | ScaledByOthers               |        |
# | ScalingActive, MetricsAvailable  | False  | else                         | bad    |
# | ScalingActive                    | True   | AtMaximum, CardsExhausted    | moving |
# | ScalingActive, MetricsAvailable  | True   | else                         | fine   |
# | ChildrenIntact                   | True   |                              | fine   |
# | ChildrenIntact                   | False  |                              | bad    |
# | any                              | Unknown|                              | bad    |
# | another                          | any    |                              | moving |
def level(kind: str, status: str, reason: str) -> str:  # noqa: PLR0911 - one return a group of rows
    """How much a condition matters to somebody who looks."""
    true = status == "True"
    if status not in ("True", "False"):
        return "bad"
    if kind == "Available":
        return "fine" if true else "moving" if reason in _COMES else "bad"
    if kind == "Ready":
        return "fine" if true else "moving"
    if kind == "Progressing":
        return "moving" if true or reason == "Paused" else "fine" if reason == "Complete" else "bad"
    if kind in ("RolloutStuck", "WaitingForCard", "Degraded"):
        return "bad" if true else "moving" if reason in ("Paused", "Prefetching", "CanaryHold") else "fine"
    if kind == "ChildrenIntact":
        return "fine" if true else "bad"
    if kind in ("ScalingActive", "MetricsAvailable"):
        limited = reason in ("AtMaximum", "CardsExhausted")
        if true:
            return "moving" if limited else "fine"
        return "fine" if reason in ("AutoscalingOff", "ScaledByOthers") else "bad"
    return "moving"


def build(status: Mapping[str, Any], *, now: float) -> tuple[ConditionView, ...]:
    """All conditions of a status: bad ones first, then those on the way, then those that are fine."""
    found = [_view(item, now) for item in status.get("conditions") or ()]
    return tuple(sorted(found, key=lambda view: LEVELS.index(view.level)))


LEVELS = ("bad", "moving", "fine")


def _view(item: Mapping[str, Any], now: float) -> ConditionView:
    kind, status, reason = (str(item.get(name, "")) for name in ("type", "status", "reason"))
    try:
        since_s = max(0.0, now - epoch_s(item["lastTransitionTime"]))
    except (KeyError, ValueError, TypeError, AttributeError):
        since_s = None
    return ConditionView(
        type=kind,
        status=status,
        reason=reason,
        message=str(item.get("message", "")),
        level=level(kind, status, reason),
        since_s=since_s,
    )
