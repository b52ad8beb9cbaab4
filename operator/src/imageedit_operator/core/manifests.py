"""The objects that the operator writes, as dictionaries for server-side apply.

A revision's pod template is written once. Nothing in it may depend on the time or on the
operator's version, or an upgrade of the operator would restart pods that hold cards.
"""

from __future__ import annotations

from typing import Any

from imageedit_operator.core.resource import ImageEditDeployment, Source
from imageedit_operator.core.revision import RECIPE, deployment_name, recipe

API_PORT = 8000
PROBE_PORT = 8080
MODELS_DIR = "/models"
WARM_GATE = "imageedit.dev/warm"

TERMINATION_MARGIN_S = 30
"""A pod that is deleted by others drains as long as one that we drain; the margin covers
the propagation time and the process's own exit."""

PROGRESS_DEADLINE_S = 3600
"""Loading weights and warming every size takes many minutes; the plan judges progress, not
the Deployment controller."""

DEVICE_GROUP = 1000
"""HwHiAiUser, the group that owns the device nodes of Ascend drivers."""

SHARED_MEMORY = "2Gi"


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


def deployment(resource: ImageEditDeployment, hash_: str) -> dict[str, Any]:
    """A revision's Deployment as it is created: with no replicas, the plan scales it."""
    revision_labels = {**labels(resource), "imageedit.dev/revision": hash_}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": deployment_name(resource.name, hash_),
            "namespace": resource.namespace,
            "labels": revision_labels,
            "annotations": {RECIPE: recipe(resource)},
            "ownerReferences": [_owner(resource)],
        },
        "spec": {
            "replicas": 0,
            # Nothing may surge behind the plan's back: a new template is a new Deployment.
            "strategy": {"type": "Recreate"},
            "minReadySeconds": 0,
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": PROGRESS_DEADLINE_S,
            "selector": {
                "matchLabels": {"imageedit.dev/deployment": resource.name, "imageedit.dev/revision": hash_},
            },
            "template": {
                "metadata": {
                    "labels": revision_labels,
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/port": str(PROBE_PORT),
                        "prometheus.io/path": "/metrics",
                    },
                },
                "spec": _pod_spec(resource, hash_),
            },
        },
    }


def service(resource: ImageEditDeployment) -> dict[str, Any]:
    """The address of the resource: every warm pod of every revision."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": resource.name,
            "namespace": resource.namespace,
            "labels": labels(resource),
            "ownerReferences": [_owner(resource)],
        },
        "spec": {
            "type": "ClusterIP",
            "publishNotReadyAddresses": False,
            "selector": {"imageedit.dev/deployment": resource.name, "app.kubernetes.io/component": "server"},
            "ports": [{"name": "api", "port": 80, "targetPort": "api", "protocol": "TCP"}],
        },
    }


def _owner(resource: ImageEditDeployment) -> dict[str, Any]:
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "name": resource.name,
        "uid": resource.uid,
        "controller": True,
        "blockOwnerDeletion": False,  # True needs the right to write finalizers, and buys nothing here
    }


def _pod_spec(resource: ImageEditDeployment, hash_: str) -> dict[str, Any]:
    npu = resource.accelerator.device == "npu"
    spec: dict[str, Any] = {
        "readinessGates": [{"conditionType": WARM_GATE}],
        "terminationGracePeriodSeconds": int(resource.rollout.drain_timeout_s) + TERMINATION_MARGIN_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "seccompProfile": {"type": "RuntimeDefault"},
            **({"supplementalGroups": [DEVICE_GROUP]} if npu else {}),
        },
        "containers": [_container(resource, hash_)],
        "volumes": [volume for volume, _ in _volumes(resource)],
    }
    if npu and resource.accelerator.resource_name:
        spec["tolerations"] = [
            {"key": resource.accelerator.resource_name, "operator": "Exists", "effect": "NoSchedule"},
        ]
    return spec


def _container(resource: ImageEditDeployment, hash_: str) -> dict[str, Any]:
    accelerator = resource.accelerator
    container: dict[str, Any] = {
        "name": "server",
        "image": resource.server.image,
        "args": _args(resource, hash_),
        "env": _env(resource),
        "ports": [
            {"name": "api", "containerPort": API_PORT, "protocol": "TCP"},
            {"name": "probes", "containerPort": PROBE_PORT, "protocol": "TCP"},
        ],
        # The API process answers /healthz long before the model is loaded, so no start-up probe is needed.
        "livenessProbe": _probe("/healthz", delay_s=20, period_s=10, timeout_s=5, failures=6),
        "readinessProbe": _probe("/readyz", delay_s=0, period_s=2, timeout_s=2, failures=2),
        "terminationMessagePolicy": "File",
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [mount for _, mount in _volumes(resource)],
    }
    if accelerator.resource_name:
        cards = {accelerator.resource_name: str(accelerator.count)}
        container["resources"] = {"requests": cards, "limits": cards}
    return container


def _args(resource: ImageEditDeployment, hash_: str) -> list[str]:
    settings = {
        "model-name": resource.model.name,
        "model-dir": _model_dir(resource.model.source),
        "model-revision": resource.model.revision,
        "revision-hash": hash_,
        "device": resource.accelerator.device,
        "sizes": ",".join(resource.server.sizes),
        "steps": str(resource.server.steps),
        "queue-hard-limit": str(resource.server.queue_hard_limit),
    }
    # "--name=value" in one word: a value that begins with a dash stays a value. The kubelet
    # expands $(NAME) in arguments, $$ is its escape.
    return [f"--{name}={value.replace('$', '$$')}" for name, value in settings.items()]


def _model_dir(source: Source) -> str:
    if source.kind == "demo":
        return "demo"
    if source.kind == "pvc" and source.path:
        return f"{MODELS_DIR}/{source.path}"
    return MODELS_DIR


def _env(resource: ImageEditDeployment) -> list[dict[str, Any]]:
    env: list[dict[str, Any]] = [
        {"name": "IMAGEEDIT_DEPLOYMENT", "value": resource.name},
        _from_field("IMAGEEDIT_NAMESPACE", "metadata.namespace"),
        _from_field("IMAGEEDIT_POD", "metadata.name"),
        _from_field("IMAGEEDIT_POD_UID", "metadata.uid"),
    ]
    if resource.accelerator.device == "cpu":
        # Threads of several pods on one node would only wait for each other.
        env.append({"name": "OMP_NUM_THREADS", "value": "1"})
    return env


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, *, delay_s: int, period_s: int, timeout_s: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "probes"},
        "initialDelaySeconds": delay_s,
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
    }


def _volumes(resource: ImageEditDeployment) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each volume with its mount."""
    source = resource.model.source
    volumes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"name": "tmp", "emptyDir": {}}, {"name": "tmp", "mountPath": "/tmp"}),
    ]
    models = {"name": "models", "mountPath": MODELS_DIR, "readOnly": True}
    if source.kind == "pvc":
        claim = {"claimName": source.claim_name, "readOnly": True}
        volumes.append(({"name": "models", "persistentVolumeClaim": claim}, models))
    if source.kind == "hostPath":
        volumes.append(({"name": "models", "hostPath": {"path": source.path, "type": "Directory"}}, models))
    if resource.accelerator.device == "npu":
        memory = {"medium": "Memory", "sizeLimit": SHARED_MEMORY}
        volumes.append(({"name": "shm", "emptyDir": memory}, {"name": "shm", "mountPath": "/dev/shm"}))
    return volumes
