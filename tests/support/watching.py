"""An observer of its own: looks at a resource's pods all along and keeps what it saw."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from support.kubectl import CommandFailed, Kubectl


def is_ready(pod: dict[str, Any]) -> bool:
    """The pod's Ready condition, which includes the warm gate."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


def gate_of(pod: dict[str, Any]) -> dict[str, Any]:
    """The warm gate's condition, or an empty one."""
    conditions = pod.get("status", {}).get("conditions", [])
    return next((dict(c) for c in conditions if c["type"] == "imageedit.dev/warm"), {})


def container_id(pod: dict[str, Any]) -> str:
    """Of the server container that runs now."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return str(statuses[0].get("containerID", "")) if statuses and "running" in statuses[0].get("state", {}) else ""


class PodWatch:
    """Polls the pods of one resource in a thread while the `with` block runs."""

    def __init__(self, kubectl: Kubectl, name: str, namespace: str, *, pause_s: float = 0.5) -> None:
        self.ready: list[int] = []
        """Ready pods at each look."""
        self.total: list[int] = []
        """Pods that are not terminating, at each look."""
        self._arguments = ("pods", "-n", namespace, "-l", f"imageedit.dev/deployment={name}")
        self._kubectl = kubectl
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> PodWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                pods = self._kubectl.get(*self._arguments)["items"]
            except CommandFailed:
                continue
            self.ready.append(sum(is_ready(pod) for pod in pods))
            self.total.append(sum("deletionTimestamp" not in pod["metadata"] for pod in pods))
            time.sleep(self._pause_s)
