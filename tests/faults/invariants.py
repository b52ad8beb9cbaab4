"""What must hold at every moment, whatever fails; checked by an observer that knows nothing of the operator's plans."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import DEPLOYMENTS, PODS, KubeClient
from imageedit_operator.kube.parsing import WARM_GATE

LOOK_S = 0.15
CHECKS: Counter[str] = Counter()
"""How often each invariant was checked, over the whole run."""

NEVER_MORE = "no more replicas are asked for than wanted plus one"
NEVER_ZERO = "a pod is Ready, once one was"
NEVER_OPEN = "a pod that goes was taken out of service before"

Raw = Mapping[str, Any]


def condition(pod: Raw, type_: str) -> str:
    """The value of a pod's condition; empty when it has none."""
    found = [c["status"] for c in pod.get("status", {}).get("conditions", []) if c["type"] == type_]
    return found[0] if found else ""


@dataclass(kw_only=True)
class Observer:
    """Looks at one namespace with one resource of `replicas` pods."""

    kube: KubeClient
    namespace: str
    replicas: int
    serving: bool = False
    """A pod was Ready once: from here on one always is."""
    harmed: bool = False
    """The test itself takes pods away, so what happens to them is not the operator's choice."""
    broken: list[str] = field(default_factory=list)

    async def look(self) -> None:
        """One snapshot of the pods and one of the Deployments."""
        pods = await self.kube.list_all(PODS, self.namespace)
        deployments = await self.kube.list_all(DEPLOYMENTS, self.namespace)
        self._never_more(deployments)
        if not self.harmed:
            self._never_zero(pods)
            self._never_open(pods)

    def _never_more(self, deployments: Sequence[Raw]) -> None:
        asked = sum(item["spec"]["replicas"] for item in deployments)
        self._check(NEVER_MORE, asked <= self.replicas + 1, f"{asked} replicas")

    def _never_zero(self, pods: Sequence[Raw]) -> None:
        ready = [pod for pod in pods if condition(pod, "Ready") == "True" and not _leaves(pod)]
        if self.serving:
            self._check(NEVER_ZERO, bool(ready), str([pod["metadata"]["name"] for pod in pods]))
        self.serving = self.serving or bool(ready)

    def _never_open(self, pods: Sequence[Raw]) -> None:
        for pod in pods:
            if _leaves(pod):
                self._check(NEVER_OPEN, condition(pod, WARM_GATE) != "True", pod["metadata"]["name"])

    def _check(self, name: str, holds: bool, seen: str) -> None:
        CHECKS[name] += 1
        if not holds:
            self.broken.append(f"{name}: {seen}")


def _leaves(pod: Raw) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@asynccontextmanager
async def observed(kube: KubeClient, namespace: str, *, replicas: int) -> AsyncIterator[Observer]:
    """An observer that looks all along; at the end the test fails when an invariant was broken."""
    observer = Observer(kube=kube, namespace=namespace, replicas=replicas)

    async def watch() -> None:
        while True:
            try:
                await observer.look()
            except ApiError:
                continue  # the apiserver itself is under load; the next look counts
            finally:
                await asyncio.sleep(LOOK_S)

    watching = asyncio.create_task(watch())
    try:
        yield observer
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        if not watching.cancelled():
            watching.result()  # it failed, so it did not look to the end
    if observer.broken:
        raise AssertionError("\n".join(dict.fromkeys(observer.broken)))
