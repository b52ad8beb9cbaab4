"""Raw objects as the apiserver sends them, and an apiserver in memory, with defaults."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, NODES, PODS, Resource

CARD = "huawei.com/Ascend910"
RESOURCE_UID = "uid-of-the-resource"


def custom_resource(name: str = "edit", *, uid: str = RESOURCE_UID, status: Any = None, **spec: Any) -> Manifest:
    """An ImageEditDeployment with the fewest fields."""
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name, "namespace": "team", "uid": uid, "generation": 1, "resourceVersion": "17"},
        "spec": {
            "model": {"name": "m", "revision": "1", "source": {"demo": {}}},
            "server": {"image": "server:1"},
            **spec,
        },
        "status": status or {},
    }


def owner(uid: str = RESOURCE_UID) -> dict[str, Any]:
    """The controller reference that children of the resource carry."""
    return {"kind": "ImageEditDeployment", "name": "edit", "uid": uid, "controller": True}


def deployment(name: str = "edit-abc", *, owners: Any = None, replicas: int = 1) -> Manifest:
    """A revision's Deployment."""
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-30T03:00:00Z",
            "labels": {"imageedit.dev/deployment": "edit", "imageedit.dev/revision": "abc"},
            "ownerReferences": [owner()] if owners is None else owners,
        },
        "spec": {"replicas": replicas},
    }


