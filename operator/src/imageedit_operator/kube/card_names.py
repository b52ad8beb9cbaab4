"""Which physical cards a pod holds, and which of them the kubelet calls unhealthy.

| who says it                                                        | since            | named            |
| ------------------------------------------------------------------ | ---------------- | ---------------- |
| the kubelet, `allocatedResourcesStatus` of the container           | Kubernetes 1.31  | card and health  |
| the Ascend device plugin, annotation `huawei.com/AscendReal`       | seconds after    | card             |
| the same, `huawei.com/kltDev`                                      | the pod's start  | card             |

The first that says something is believed. Other plugins say nothing: then nobody knows which card it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

ANNOTATIONS = ("huawei.com/AscendReal", "huawei.com/kltDev")
MOST_CARDS = 64
"""Of one pod; what is longer is no list of cards."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

Raw = Mapping[str, Any]


def names(text: object) -> tuple[str, ...]:
    """The card names of a comma list, `Ascend910-3,Ascend910-4`; what cannot be a name is left out."""
    if not isinstance(text, str):
        return ()
    parts = (part.strip() for part in text.split(",", MOST_CARDS))
    return tuple(sorted({part for part in parts if _NAME.fullmatch(part)}))


def held_cards(pod: Raw) -> tuple[str, ...]:
    """The cards of a pod, sorted; empty when nobody says."""
    told = _unique(card for card, _ in _told_by_kubelet(pod))
    if told:
        return told
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return next((found for key in ANNOTATIONS if (found := names(annotations.get(key)))), ())


def unhealthy_cards(pod: Raw) -> tuple[str, ...]:
    """The cards of a pod that the kubelet calls unhealthy, sorted; Unknown is not unhealthy."""
    return _unique(card for card, health in _told_by_kubelet(pod) if health == "Unhealthy")


def _told_by_kubelet(pod: Raw) -> Iterator[tuple[str, str]]:
    for container in (pod.get("status") or {}).get("containerStatuses") or []:
        for resource in container.get("allocatedResourcesStatus") or []:
            if resource.get("name", "").startswith("claim:"):
                continue  # what a driver calls its devices there is nobody else's name for them
            for device in resource.get("resources") or []:
                yield device.get("resourceID", ""), device.get("health", "")


def _unique(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({card for card in found if _NAME.fullmatch(card)}))
