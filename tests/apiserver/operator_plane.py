"""What the operator's tests against a bare apiserver share: the apiserver, a client, objects, waiting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.connection import connect
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, Resource
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
LONG_S = 90.0
"""Longest wait for what takes seconds on a quiet machine: the machine may be busy, and no test is about speed."""
CLOSING_S = 0.05
"""Encrypted connections take their leave after they were closed, and the loop of a test ends soon after."""
NAMESPACES = Resource(group="", version="v1", plural="namespaces", namespaced=False)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A bare apiserver that knows the custom resource."""
    with controlplane.up_only() as started:
        install(started)
        yield started


def install(plane: ControlPlane) -> None:
    """The resource definition, served and discovered: both follow `Established` only after a while.

    `kubectl wait` is not asked: it fails at once on a definition whose conditions are not written yet.
    """
    kubectl(plane, "apply", "--server-side", "-f", str(ROOT / "crds/imageeditdeployments.yaml"))
    end = time.monotonic() + LONG_S
    while not _served(plane):
        assert time.monotonic() < end, f"the resource is not served {LONG_S:g} s after it was applied"
        time.sleep(0.1)


def _served(plane: ControlPlane) -> bool:
    root = IMAGE_EDIT_DEPLOYMENTS.root
    try:
        kubectl(plane, "get", "--raw", f"{root}/{IMAGE_EDIT_DEPLOYMENTS.plural}")
        return f'"{IMAGE_EDIT_DEPLOYMENTS.plural}"' in kubectl(plane, "get", "--raw", root)
    except subprocess.CalledProcessError:
        return False


def kubectl(plane: ControlPlane, *arguments: str, stdin: str = "") -> str:
    """The output of kubectl as the admin; raises CalledProcessError."""
    command = [str(plane.kubectl), "--kubeconfig", str(plane.kubeconfig), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=120).stdout


@asynccontextmanager
async def client(plane: ControlPlane, *, page_size: int = 500) -> AsyncIterator[KubeClient]:
    """A client as the admin."""
    path = str(plane.kubeconfig)
    async with connect(path, timeout_s=LONG_S, on_request=lambda _verb, _code: None, page_size=page_size) as kube:
        yield kube
    await asyncio.sleep(CLOSING_S)


async def new_namespace(kube: KubeClient) -> str:
    """A namespace of the test's own; nothing deletes it, for no controller would."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def resource(name: str = "edit", **spec: Any) -> Manifest:
    """An ImageEditDeployment whose pods ask for no card."""
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name},
        "spec": {
            "model": {"name": "m", "revision": "1", "source": {"demo": {}}},
            "server": {"image": "server:1", "sizes": ["128x128"]},
            "accelerator": {"device": "cpu", "resourceName": ""},
            **spec,
        },
    }


async def create_resource(kube: KubeClient, namespace: str, name: str = "edit", **spec: Any) -> Manifest:
    """A new ImageEditDeployment, as stored."""
    return await kube.create(IMAGE_EDIT_DEPLOYMENTS, namespace, resource(name, **spec))


def deployment(name: str, *, replicas: int = 0, labels: dict[str, str] | None = None) -> Manifest:
    """A Deployment of one container."""
    labels = labels or {"app": name}
    container = {"name": "server", "image": "server:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name, **labels}}, "spec": {"containers": [container]}},
        },
    }


def pod(name: str, *, labels: dict[str, str] | None = None, node: str = "") -> Manifest:
    """A pod with the warm gate."""
    spec: dict[str, Any] = {
        "containers": [{"name": "server", "image": "server:1"}],
        "readinessGates": [{"conditionType": "imageedit.dev/warm"}],
    }
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def service(name: str, *, labels: dict[str, str] | None = None) -> Manifest:
    """A Service."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


async def eventually(look: Callable[[], Awaitable[T | None]], *, what: str, within_s: float = LONG_S) -> T:
    """The first answer that is not None; fails the test when none comes in time."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        found = await look()
        if found is not None:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"{what}: not within {within_s:g} s")


def audited(plane: ControlPlane) -> Iterator[dict[str, Any]]:
    """Every request in the audit log, oldest first; the last ones may still be missing."""
    for line in plane.audit_log.read_text().splitlines():
        with contextlib.suppress(ValueError):  # the last line is being written
            yield json.loads(line)


def is_write(event: Mapping[str, Any]) -> bool:
    """It changed what is stored; access reviews store nothing."""
    reviews = (event.get("objectRef") or {}).get("resource", "") == "selfsubjectaccessreviews"
    return event["verb"] not in {"get", "list", "watch"} and not reviews


def audited_writes(plane: ControlPlane) -> list[tuple[str, str, str]]:
    """Verb, URI and user of every write but the apiserver's own, since it began."""
    found = (
        (event["verb"], event["requestURI"], event["user"]["username"]) for event in audited(plane) if is_write(event)
    )
    return [write for write in found if write[2] != "system:apiserver"]


def writes_but_leases(plane: ControlPlane) -> list[tuple[str, str, str]]:
    """The audited writes without the renewals of a Lease."""
    return [write for write in audited_writes(plane) if "/leases" not in write[1]]
