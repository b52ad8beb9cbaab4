"""Objects of the custom resource, and a bare apiserver that knows it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apiserver.operator_plane import install
from localcluster import binaries, controlplane
from support.kubectl import Kubectl

PROMETHEUS = {"prometheus": {"address": "http://prometheus:9090"}}
AUTOSCALING = {"maxReplicas": 4, "metrics": PROMETHEUS}
UNSET = object()


@contextmanager
def bare_apiserver() -> Iterator[Kubectl]:
    """It has the resource's definition, and no operator."""
    with controlplane.up_only() as plane:
        install(plane)
        yield Kubectl(kubeconfig=plane.kubeconfig, kubectl=plane.kubectl, helm=binaries.path_of("helm"))


def resource(changes: dict[str, Any] | None = None, *, name: str = "qwen-edit") -> dict[str, Any]:
    """A good object with `path: value` changes; UNSET removes the field."""
    built: dict[str, Any] = {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "model": {"name": "qwen", "revision": "a", "source": {"demo": {}}},
            "server": {"image": "registry.example/imageedit-server:0.1.0"},
        },
    }
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        node = built["spec"]
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is UNSET:
            del node[last]
        else:
            node[last] = copy.deepcopy(value)
    return built


def try_out(kubectl: Kubectl, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as the apiserver would store it; raises CommandFailed with its words."""
    stored = kubectl.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(manifest))
    return dict(json.loads(stored))
