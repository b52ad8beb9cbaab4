"""Pods as the tests play them: written as a kubelet would, and answered for by servers on loopback addresses."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from apiserver.operator_plane import eventually, pod
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS
from imageedit_operator.kube.parsing import parse_pod

PROBES_PORT = 8080
ADDRESS_ATTEMPTS = 20


@dataclass(kw_only=True)
class Server:
    """A server pod's probe port on a loopback address of its own."""

    ip: str
    hash: str
    warm: bool = True
    draining: bool = False
    drained_with: str = ""
    asked: int = 0
    """How often `/warmz` was read."""
    running: int = 0
    """Edits that it works on."""
    deaf: bool = False
    """It does not answer, as on a node that is gone."""

    @property
    def accepts(self) -> bool:
        """It takes edits."""
        return self.warm and not self.draining and not self.deaf

    async def handle(self, request: web.Request) -> web.Response:
        """`/warmz` and `/drain` after the contract."""
        if self.deaf and request.transport is not None:
            request.transport.abort()
        if request.path == "/drain":
            self.drained_with, self.draining = request.headers.get("Authorization", ""), True
            return web.Response(status=202)
        self.asked += 1
        body = {
            "warm": self.warm,
            "model": "m",
            "revision": "1",
            "revisionHash": self.hash,
            "digest": "sha256:9f",
            "instance": "i",
            "warmupSeconds": 2.5,
            "sizes": {"128x128": 0.4},
            "check": {"ok": True, "message": "a picture"},
            "draining": self.draining,
            "accepting": not self.draining,
            "running": self.running,
            "waiting": 0,
            "error": None,
        }
        return web.json_response(body, status=200 if self.warm else 503)


@asynccontextmanager
async def serving(hash_: str) -> AsyncIterator[Server]:
    """A server on the probes' port of a free loopback address."""
    server = Server(ip="", hash=hash_)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        server.ip = await _listen(runner)
        yield server
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner) -> str:
    """A free address at random: other runs on this machine do the same."""
    for attempt in range(1, ADDRESS_ATTEMPTS + 1):
        ip = f"127.{random.randint(1, 250)}.{random.randint(0, 250)}.{random.randint(1, 250)}"
        try:
            await web.TCPSite(runner, ip, PROBES_PORT).start()
        except OSError as error:
            if attempt == ADDRESS_ATTEMPTS:
                raise AssertionError(
                    f"port {PROBES_PORT} is taken on every address, so no pod can be played"
                ) from error
        else:
            return ip
    raise AssertionError("unreachable")


async def status_of(kube: KubeClient, namespace: str, name: str = "edit") -> dict[str, Any]:
    """The resource's status."""
    status: dict[str, Any] = (await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, name)).get("status") or {}
    return status


async def deployments(kube: KubeClient, namespace: str, *, count: int = 1, replicas: int = 1) -> list[Manifest]:
    """Waits for that many Deployments, each scaled to that many replicas."""

    async def look() -> list[Manifest] | None:
        found = await kube.list_all(DEPLOYMENTS, namespace)
        good = [item for item in found if item["spec"]["replicas"] == replicas]
        return good if len(good) == count else None

    return await eventually(look, what=f"{count} Deployments with {replicas} replicas")


async def add_pod(kube: KubeClient, namespace: str, revision: Manifest, name: str, *, node: str = "node-1") -> Manifest:
    """A scheduled pod of this revision's Deployment."""
    labels = revision["spec"]["template"]["metadata"]["labels"]
    return await kube.create(PODS, namespace, pod(name, labels=labels, node=node))


async def report_running(
    kube: KubeClient, namespace: str, name: str, ip: str, *, container: str = "c1", ready: bool = False
) -> None:
    """What a kubelet would write about a pod whose container runs."""
    state = {
        "name": "server",
        "image": "server:1",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{container}",
        "state": {"running": {"startedAt": "2026-11-30T03:00:00Z"}},
    }
    status = {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "containerStatuses": [state],
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    await kube.patch(PODS, namespace, name, {"status": status}, strategic=True, subresource="status")


async def gate(kube: KubeClient, namespace: str, name: str, wanted: bool) -> None:
    """Waits for the gate's value."""

    async def look() -> bool | None:
        return True if parse_pod(await kube.get(PODS, namespace, name)).gate is wanted else None

    await eventually(look, what=f"gate {wanted}")
