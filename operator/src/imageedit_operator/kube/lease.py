"""The Lease object: reading it, and writing it only as it was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from imageedit_operator.core.election import LeaseRecord
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.kinds import LEASES
from imageedit_operator.kube.parsing import timestamp


class LeaseFile:
    """One Lease in one namespace; `clock` is UTC epoch seconds and serves only those who read the object."""

    def __init__(self, kube: Kube, *, namespace: str, name: str, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._clock = clock

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def read(self) -> LeaseRecord | None:
        """The stored record; None when there is no Lease. Raises ApiError."""
        try:
            return parse_lease(await self._kube.get(LEASES, self._namespace, self._name))
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def create(self, holder: str, lease_s: float) -> LeaseRecord:
        """A new Lease that we hold. Raises ApiError; `conflict` when somebody was faster."""
        spec = self._spec(holder, lease_s, transitions=0) | {"acquireTime": self._now()}
        metadata = {"name": self._name, "namespace": self._namespace}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        return parse_lease(await self._kube.create(LEASES, self._namespace, lease))

    async def take(self, seen: LeaseRecord, holder: str, lease_s: float) -> LeaseRecord:
        """The seen Lease becomes ours. Raises ApiError; `conflict` when it has changed meanwhile."""
        spec = self._spec(holder, lease_s, transitions=seen.transitions + 1) | {"acquireTime": self._now()}
        return await self._patch(seen, spec)

    async def renew(self, seen: LeaseRecord, lease_s: float) -> LeaseRecord:
        """Our Lease lasts longer. Raises ApiError; `conflict` when it has changed meanwhile."""
        return await self._patch(seen, self._spec(seen.holder, lease_s, transitions=seen.transitions))

    async def release(self, seen: LeaseRecord) -> LeaseRecord:
        """Our Lease is nobody's. Raises ApiError; `conflict` when it has changed meanwhile."""
        return await self._patch(seen, self._spec("", 1.0, transitions=seen.transitions))

    async def _patch(self, seen: LeaseRecord, spec: dict[str, Any]) -> LeaseRecord:
        body = {"metadata": {"resourceVersion": seen.version}, "spec": spec}
        return parse_lease(await self._kube.patch(LEASES, self._namespace, self._name, body))

    def _spec(self, holder: str, lease_s: float, *, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(lease_s)),
            "leaseTransitions": transitions,
            "renewTime": self._now(),
        }

    def _now(self) -> str:
        """With microseconds: two renewals with equal times would be one write."""
        now = self._clock()
        return timestamp(now).replace("Z", f".{int(now % 1 * 1e6):06d}Z")


def parse_lease(manifest: Manifest) -> LeaseRecord:
    """The record in a Lease, whoever wrote it."""
    spec = manifest.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        lease_s=float(spec.get("leaseDurationSeconds") or 0),
        version=manifest["metadata"].get("resourceVersion") or "",
        transitions=int(spec.get("leaseTransitions") or 0),
    )
