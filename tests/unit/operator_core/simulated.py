"""Model clusters for tests about rollouts."""

from __future__ import annotations

from typing import Any

from unit.operator_core.builders import manifest
from unit.operator_core.cluster_model import Cluster

SOON = {"progressDeadline": "2m"}


def cluster(*, replicas: int = 2, cards: int = 2, rollout: dict[str, Any] | None = None, **more: Any) -> Cluster:
    return Cluster(manifest=manifest(replicas=replicas, rollout=rollout or {}), cards=cards, **more)


def settled(**more: Any) -> tuple[Cluster, str]:
    """A cluster at rest, and the revision that serves."""
    model = cluster(**more)
    model.settle()
    return model, model.hash


def hashes(model: Cluster) -> set[str]:
    return {pod.hash for pod in model.active}
