"""The Job that copies a model to one node, or into one claim, without a card."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from imageedit_operator.core.manifests import labels, owner
from imageedit_operator.core.pod_template import MODELS_DIR
from imageedit_operator.core.prefetch_spec import Prefetch
from imageedit_operator.core.resource import ImageEditDeployment, Source
from imageedit_operator.core.revision import copy_key, copy_name, copy_prefix

COPY_LABEL = "imageedit.dev/copy"
"""Of the Job: which files it copies where."""
POD_LABEL = "imageedit.dev/prefetch"
"""Of the Job's pods: the resource's name. They carry none of the labels that server pods are found by."""
NODE = "imageedit.dev/node"
"""Annotation, for a node's name can be longer than a label; empty for a claim."""
NODE_UID = "imageedit.dev/node-uid"
"""Annotation: of the node, where it is known."""

CONTAINER = "prefetch"
COPIES_DIR = "/copies"
RETRIES = 3
DEADLINE_S = 4 * 3600
"""55 GB in four hours are 4 MB/s: slower than that is not slow but stuck."""
HOPELESS_EXITS = (64, 65, 66, 70, 71)
"""Exit codes of the command (docs/reference/server-settings.md) after which another try would end the same way."""
KEEP_FREE_PERCENT = 10
"""A kubelet evicts pods when its disk has less; a claim has a disk of its own."""
SERVER_USER = 65532

Item = dict[str, Any]


def job_name(resource: ImageEditDeployment, place: str) -> str:
    """One for each place and each set of files."""
    digest = hashlib.sha256(f"{copy_key(resource)}/{place}".encode()).hexdigest()[:10]
    return f"{resource.name}-prefetch-{digest}"


def job(
    resource: ImageEditDeployment, prefetch: Prefetch, hash_: str, place: str, *, node_uid: str, keep: Collection[str]
) -> Item:
    """The Job of a node, or of the claim where `place` is empty.

    `keep` are the names of the copies that revisions of this resource still need; without any nothing is removed.
    """
    of_all = labels(resource) | {
        "app.kubernetes.io/name": "imageedit-prefetch",
        "app.kubernetes.io/component": "prefetch",
    }
    of_pods = {name: text for name, text in of_all.items() if name != "imageedit.dev/deployment"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(resource, place),
            "namespace": resource.namespace,
            "labels": {**of_all, "imageedit.dev/revision": hash_, COPY_LABEL: copy_key(resource)},
            "annotations": {NODE: place, NODE_UID: node_uid},
            "ownerReferences": [owner(resource)],
        },
        "spec": {
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": DEADLINE_S,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": list(HOPELESS_EXITS)},
                    },
                    # A drained node is nobody's fault: the next pod goes on where this one was.
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                ]
            },
            "template": {
                "metadata": {"labels": {**of_pods, POD_LABEL: resource.name}},
                "spec": _pod(resource, prefetch, place, keep),
            },
        },
    }


def _pod(resource: ImageEditDeployment, prefetch: Prefetch, place: str, keep: Collection[str]) -> Item:
    added, where = resource.server.pod, resource.accelerator.place()
    named = {
        "nodeSelector": dict(where.node_selector),
        "tolerations": [dict(item) for item in where.tolerations],
        "affinity": _on_node(place),
        "imagePullSecrets": [{"name": name} for name in added.image_pull_secrets],
        "serviceAccountName": added.service_account_name,
        "priorityClassName": added.priority_class_name,
    }
    group = {"fsGroup": SERVER_USER, "fsGroupChangePolicy": "OnRootMismatch"} if prefetch.kind == "pvc" else {}
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **group},
        "containers": [_container(resource, prefetch, keep)],
        "volumes": [_source(resource.model.source), _copies(prefetch)],
        **{name: value for name, value in named.items() if value},
    }


def _on_node(place: str) -> Item:
    """Through the scheduler: a node's name in the pod itself would pass over taints and room."""
    if not place:
        return {}
    match = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [place]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}}


def _container(resource: ImageEditDeployment, prefetch: Prefetch, keep: Collection[str]) -> Item:
    # The folder of a node belongs to root; the server's user could not write there.
    user = {"runAsUser": 0, "runAsGroup": 0} if prefetch.kind == "hostPath" else {}
    return {
        "name": CONTAINER,
        "image": resource.server.image,
        "args": [text.replace("$", "$$") for text in _args(resource, prefetch, keep)],
        "terminationMessagePolicy": "File",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            **user,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "models", "mountPath": MODELS_DIR, "readOnly": True},
            {"name": "copies", "mountPath": COPIES_DIR},
        ],
    }


def _args(resource: ImageEditDeployment, prefetch: Prefetch, keep: Collection[str]) -> list[str]:
    model = resource.model
    source = f"{MODELS_DIR}/{model.source.path}" if model.source.kind == "pvc" and model.source.path else MODELS_DIR
    return [
        "prefetch",
        source,
        f"{COPIES_DIR}/{copy_name(resource)}",
        *([f"--manifest-digest={model.manifest_digest}"] if model.manifest_digest else []),
        *([f"--keep-free={KEEP_FREE_PERCENT}"] if prefetch.kind == "hostPath" else []),
        *([f"--remove-others={copy_prefix(resource)}", f"--keep={','.join(sorted(keep))}"] if keep else []),
    ]


def _source(source: Source) -> Item:
    if source.kind == "pvc":
        return {"name": "models", "persistentVolumeClaim": {"claimName": source.claim_name, "readOnly": True}}
    return {"name": "models", "hostPath": {"path": source.path, "type": "Directory"}}


def _copies(prefetch: Prefetch) -> Item:
    if prefetch.kind == "pvc":
        return {"name": "copies", "persistentVolumeClaim": {"claimName": prefetch.claim_name}}
    return {"name": "copies", "hostPath": {"path": prefetch.path, "type": "DirectoryOrCreate"}}
