"""A cluster of the run's own: real control plane, nodes and pods played by kwok, pods' probes by a responder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from apiserver.operator_plane import ROOT, client, install, is_write
from bench.operator import isolation, stages
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import NODES
from localcluster import addresses, binaries, certs, controllers, controlplane, kubeconfig, processes
from localcluster.controlplane import ControlPlane
from localcluster.paths import Layout
from localcluster.progress import console

PROGRAMS = (*binaries.CONTROL_PLANE, "kube-controller-manager", "kube-scheduler", "kwok")
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
)
"""Those that act on what is measured."""
REQUESTS_PER_S = 1000
CARDS_PER_NODE = 8
OPERATOR_USER = "imageedit-operator"
AT_ONCE = 32

T = TypeVar("T")
Event = Mapping[str, Any]
_READ = re.compile(r'"verb":"(get|list|watch)"')


@dataclass(kw_only=True)
class World:
    """Where the figures are taken."""

    plane: ControlPlane
    kube: KubeClient
    operator_kubeconfig: Path

    def audited(self, since: str = "") -> list[Event]:
        """What was asked for after that time (RFC 3339), oldest first, the watches and the operator's reads left out.

        The log is large and is turned over, so lines are chosen by their text before they are parsed.
        """
        found: list[Event] = []
        for file in self.plane.logs.glob("audit*.log"):
            with file.open() as lines:
                for line in lines:
                    if '"verb":"patch"' in line or (OPERATOR_USER in line and not _READ.search(line)):
                        with contextlib.suppress(ValueError):  # the last line is being written
                            found.append(json.loads(line))
        return sorted((e for e in found if _received(e) > since), key=_received)

    def writes(self, since: str = "") -> list[Event]:
        """The operator's among them, the Lease apart."""
        return [event for event in self.audited(since) if is_mine(event)]


def is_mine(event: Event) -> bool:
    """A write by the operator that is not about its Lease."""
    resource = (event.get("objectRef") or {}).get("resource")
    return event["user"]["username"] == OPERATOR_USER and is_write(event) and resource != "leases"


def _received(event: Event) -> str:
    return str(event["requestReceivedTimestamp"])


@asynccontextmanager
async def world(*, cards: int, warms: bool = False) -> AsyncIterator[World]:
    """Up with that many cards on played nodes of eight; everything is stopped at the end.

    With `warms` no operator is needed to open the gates of pods.
    """
    isolation.route_pods()
    with controlplane.up_only() as plane:
        layout = Layout(root=plane.kubeconfig.parent)
        programs = binaries.ensure(PROGRAMS, console)
        _start_others(layout, plane, programs)
        if cards:
            _start_players(layout, plane, programs, warms=warms)
        install(plane)
        async with client(plane) as kube:
            await _add_nodes(kube, -(-cards // CARDS_PER_NODE))
            yield World(plane=plane, kube=kube, operator_kubeconfig=layout.config / "operator.kubeconfig")


def _start_others(layout: Layout, plane: ControlPlane, programs: Mapping[str, Path]) -> None:
    """The control plane's end stops all that is recorded in its layout."""
    controllers.make_identities(layout, plane.url)
    controllers.start_controller_manager(
        layout, programs["kube-controller-manager"], only=CONTROLLERS, requests_per_s=REQUESTS_PER_S
    )
    controllers.start_scheduler(layout, programs["kube-scheduler"], requests_per_s=REQUESTS_PER_S)
    # A user of its own, so that the audit log tells its writes; as much right as the chart gives is not needed here.
    certs.sign(layout.certs, "operator", user=OPERATOR_USER, groups=("system:masters",))
    kubeconfig.write(layout.config / "operator.kubeconfig", url=plane.url, certs=layout.certs, name="operator")


def _start_players(layout: Layout, plane: ControlPlane, programs: Mapping[str, Path], *, warms: bool) -> None:
    """kwok, and the responder, which has the probes' port of every address."""
    config = layout.config / "kwok.yaml"
    config.write_text(stages.configuration(warms=warms))
    kwok = [str(programs["kwok"]), f"--kubeconfig={plane.kubeconfig}", f"--config={config}"]
    processes.start("kwok", kwok, pids=layout.pids, logs=layout.logs)
    responder = [sys.executable, "-m", "bench.operator.responder"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "operator/src"), str(ROOT / "tests")))}
    processes.start("responder", responder, pids=layout.pids, logs=layout.logs, env=environment)


async def _add_nodes(kube: KubeClient, count: int) -> None:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", addresses.RESOURCE_NAME: str(CARDS_PER_NODE)}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}

    async def add(number: int) -> None:
        name = f"node-{number}"
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        metadata = {"name": name, "labels": {stages.PLAYED: "true"}}
        await kube.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
        await kube.patch(NODES, "", name, {"spec": {"taints": None}})  # admission takes it for not ready yet

    await each(range(count), add)


async def each(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> None:
    """`act` on every item, some at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> None:
        async with slots:
            await act(item)

    async with asyncio.TaskGroup() as tasks:
        for item in items:
            tasks.create_task(one(item))
