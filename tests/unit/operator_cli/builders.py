"""Raw objects of one resource in the middle of a rollout, with defaults that a test overrides where it matters."""

from __future__ import annotations

import json
from typing import Any

from imageedit_operator.cli.looking import Children
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import RECIPE, recipe, revision_hash
from imageedit_operator.core.stored import timestamp
from imageedit_operator.kube.client import Manifest

NOW = 1_796_000_000.0
CARD = "huawei.com/Ascend910"


def at(age_s: float) -> str:
    """The time so many seconds before now."""
    return timestamp(NOW - age_s)


def resource(revision: str = "b", *, status: Any = None, annotations: Any = None, **spec: Any) -> Manifest:
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {
            "name": "edit",
            "namespace": "team",
            "uid": "uid-1",
            "generation": 3,
            "resourceVersion": "17",
            "annotations": annotations or {},
        },
        "spec": {
            "model": {"name": "qwen", "revision": revision, "source": {"demo": {}}},
            "server": {"image": "server:1"},
            **spec,
        },
        "status": status or {},
    }


def hash_of(manifest: Manifest) -> str:
    return revision_hash(parse(manifest))


def condition(kind: str, status: str, reason: str, message: str = "", *, age_s: float = 60) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(age_s)}


def deployment(manifest: Manifest, *, replicas: int = 0, age_s: float = 3600, noted: bool = True) -> Manifest:
    """The Deployment of the revision that this resource asks for."""
    hash_ = hash_of(manifest)
    return {
        "metadata": {
            "name": f"edit-{hash_}",
            "namespace": "team",
            "uid": f"uid-{hash_}",
            "resourceVersion": "5",
            "creationTimestamp": at(age_s),
            "labels": {"imageedit.dev/revision": hash_, "imageedit.dev/deployment": "edit"},
            "annotations": {RECIPE: recipe(parse(manifest))} if noted else {},
            "ownerReferences": [{"kind": "ImageEditDeployment", "name": "edit", "uid": "uid-1", "controller": True}],
        },
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "server", "image": manifest["spec"]["server"]["image"]}]}},
        },
    }


def pod(name: str, hash_: str, *, warm: bool = True, node: str = "node-1", age_s: float = 600) -> Manifest:
    """A pod that serves, or one that the scheduler finds no card for."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(age_s)}
    if not node:
        words = f"0/1 nodes are available: 1 Insufficient {CARD}."
        scheduled |= {"status": "False", "reason": "Unschedulable", "message": words}
    gate = {"type": "imageedit.dev/warm", "status": "True", "reason": "Warm", "message": "container c: warm"}
    running = {"name": "server", "containerID": "c", "state": {"running": {}}, "restartCount": 0}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "creationTimestamp": at(age_s),
            "labels": {"imageedit.dev/revision": hash_, "imageedit.dev/deployment": "edit"},
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "server", "resources": {"limits": {CARD: "1"}}}],
        },
        "status": {
            "phase": "Running" if node else "Pending",
            "podIP": "10.0.0.1" if node else "",
            "conditions": [scheduled, *([gate, {"type": "Ready", "status": "True"}] if warm else [])],
            "containerStatuses": [running] if node else [],
        },
    }


def children(*, deployments: Any = (), pods: Any = (), events: Any = ()) -> Children:
    return Children(deployments=tuple(deployments), pods=tuple(pods), events=None if events is None else tuple(events))


def event(reason: str, note: str, *, age_s: float, warning: bool = False) -> Manifest:
    kind = "Warning" if warning else "Normal"
    return {"reason": reason, "note": note, "type": kind, "eventTime": at(age_s).replace("Z", ".000000Z")}


def with_restart(manifest: Manifest, text: str) -> Manifest:
    copied: Manifest = json.loads(json.dumps(manifest))
    copied["metadata"]["annotations"]["imageedit.dev/restarted-at"] = text
    return copied
