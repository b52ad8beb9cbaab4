"""The containers of a pod as its status shows them: the server, and those of `spec.template`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imageedit_operator.core.pods import SERVER_CONTAINER

Raw = Mapping[str, Any]


def server_container(status: Raw) -> Raw:
    """The state of the server; empty while there is none."""
    for container in status.get("containerStatuses") or []:
        if container.get("name") == SERVER_CONTAINER:
            return dict(container)
    return {}


def names_of_running(status: Raw) -> tuple[str, ...]:
    """Names of the containers that run, sidecars that are init containers included, sorted."""
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return tuple(sorted(str(one.get("name", "")) for one in containers if "running" in (one.get("state") or {})))


def waiting(status: Raw) -> Raw:
    """Why a container waits; ContainerCreating and PodInitializing are the normal way, not a reason."""
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        why = (container.get("state") or {}).get("waiting") or {}
        if why.get("reason") not in {None, "", "ContainerCreating", "PodInitializing"}:
            return dict(why)
    return {}
