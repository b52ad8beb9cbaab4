"""From a change of a spec to the operator's first write about it, by the apiserver's own clock in its audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from bench.figures import AT_MOST, Figure
from bench.operator import fleet
from bench.operator.world import Event, World, is_mine
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS

APART_S = 1.0
SETTLES_S = 5.0


async def reaction(world: World, *, count: int, samples: int) -> Figure:
    """Each sample asks one resource at rest for a second pod; all others stay at rest."""
    chosen = fleet.places("edit", count)[:: max(1, count // samples)][:samples]
    for namespace, name in chosen:
        await world.kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, name, {"spec": {"replicas": 2}})
        await asyncio.sleep(APART_S)
    await asyncio.sleep(SETTLES_S)
    events = world.audited()
    seen = sorted(waited_s(events, place) for place in chosen)
    return Figure(
        name="reaction_p95_s",
        value=round(percentile(seen, 0.95), 3),
        target=(AT_MOST, 0.5),
        repeats=[round(value, 3) for value in seen],
        how=f"{len(seen)} resources, one each second, are asked for a second pod; until the operator's first write "
        "about it is received, both times from the audit log",
    )


def waited_s(events: Sequence[Event], place: tuple[str, str]) -> float:
    """Infinity when no write followed."""
    changed = next(
        event["stageTimestamp"]
        for event in reversed(events)
        if event["verb"] == "patch" and _about(event, place) and not is_mine(event)
    )
    first = (
        event["requestReceivedTimestamp"]
        for event in events
        if is_mine(event) and _about(event, place) and event["requestReceivedTimestamp"] > changed
    )
    wrote = min(first, default=None)
    return _epoch_s(wrote) - _epoch_s(changed) if wrote is not None else float("inf")


def _about(event: Event, place: tuple[str, str]) -> bool:
    """A write to the resource or to one of its children, which have its name and a dash before theirs."""
    target = event.get("objectRef") or {}
    name = target.get("name", "")
    return target.get("namespace") == place[0] and (name == place[1] or name.startswith(f"{place[1]}-"))


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of them does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
