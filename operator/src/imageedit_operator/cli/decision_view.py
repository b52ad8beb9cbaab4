"""What the operator decided last and why, from the Events of a resource and its status. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.stored import epoch_s

MOST = 5
"""As many as fit a glance."""

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionView:
    """One decision; `warning` where it tells of something bad."""

    age_s: float
    reason: str
    message: str
    warning: bool


# Events live for an hour or so: the last scaling is taken from the status where its Event is gone.
def decisions(events: Sequence[Raw] | None, status: Raw, *, now: float) -> tuple[DecisionView, ...]:
    """The last ones, newest first."""
    found = [view for view in (_of_event(event, now) for event in events or ()) if view is not None]
    if not any(view.reason == "Scaled" for view in found):
        found += _of_scaling(status.get("scaling"), now)
    return tuple(sorted(found, key=_newest_first)[:MOST])


def _newest_first(view: DecisionView) -> tuple[float, bool]:
    """The operator's times are whole seconds; what one pass says of a rollout begins with its start."""
    return view.age_s, view.reason == "RolloutStarted"


def _of_event(event: Raw, now: float) -> DecisionView | None:
    series = event.get("series") or {}
    age_s = _age_s(
        series.get("lastObservedTime") or event.get("eventTime") or event.get("deprecatedLastTimestamp"), now
    )
    if age_s is None:
        return None
    return DecisionView(
        age_s=age_s,
        reason=str(event.get("reason", "")),
        message=str(event.get("note", "")),
        warning=event.get("type") == "Warning",
    )


def _of_scaling(scaling: object, now: float) -> list[DecisionView]:
    if not isinstance(scaling, Mapping):
        return []
    age_s = _age_s(scaling.get("lastScaleTime"), now)
    words = f"{scaling.get('decision', '')}: {'; '.join(scaling.get('reasons') or ())}"
    return [] if age_s is None else [DecisionView(age_s=age_s, reason="Scaled", message=words, warning=False)]


def _age_s(text: object, now: float) -> float | None:
    try:
        return max(0.0, now - epoch_s(str(text)))
    except ValueError:
        return None
