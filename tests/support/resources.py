"""One ImageEditDeployment under test: create, change, wait, load; plain words for the cluster tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from demo.editing import draw_picture
from localcluster.addresses import RESOURCE_NAME
from support.kubectl import Kubectl, condition, is_current, wait_for
from support.load import Load
from support.system import api_url, image_edit_deployment
from support.watching import container_id

STUB_IMAGE = "imageedit.local/server-stub:dev"
"""The server with its engine for tests about time and load: the card is held for half a second, nothing is computed."""
WAIT_S = 120.0
LOAD_LIMIT_S = 200.0


class Resource:
    """A resource in a namespace of its own."""

    def __init__(self, kubectl: Kubectl, name: str, namespace: str) -> None:
        self.kubectl = kubectl
        self.name = name
        self.namespace = namespace

    def create(self, *, real: bool = False, **arguments: Any) -> None:
        """Apply the manifest: with the stub server unless `real` asks for the tiny checkpoint."""
        manifest = image_edit_deployment(self.name, namespace=self.namespace, **{"revision": "revision-a", **arguments})
        if not real:
            manifest["spec"]["server"]["image"] = STUB_IMAGE
        self.kubectl.apply(manifest)

    def read(self) -> dict[str, Any]:
        """The resource as the apiserver has it."""
        return self.kubectl.get("imageeditdeployment", self.name, "-n", self.namespace)

    def patch(self, spec: dict[str, Any]) -> None:
        """Merge patch of the spec."""
        self.kubectl.merge("imageeditdeployment", self.name, self.namespace, {"spec": spec})

    def roll(self, revision: str) -> None:
        """Another model revision."""
        self.patch({"model": {"revision": revision}})

    def pods(self) -> list[dict[str, Any]]:
        """Its pods, terminating ones included."""
        selector = f"imageedit.dev/deployment={self.name}"
        return list(self.kubectl.get("pods", "-n", self.namespace, "-l", selector)["items"])

    def only_pod(self) -> dict[str, Any]:
        """Its pod, where there is exactly one."""
        (pod,) = self.pods()
        return pod

    def only_container(self) -> str:
        """The running container of its only pod."""
        return container_id(self.only_pod())

    def load(self, *, clients: int) -> Load:
        """Clients that edit until the `async with` block ends."""
        return Load(
            base_url=self.base_url(),
            picture=draw_picture(),
            prompt="make the background blue",
            model="qwen-image-edit-tiny",
            clients=clients,
            limit_s=LOAD_LIMIT_S,
        )

    def base_url(self) -> str:
        """The API by the Service's cluster address."""
        return api_url(self.kubectl, self.name, self.namespace)

    def wait_until(self, what: str, check: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        """Poll until it holds; a time-out says how the resource and all pods with a card stand."""
        try:
            wait_for(what, check, timeout_s=timeout_s, pause_s=0.3)
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{self.standing()}") from None

    def standing(self) -> str:
        """Its conditions, the pods of all namespaces and what the nodes offer, for the report of a failed test."""
        status = self.read().get("status", {})
        lines = [f"{c['type']} {c['status']} {c['reason']}: {c['message']}" for c in status.get("conditions", [])]
        lines.append(self.kubectl.run("get", "pods", "--all-namespaces", "-o", "wide"))
        lines.append(self.kubectl.run("get", "nodes", "-o", "jsonpath={.items[*].status.allocatable}"))
        return "\n".join(lines)

    def wait_complete(self, said: set[str] | None = None) -> None:
        """Until Ready for the present generation; messages of Progressing on the way go to `said`."""

        def complete() -> bool:
            resource = self.read()
            if said is not None:
                said.add(condition(resource, "Progressing")["message"])
            return is_current(resource) and bool(condition(resource, "Ready")["status"] == "True")

        self.wait_until(f"{self.name} complete", complete)

    def wait_condition(self, kind: str, *, status: str, reason: str | None = None) -> dict[str, Any]:
        """Until the condition has that status (and reason); the condition."""

        def reached() -> bool:
            found = condition(self.read(), kind)
            return found["status"] == status and reason in (None, found["reason"])

        self.wait_until(f"{kind} {status} {reason or ''}", reached)
        return condition(self.read(), kind)

    def wait_allocatable(self, cards: int) -> None:
        """Until the node offers that many cards."""

        def reached() -> bool:
            (node,) = self.kubectl.get("nodes")["items"]
            return int(node["status"]["allocatable"].get(RESOURCE_NAME, 0)) == cards

        self.wait_until(f"{cards} allocatable cards", reached)

    def delete(self) -> None:
        """Delete it and wait until its pods have given back their cards."""
        self.kubectl.run("delete", "imageeditdeployment", self.name, "-n", self.namespace, "--ignore-not-found")
        started = time.monotonic()
        while self.pods() and time.monotonic() - started < WAIT_S:
            selector = f"imageedit.dev/deployment={self.name}"
            self.kubectl.run("delete", "pods", "-n", self.namespace, "-l", selector, "--grace-period=5", "--wait=false")
            time.sleep(0.5)
