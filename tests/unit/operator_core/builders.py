"""Values of the operator's core with defaults that a test overrides where it matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from imageedit_operator.core import resource as resources
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.resource import ImageEditDeployment

CARD = "huawei.com/Ascend910"
HASH = "aaaaaaaaaa"
OLD = "0000000000"


def manifest(**spec: Any) -> dict[str, Any]:
    """A resource as the apiserver stores it; keywords replace whole parts of the spec."""
    whole: dict[str, Any] = {
        "model": {"name": "qwen", "revision": "a", "source": {"demo": {}}},
        "server": {"image": "server:1"},
        **spec,
    }
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": "edit", "namespace": "team", "uid": "uid-1", "generation": 3},
        "spec": whole,
    }


def resource(**spec: Any) -> ImageEditDeployment:
    return resources.parse(manifest(**spec))


def autoscaling(**changes: Any) -> dict[str, Any]:
    return {
        "minReplicas": 1,
        "maxReplicas": 4,
        "metrics": {"prometheus": {"address": "http://prometheus:9090"}},
        **changes,
    }


def report(**changes: Any) -> WarmReport:
    fresh = WarmReport(
        warm=True,
        revision_hash=HASH,
        digest="sha256:ab",
        instance="i-1",
        warmup_s=12.4,
        edit_s_by_size={"768x768": 2.0},
        check_ok=True,
        check_message="a picture with contrast",
        draining=False,
        accepting=True,
        running=0,
        waiting=0,
    )
    return replace(fresh, **changes)


def known(**changes: Any) -> Known[WarmReport]:
    return Known(value=report(**changes))


SILENT = Unknown(reason="Unreachable", message="no answer")


def serving_pod(name: str = "pod-1", **changes: Any) -> ObservedPod:
    """A warm, ready, idle pod."""
    pod = ObservedPod(
        name=name,
        uid=f"uid-{name}",
        revision_hash=HASH,
        node="node-1",
        ip="10.0.0.1",
        phase="Running",
        ready=True,
        container_id="c-1",
        started=True,
        gate=True,
        gate_reason="Warm",
        gate_message="container c-1: warm in 12.4 s, digest sha256:ab",
        report=known(revision_hash=changes.get("revision_hash", HASH)),
    )
    return replace(pod, **changes)


def starting_pod(name: str = "pod-1", **changes: Any) -> ObservedPod:
    """A pod whose server loads the model."""
    pod = ObservedPod(
        name=name,
        uid=f"uid-{name}",
        revision_hash=HASH,
        node="node-1",
        ip="10.0.0.1",
        phase="Running",
        container_id="c-1",
        started=True,
        report=known(warm=False, check_ok=False, accepting=False, revision_hash=changes.get("revision_hash", HASH)),
    )
    return replace(pod, **changes)


def pending_pod(name: str = "pod-1", **changes: Any) -> ObservedPod:
    """A pod that the scheduler finds no card for."""
    pod = ObservedPod(
        name=name,
        uid=f"uid-{name}",
        revision_hash=HASH,
        unschedulable=True,
        unschedulable_message=f"0/1 nodes are available: 1 Insufficient {CARD}.",
    )
    return replace(pod, **changes)


def draining_pod(name: str = "pod-1", **changes: Any) -> ObservedPod:
    """A pod that was told to drain and has finished."""
    idle = known(draining=True, accepting=False, warm=True, revision_hash=changes.get("revision_hash", HASH))
    pod = serving_pod(
        name,
        ready=False,
        gate=False,
        gate_reason="Draining",
        gate_message="container c-1: drains",
        gate_since=1000.0,
        report=idle,
    )
    return replace(pod, **changes)


def deployment(replicas: int, hash_: str = HASH, **changes: Any) -> ObservedDeployment:
    made = ObservedDeployment(
        name=f"edit-{hash_}",
        uid=f"uid-{hash_}",
        resource_version="7",
        revision_hash=hash_,
        replicas=replicas,
        created_at=0.0,
    )
    return replace(made, **changes)
