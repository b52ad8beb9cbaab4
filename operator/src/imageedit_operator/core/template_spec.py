"""Further fields of the server's pod: `spec.template`, as the Kubernetes API spells a pod template.

It is applied as it stands, by a field manager of its own (core/template.py). Refused here is only what the apiserver
could not: what would hide pods from their selectors, or take a card behind the book.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.fields import InvalidResource, mapping, nested_deeper, objects, text
from imageedit_operator.core.pod_fields import RESERVED_VARIABLES

LARGEST_BYTES = 32 * 1024
"""The revision's Deployment carries it twice, and annotations have a limit."""
DEEPEST = 32
"""Twice what a pod of today nests; what reads a spec part by part has a limit, too."""
MOST_CONTAINERS = 16
MOST_VARIABLES = 64

RESERVED_PREFIX = "imageedit.dev/"
RESERVED_LABELS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
    "app.kubernetes.io/managed-by",
)
RESERVED_ANNOTATIONS = ("controller.kubernetes.io/pod-deletion-cost",)

ELSEWHERE = {
    "nodeName": "spec.accelerator.nodeSelector",
    "nodeSelector": "spec.accelerator.nodeSelector",
    "tolerations": "spec.accelerator.tolerations",
    "runtimeClassName": "spec.accelerator.runtimeClassName",
    "resourceClaims": "spec.accelerator.injection",
    "serviceAccountName": "spec.server.serviceAccountName",
    "serviceAccount": "spec.server.serviceAccountName",
    "priorityClassName": "spec.server.priorityClassName",
    "terminationGracePeriodSeconds": "spec.rollout.drainTimeout",
}
"""Fields of a pod that have one of their own, which the operator reads for more than the pod."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """What users add to the pod template; empty maps where they add nothing."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether there is anything to apply."""
        return bool(self.labels or self.annotations or self.spec)

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec, without what is empty."""
        named = {"labels": dict(self.labels), "annotations": dict(self.annotations)}
        metadata = {name: value for name, value in named.items() if value}
        return {**({"metadata": metadata} if metadata else {}), **({"spec": dict(self.spec)} if self.spec else {})}


def parse_template(spec: Mapping[str, Any]) -> Template:
    """Typed values; raises InvalidResource for what the schema would refuse."""
    whole = mapping(spec, "template", "spec.template", optional=True)
    metadata = mapping(whole, "metadata", "spec.template.metadata", optional=True)
    pod = mapping(whole, "spec", "spec.template.spec", optional=True)
    if nested_deeper(pod, DEEPEST):
        raise InvalidResource(f"spec.template.spec: is nested more than {DEEPEST} levels deep")
    found = Template(
        labels=_texts(metadata, "labels", RESERVED_LABELS),
        annotations=_texts(metadata, "annotations", RESERVED_ANNOTATIONS),
        # An empty value at the top says nothing, and nobody would own it once it was applied.
        spec={name: value for name, value in pod.items() if value not in (None, [], {})},
    )
    if len(json.dumps(found.manifest())) > LARGEST_BYTES:
        raise InvalidResource(f"spec.template: is larger than {LARGEST_BYTES} bytes; put files into a ConfigMap")
    for name in found.spec:
        if name in ELSEWHERE:
            raise InvalidResource(f"spec.template.spec.{name}: is given by {ELSEWHERE[name]}")
    for kind in ("containers", "initContainers"):
        for item in objects(found.spec, kind, f"spec.template.spec.{kind}", limit=MOST_CONTAINERS):
            _container(item, f"spec.template.spec.{kind}")
    return found


def _texts(metadata: Mapping[str, Any], kind: str, reserved: tuple[str, ...]) -> dict[str, str]:
    path = f"spec.template.metadata.{kind}"
    found = mapping(metadata, kind, path, optional=True)
    for name, value in found.items():
        if name.startswith(RESERVED_PREFIX) or name in reserved:
            raise InvalidResource(f"{path}: {name} is set by the operator, which finds pods by it")
        if not isinstance(value, str):
            raise InvalidResource(f"{path}: {name} must be a text")
    return dict(found)


def _container(item: Mapping[str, Any], path: str) -> None:
    name = text(item, "name", f"{path}[].name", limit=63)
    resources = mapping(item, "resources", f"{path}[].resources", optional=True)
    for kind in ("requests", "limits"):
        for amount in mapping(resources, kind, f"{path}[].resources.{kind}", optional=True):
            if "/" in amount:
                raise InvalidResource(f"{path}: {name} asks for {amount}; cards are asked for by spec.accelerator")
    if name == "server":
        for variable in objects(item, "env", f"{path}[].env", limit=MOST_VARIABLES):
            if variable.get("name") in RESERVED_VARIABLES:
                raise InvalidResource(
                    f"{path}: variable {variable['name']} is set by the operator or by a field of the spec"
                )