def pod(name: str = "edit-abc-1", *, spec: Any = None, metadata: Any = None, **status: Any) -> Manifest:
    """A server pod that runs."""
    running = {"name": "server", "containerID": "containerd://c1", "restartCount": 0, "state": {"running": {}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-30T03:00:00Z",
            "labels": {"imageedit.dev/deployment": "edit", "imageedit.dev/revision": "abc"},
            **(metadata or {}),
        },
        "spec": {"nodeName": "node-1", **(spec or {})},
        "status": {"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [running], **status},
    }


def holder(node: str, cards: int = 1, *, resource: str = CARD, **status: Any) -> Manifest:
    """Any pod on a node that was given cards."""
    container = {"resources": {"limits": {resource: str(cards)}, "requests": {resource: str(cards)}}}
    return {"metadata": {"name": f"on-{node}"}, "spec": {"nodeName": node, "containers": [container]}, "status": status}


def node(name: str = "node-1", cards: int = 2, *, ready: str = "True", **spec: Any) -> Manifest:
    """A node with cards."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": spec,
        "status": {"allocatable": {"cpu": "8", CARD: str(cards)}, "conditions": [{"type": "Ready", "status": ready}]},
    }


def warm_body(**changes: Any) -> dict[str, Any]:
    """The body of `/warmz` from the pod contract."""
    return {
        "warm": True,
        "model": "m",
        "revision": "1",
        "revisionHash": "abc",
        "digest": "sha256:9f",
        "instance": "i-1",
        "warmupSeconds": 12.4,
        "sizes": {"768x768": 21.3},
        "check": {"ok": True, "message": "a picture with contrast"},
        "draining": False,
        "accepting": True,
        "running": 0,
        "waiting": 0,
        "error": None,
        **changes,
    }


@dataclass(kw_only=True)
class MemoryKube:
    """`Kube` over dictionaries: no versions, no defaults, no watches; `refuse` maps a verb to its error."""

    objects: dict[tuple[Resource, str, str], Manifest] = field(default_factory=dict)
    refuse: dict[str, ApiError] = field(default_factory=dict)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    bodies: list[Mapping[str, Any]] = field(default_factory=list)

    def put(self, resource: Resource, manifest: Manifest) -> None:
        """An object that is there from the beginning."""
        metadata = manifest["metadata"]
        self.objects[(resource, metadata.get("namespace", ""), metadata["name"])] = manifest

    def writes(self) -> list[tuple[str, str, str]]:
        """Verb, plural and name of everything that was asked for and is not a read."""
        return [call for call in self.calls if call[0] not in {"get", "list"}]

    async def get(self, resource: Resource, namespace: str, name: str) -> Manifest:
        self._called("get", resource, name)
        found = self.objects.get((resource, namespace, name))
        if found is None:
            raise ApiError(status=404, reason="NotFound", message=f"{name} not found")
        return copy.deepcopy(found)

    async def pages(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", bare: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        self._called("list", resource, labels or fields)
        wanted = dict(part.split("=", 1) for part in labels.split(",") if "=" in part)
        present = {part for part in labels.split(",") if part and "=" not in part}
        for (kind, where, _), item in list(self.objects.items()):
            have = item["metadata"].get("labels") or {}
            if (
                kind == resource
                and namespace in {"", where}
                and wanted.items() <= have.items()
                and present <= have.keys()
            ):
                yield [copy.deepcopy(item)]

    async def list_all(self, resource: Resource, namespace: str = "", *, labels: str = "") -> list[Manifest]:
        return [item async for page in self.pages(resource, namespace, labels=labels) for item in page]

    async def create(self, resource: Resource, namespace: str, manifest: Mapping[str, Any]) -> Manifest:
        name = manifest["metadata"]["name"]
        if (resource, namespace, name) in self.objects:
            raise ApiError(status=409, reason="AlreadyExists", message=f"{name} already exists")
        return self._write("create", resource, namespace, name, manifest)

    async def apply(
        self, resource: Resource, namespace: str, manifest: Mapping[str, Any], *, uid: str | None = None
    ) -> Manifest:
        name = manifest["metadata"]["name"]
        found = self.objects.get((resource, namespace, name))
        there = "" if found is None else found["metadata"].get("uid", "some")
        if uid is not None and there != uid:
            raise ApiError(status=409, reason="Conflict", message=f"{name} has another uid")
        return self._write("apply", resource, namespace, name, manifest)

    async def apply_beside(
        self,
        resource: Resource,
        namespace: str,
        manifest: Mapping[str, Any],
        *,
        manager: str,
        dry_run: bool,
        force: bool = False,
    ) -> Manifest:
        name = manifest["metadata"]["name"]
        self._called("try" if dry_run else "apply", resource, name)
        self.bodies.append(manifest)
        found = self.objects.get((resource, namespace, name))
        if found is None:
            raise ApiError(status=404, reason="NotFound", message=f"{name} not found")
        if not dry_run:
            merge(found, {"spec": manifest["spec"]})
            entry = {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}
            found["metadata"].setdefault("managedFields", []).append(entry)
        return copy.deepcopy(found)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        strategic: bool = False,
        subresource: str = "",
    ) -> Manifest:
        self._called("patch", resource, name)
        self.bodies.append(body)
        found = self.objects.get((resource, namespace, name))
        if found is None:
            raise ApiError(status=404, reason="NotFound", message=f"{name} not found")
        merge(found, body)
        return copy.deepcopy(found)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, resource_version: str = ""
    ) -> None:
        self._called("delete", resource, name)
        self.objects.pop((resource, namespace, name), None)

    async def serves(self, resource: Resource) -> bool:
        self._called("get", resource, "")
        return True

    def _write(self, verb: str, resource: Resource, namespace: str, name: str, manifest: Mapping[str, Any]) -> Manifest:
        self._called(verb, resource, name)
        self.bodies.append(manifest)
        stored = {**copy.deepcopy(dict(manifest))}
        self.objects[(resource, namespace, name)] = stored
        return stored

    def _called(self, verb: str, resource: Resource, name: str) -> None:
        self.calls.append((verb, resource.plural, name))
        for asked in (verb, f"{verb} {resource.plural}"):
            if asked in self.refuse:
                raise self.refuse[asked]


def merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """RFC 7386."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, Mapping):
            before = target.get(name)
            target[name] = before if isinstance(before, dict) else {}
            merge(target[name], value)
        else:
            target[name] = copy.deepcopy(value)


def cluster(*objects: tuple[Resource, Manifest]) -> MemoryKube:
    """A cluster with these objects."""
    kube = MemoryKube()
    for resource, manifest in objects:
        kube.put(resource, manifest)
    return kube


def with_resource(**spec: Any) -> MemoryKube:
    """A cluster with one ImageEditDeployment."""
    return cluster((IMAGE_EDIT_DEPLOYMENTS, custom_resource(**spec)))


def with_cards(*nodes_and_pods: Manifest) -> MemoryKube:
    """A cluster with nodes (they have allocatable) and pods."""
    return cluster(*((NODES if "allocatable" in item["status"] else PODS, item) for item in nodes_and_pods))
