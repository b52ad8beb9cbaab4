"""Which objects are watched, and which resource an event on one of them concerns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imageedit_operator.kube.client import DEPLOYMENTS, FIELD_MANAGER, IMAGE_EDIT_DEPLOYMENTS, PODS, Resource
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL
from imageedit_operator.workqueue import Key

WATCHED = (IMAGE_EDIT_DEPLOYMENTS, DEPLOYMENTS, PODS)
SELECTOR = f"app.kubernetes.io/managed-by={FIELD_MANAGER},{DEPLOYMENT_LABEL}"
"""Labels of the Deployments and pods that are watched."""


def keys_for(resource: Resource, manifest: Mapping[str, Any]) -> tuple[Key, ...]:
    """The resources to look at after an event on this object.

    | object                                | key                                  |
    | ------------------------------------- | ------------------------------------ |
    | ImageEditDeployment                   | its own                              |
    | Deployment or Pod with our label      | its namespace, the label's value     |
    | anything else                         | none                                 |
    """
    metadata = manifest.get("metadata") or {}
    labels = metadata.get("labels") or {}
    name = metadata.get("name") if resource == IMAGE_EDIT_DEPLOYMENTS else labels.get(DEPLOYMENT_LABEL)
    namespace = metadata.get("namespace")
    return (Key(namespace, name),) if namespace and name else ()


def version_of(manifest: Mapping[str, Any]) -> str:
    """The object's resourceVersion, which differs after every change; only equality means anything."""
    return str((manifest.get("metadata") or {}).get("resourceVersion") or "")
