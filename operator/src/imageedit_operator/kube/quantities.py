"""Extended resources, such as cards, in the quantities of nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]


def extended(quantities: Raw | None) -> dict[str, int]:
    """The extended resources (`domain/name`) in a map of quantities; they are always whole numbers."""
    found: dict[str, int] = {}
    for name, text in (quantities or {}).items():
        if "/" not in name or "kubernetes.io/" in name:
            continue
        try:
            found[name] = _whole(str(text))
        except ValueError:
            continue  # not a count, so not a card
    return found


def requested_by(pod: Raw) -> dict[str, int]:
    """Extended resources that the pod holds: its containers together, or its largest init container."""
    spec = pod.get("spec") or {}
    total: dict[str, int] = {}
    for container in spec.get("containers") or []:
        add(total, _requests(container))
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":  # a sidecar runs beside the containers
            add(total, _requests(container))
    for container in spec.get("initContainers") or []:
        for name, count in _requests(container).items():
            total[name] = max(total.get(name, 0), count)
    return total


def _requests(container: Raw) -> dict[str, int]:
    resources = container.get("resources") or {}
    return extended(resources.get("limits")) | extended(resources.get("requests"))


def add(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Add each of `more` to `total`."""
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


def _whole(text: str) -> int:
    for suffix, factor in (("k", 1000), ("M", 1_000_000)):
        if text.endswith(suffix):
            return int(text[:-1]) * factor
    return int(text)
