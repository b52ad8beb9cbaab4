"""The objects that the operator writes, as dictionaries for server-side apply.

A revision's pod template is never changed while it has pods that hold cards. Nothing in it may depend on the
time or on the operator's version, or a revision that comes back would never be the one that was kept.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from imageedit_operator.core.pod_template import CARD_REQUEST, PROBE_PORT, claim_template_name, pod_spec
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import RECIPE, deployment_name, recipe

PROGRESS_DEADLINE_S = 3600
"""Loading weights and warming every size takes many minutes; the plan judges progress, not
the Deployment controller."""


RENDERED = "imageedit.dev/rendered"
"""Annotation of a Deployment: digest of the pod template that the operator wrote into it."""
OWNER_UID = "imageedit.dev/owner-uid"
"""Label of a pod: the resource that it was made for. One made again under the same name is another."""


def labels(resource: ImageEditDeployment) -> dict[str, str]:
    """Labels of every child."""
    return {
        "app.kubernetes.io/name": "imageedit-server",
        "app.kubernetes.io/instance": resource.name,
        "app.kubernetes.io/component": "server",
        "app.kubernetes.io/managed-by": "imageedit-operator",
        "imageedit.dev/deployment": resource.name,
    }


def selector(resource: ImageEditDeployment) -> str:
    """Selects the server pods of every revision; `status.selector` of the scale subresource."""
    return f"imageedit.dev/deployment={resource.name},app.kubernetes.io/component=server"


def deployment(resource: ImageEditDeployment, hash_: str, *, replicas: int = 0) -> dict[str, Any]:
    """A revision's Deployment as it is created: with `replicas`, from where the plan scales it."""
    template = _template(resource, hash_)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": deployment_name(resource.name, hash_),
            "namespace": resource.namespace,
            "labels": revision_labels(resource, hash_),
            "annotations": {RECIPE: recipe(resource), RENDERED: _digest(template)},
            "ownerReferences": [owner(resource)],
        },
        "spec": {
            "replicas": replicas,
            # Nothing may surge behind the plan's back: a new template is a new Deployment. Only somebody who edits this
            # one by hand sets its own rollout going, and then its pods leave one by one, with the next on their card.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "minReadySeconds": 0,
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": PROGRESS_DEADLINE_S,
            "selector": {
                "matchLabels": {"imageedit.dev/deployment": resource.name, "imageedit.dev/revision": hash_},
            },
            "template": template,
        },
    }


def rendered(resource: ImageEditDeployment, hash_: str) -> str:
    """Digest of the pod template as it would be written today."""
    return _digest(_template(resource, hash_))


def _template(resource: ImageEditDeployment, hash_: str) -> dict[str, Any]:
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(PROBE_PORT),
        "prometheus.io/path": "/metrics",
    }
    # Its Deployment says whose a pod is, but the ReplicaSet between them is not read.
    pod_labels = {**revision_labels(resource, hash_), OWNER_UID: resource.uid}
    return {
        "metadata": {"labels": pod_labels, "annotations": annotations},
        "spec": pod_spec(resource, hash_),
    }


def revision_labels(resource: ImageEditDeployment, hash_: str) -> dict[str, str]:
    """Labels of a revision's Deployment."""
    return {**labels(resource), "imageedit.dev/revision": hash_}


def _digest(template: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:16]


def service(resource: ImageEditDeployment) -> dict[str, Any]:
    """The address of the resource: every warm pod of every revision."""
    annotations = dict(resource.service.annotations)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": resource.name,
            "namespace": resource.namespace,
            "labels": labels(resource),
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner(resource)],
        },
        "spec": {
            "type": resource.service.type,
            "publishNotReadyAddresses": False,
            "selector": _every_pod(resource),
            "ports": [{"name": "api", "port": 80, "targetPort": "api", "protocol": "TCP"}],
        },
    }


def budget(resource: ImageEditDeployment, max_unavailable: int) -> dict[str, Any]:
    """How many server pods, of whatever revision, evictions may take at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": resource.name,
            "namespace": resource.namespace,
            "labels": labels(resource),
            "ownerReferences": [owner(resource)],
        },
        "spec": {
            "maxUnavailable": max_unavailable,
            # A pod that serves nobody protects nobody: it may always go, however many are not ready.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": _every_pod(resource)},
        },
    }


def claim_template(resource: ImageEditDeployment) -> dict[str, Any] | None:
    """What each pod's claim on its card is made from, where cards are claimed and not counted.

    Its spec can never change, so its name stands for its content, and revisions share it. It goes with the resource.
    """
    accelerator = resource.accelerator
    if not accelerator.claims:
        return None
    request = {"deviceClassName": accelerator.device_class, "allocationMode": "ExactCount", "count": accelerator.count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": claim_template_name(resource),
            "namespace": resource.namespace,
            "labels": labels(resource),
            "ownerReferences": [owner(resource)],
        },
        "spec": {"spec": {"devices": {"requests": [{"name": CARD_REQUEST, "exactly": request}]}}},
    }


def _every_pod(resource: ImageEditDeployment) -> dict[str, str]:
    return {"imageedit.dev/deployment": resource.name, "app.kubernetes.io/component": "server"}


def owner(resource: ImageEditDeployment) -> dict[str, Any]:
    """The reference by which a child goes with its resource."""
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "name": resource.name,
        "uid": resource.uid,
        "controller": True,
        "blockOwnerDeletion": False,  # True needs the right to write finalizers, and buys nothing here
    }
