"""Times, words and conditions as they stand in a stored status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LONGEST_MESSAGE = 8000
"""Characters of a message in a status, whose schema takes 8192 and more: with a longer one none could be written."""


def cut(words: str, most: int = LONGEST_MESSAGE) -> str:
    """Its first characters: other programs say as much as they like, and a reader has enough of it sooner."""
    return words if len(words) <= most else f"{words[: most - 3].rstrip()}..."


def timestamp(now: float) -> str:
    """RFC 3339 with whole seconds, as Kubernetes writes it."""
    return datetime.fromtimestamp(int(now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch_s(text: str) -> float:
    """Epoch seconds of a time that Kubernetes wrote; raises ValueError or TypeError."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).timestamp()
    except OverflowError as error:  # the first or the last day of all, which in UTC is none any more
        raise ValueError(f"no such time: {text}") from error


def find(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition of a stored status, empty when it has none."""
    found = (item for item in status.get("conditions", ()) if item.get("type") == kind)
    return next(found, {})
