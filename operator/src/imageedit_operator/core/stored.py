"""Times and conditions as they stand in a stored status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def timestamp(now: float) -> str:
    """RFC 3339 with whole seconds, as Kubernetes writes it."""
    return datetime.fromtimestamp(int(now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch_s(text: str) -> float:
    """Epoch seconds of a time that Kubernetes wrote; raises ValueError or TypeError."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).timestamp()


def find(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition of a stored status, empty when it has none."""
    found = (item for item in status.get("conditions", ()) if item.get("type") == kind)
    return next(found, {})
