"""A node whose pods are real server processes, each on an address of the pod range: what a kubelet and a runtime do.

The scheduler places the pods. A deleted pod gets SIGTERM, and its object goes when its process has ended, so that
drains are the server's own. The engine is the one for tests about time: no model, no card.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from apiserver.operator_plane import ROOT
from faults.node import condition
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import NODES, PODS, Resource
from imageedit_operator.kube.parsing import WARM_GATE
from localcluster.addresses import RESOURCE_NAME

TURN_S = 0.1
NODE = "real"
Raw = Mapping[str, Any]


@dataclass(kw_only=True)
class Kubelet:
    """The one node; `flags` go to every server that it starts."""

    kube: KubeClient
    logs: Path
    flags: Sequence[str]
    running: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    """By the pod's uid."""
    started: int = 0

    async def register(self, cards: int) -> None:
        """The Node object, ready, or with another number of cards."""
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", RESOURCE_NAME: str(cards)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": status}
        try:
            await self.kube.create(NODES, "", node)
        except ApiError as error:
            if not error.conflict:
                raise
            await self.kube.patch(NODES, "", NODE, {"status": status}, subresource="status")
        await self.kube.patch(NODES, "", NODE, {"spec": {"taints": None}})

    async def turn(self, http: aiohttp.ClientSession) -> None:
        """Every pod on the node goes one step further."""
        for pod in await self.kube.list_all(PODS):
            if pod["spec"].get("nodeName") != NODE:
                continue
            process = self.running.get(pod["metadata"]["uid"])
            if "deletionTimestamp" in pod["metadata"]:
                await self._let_go(pod, process)
            elif process is None:
                await self._start(pod)
            else:
                await self._probe(http, pod)

    async def _start(self, pod: Raw) -> None:
        self.started += 1
        ip, uid = f"198.19.255.{self.started}", pod["metadata"]["uid"]
        container = pod["spec"]["containers"][0]
        command = [sys.executable, "-m", "imageedit_server", *container["args"], "--host", ip, *self.flags]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("IMAGEEDIT_")},
            "PYTHONPATH": str(ROOT / "server/src"),
            "IMAGEEDIT_POD_UID": uid,
            "IMAGEEDIT_POD": pod["metadata"]["name"],
            "IMAGEEDIT_NAMESPACE": pod["metadata"]["namespace"],
        }
        with (self.logs / f"{pod['metadata']['name']}.log").open("wb") as log:
            self.running[uid] = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
        state = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "containerID": f"process://{self.running[uid].pid}",
            "state": {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}},
        }
        status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "containerStatuses": [state]}
        await self._report(pod, {**status, "conditions": [{"type": "Ready", "status": "False"}]})

    async def _probe(self, http: aiohttp.ClientSession, pod: Raw) -> None:
        """The readiness probe and the gate together are the condition Ready."""
        try:
            async with http.get(f"http://{pod['status']['podIP']}:8080/readyz") as answer:
                ready = answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            ready = False
        wanted = "True" if ready and condition(pod, WARM_GATE) == "True" else "False"
        if condition(pod, "Ready") != wanted:
            await self._report(pod, {"conditions": [{"type": "Ready", "status": wanted}]})

    async def _let_go(self, pod: Raw, process: asyncio.subprocess.Process | None) -> None:
        if process is not None and process.returncode is None:
            process.terminate()  # again each turn: another SIGTERM changes nothing
            return
        name = pod["metadata"]["name"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
        target = Resource(group="", version="v1", plural=f"pods/{name}/eviction")
        await self.kube.create(target, pod["metadata"]["namespace"], eviction)

    async def _report(self, pod: Raw, status: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        await self.kube.patch(PODS, metadata["namespace"], metadata["name"], body, strategic=True, subresource="status")


@asynccontextmanager
async def kubelet(kube: KubeClient, logs: Path, *, cards: int, flags: Sequence[str]) -> AsyncIterator[Kubelet]:
    """The node, for as long as the context lasts; its servers are killed at the end."""
    played = Kubelet(kube=kube, logs=logs, flags=flags)
    await played.register(cards)

    async def live() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            while True:
                try:
                    await played.turn(http)
                except ApiError as error:
                    if not (error.conflict or error.not_found):
                        raise
                await asyncio.sleep(TURN_S)

    living = asyncio.create_task(live())
    try:
        yield played
    finally:
        living.cancel()
        await asyncio.wait({living})
        for process in played.running.values():
            if process.returncode is None:
                process.kill()
                await process.wait()
        if not living.cancelled():
            living.result()
