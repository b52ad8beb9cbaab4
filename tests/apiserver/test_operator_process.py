"""The operator as a process against a real apiserver: starting, working, resting, surviving, stopping.

No kubelet and no controllers: pods are written by the test, and answered for by servers on loopback addresses.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from apiserver.operator_faults import LEADER_CHANGED, FaultProxy, faulty
from apiserver.operator_plane import (
    ROOT,
    audited_writes,
    client,
    create_resource,
    eventually,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    pod,
)
from imageedit_operator.kube import access
from imageedit_operator.kube.client import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, KubeClient, Manifest
from imageedit_operator.kube.parsing import parse_pod
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


@dataclass(kw_only=True)
class Operator:
    """A running operator process."""

    process: asyncio.subprocess.Process
    port: int
    log: list[dict[str, Any]]

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET on its own port."""
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.status, await answer.text()

    async def metric(self, name: str) -> float:
        """The sum over the series of a metric."""
        _, text = await self.get("/metrics")
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return sum(float(value) for series, value in rows if series.split("{")[0] == name)

    def resident_mib(self) -> float:
        """Resident memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the process is gone")

    def messages(self) -> str:
        """What it logged, for failures."""
        return "\n".join(str(line) for line in self.log)


async def start(kubeconfig: Path, *flags: str) -> Operator:
    """Starts the process; its port is known when this returns."""
    arguments = ["--kubeconfig", str(kubeconfig), "--http-port", "0", *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator/src")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "imageedit_operator", *arguments, stderr=asyncio.subprocess.PIPE, env=environment
    )
    running = Operator(process=process, port=0, log=[])
    assert process.stderr is not None
    while line := await process.stderr.readline():
        running.log.append(json.loads(line))
        if "http_port" in running.log[-1]:
            running.port = running.log[-1]["http_port"]
            return running
    raise AssertionError(f"it ended before it listened: {running.messages()}")


@asynccontextmanager
async def operator(kubeconfig: Path, *flags: str) -> AsyncIterator[Operator]:
    """The operator, stopped at the end however the test ends."""
    running = await start(kubeconfig, *flags)
    reading = asyncio.create_task(_read(running))
    try:
        yield running
    finally:
        if running.process.returncode is None:
            running.process.terminate()
            try:
                await asyncio.wait_for(running.process.wait(), timeout=30)
            except TimeoutError:
                running.process.kill()
                await running.process.wait()
        await reading


async def _read(running: Operator) -> None:
    assert running.process.stderr is not None
    while line := await running.process.stderr.readline():
        running.log.append(json.loads(line) if line.startswith(b"{") else {"raw": line.decode()})


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

    return await eventually(look, within_s=20, what=f"{count} Deployments with {replicas} replicas")


async def at_rest(running: Operator) -> None:
    """Waits until a second has gone by without a pass that wrote something."""

    async def look() -> bool | None:
        before = await running.metric("imageedit_operator_api_requests_total")
        await asyncio.sleep(1.5)
        return True if await running.metric("imageedit_operator_workqueue_depth") == 0 and before else None

    await eventually(look, within_s=30, what="rest")


@dataclass(kw_only=True)
class Server:
    """A server pod's probe port on a loopback address of its own."""

    ip: str
    hash: str
    warm: bool = True
    draining: bool = False
    drained_with: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        """`/warmz` and `/drain` after the contract."""
        if request.path == "/drain":
            self.drained_with, self.draining = request.headers.get("Authorization", ""), True
            return web.Response(status=202)
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
            "running": 0,
            "waiting": 0,
            "error": None,
        }
        return web.json_response(body, status=200 if self.warm else 503)


@asynccontextmanager
async def serving(hash_: str) -> AsyncIterator[Server]:
    """A server on port 8080 of a free loopback address."""
    ip = f"127.{random.randint(1, 250)}.{random.randint(0, 250)}.{random.randint(1, 250)}"
    server = Server(ip=ip, hash=hash_)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, ip, 8080).start()
        yield server
    finally:
        await runner.cleanup()


async def add_pod(kube: KubeClient, namespace: str, revision: Manifest, name: str) -> Manifest:
    """A scheduled pod of this revision's Deployment."""
    labels = revision["spec"]["template"]["metadata"]["labels"]
    return await kube.create(PODS, namespace, pod(name, labels=labels, node="node-1"))


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

    await eventually(look, within_s=20, what=f"gate {wanted}")


async def test_without_the_resource_definition_it_ends_and_says_what_to_do() -> None:
    with controlplane.up_only() as bare:
        async with operator(bare.kubeconfig) as running:
            assert await asyncio.wait_for(running.process.wait(), timeout=20) == 3
    assert "kubectl apply --server-side -f crds/" in running.messages()


async def test_a_wrong_setting_ends_it_before_anything_else() -> None:
    arguments = ["-m", "imageedit_operator", "--workers", "none"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator/src")}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=pipe, env=environment)
    _, said = await process.communicate()
    assert process.returncode == 2
    assert said == b"imageedit-operator: --workers: 'none' is not a number\n"


async def test_a_resource_gets_its_service_its_deployment_and_its_status(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
) -> None:
    namespace = await new_namespace(kube)
    async with operator(plane.kubeconfig) as running:
        stored = await create_resource(kube, namespace)
        (revision,) = await deployments(kube, namespace)
        service = await kube.get(SERVICES, namespace, "edit")

        async def look() -> dict[str, Any] | None:
            return await status_of(kube, namespace) or None

        status = await eventually(look, within_s=10, what="a status")
        assert running.process.returncode is None, running.messages()
    assert status["desiredReplicas"] == 1
    assert status["observedGeneration"] == 1
    for child in (revision, service):
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (stored["metadata"]["uid"], True)


async def test_the_gate_opens_for_a_warm_pod_and_closes_for_its_next_container(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
) -> None:
    namespace = await new_namespace(kube)
    async with operator(plane.kubeconfig):
        await create_resource(kube, namespace)
        (revision,) = await deployments(kube, namespace)
        hash_ = revision["metadata"]["labels"]["imageedit.dev/revision"]
        async with serving(hash_) as server:
            server.warm = False
            await add_pod(kube, namespace, revision, "p")
            await report_running(kube, namespace, "p", server.ip)
            await asyncio.sleep(2.5)  # long enough for a pass that would have opened it
            assert parse_pod(await kube.get(PODS, namespace, "p")).gate in {None, False}
            server.warm = True
            await gate(kube, namespace, "p", True)
            await report_running(kube, namespace, "p", server.ip, ready=True)

            async def serves() -> bool | None:
                return True if (await status_of(kube, namespace)).get("phase") == "Serving" else None

            await eventually(serves, within_s=15, what="phase Serving")
            server.warm = False
            await report_running(kube, namespace, "p", server.ip, container="c2")
            await gate(kube, namespace, "p", False)


async def test_a_pod_is_drained_with_its_uid_before_it_goes(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with operator(plane.kubeconfig):
        await create_resource(kube, namespace)
        (revision,) = await deployments(kube, namespace)
        async with serving(revision["metadata"]["labels"]["imageedit.dev/revision"]) as server:
            stored = await add_pod(kube, namespace, revision, "p")
            await report_running(kube, namespace, "p", server.ip)
            await gate(kube, namespace, "p", True)
            await report_running(kube, namespace, "p", server.ip, ready=True)
            await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", {"spec": {"replicas": 0}})
            await gate(kube, namespace, "p", False)

            async def told() -> bool | None:
                return True if server.drained_with else None

            await eventually(told, within_s=10, what="a drain")
            assert server.drained_with == f"Bearer {stored['metadata']['uid']}"
            assert (await kube.list_all(DEPLOYMENTS, namespace))[0]["spec"]["replicas"] == 1
            await report_running(kube, namespace, "p", server.ip, ready=False)  # the kubelet saw the gate
            await deployments(kube, namespace, replicas=0)


async def test_at_rest_it_writes_nothing_and_stays_small(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with operator(plane.kubeconfig, "--resync", "2") as running:
        metrics = {"prometheus": {"address": "http://127.0.0.1:1"}}
        for number in range(5):
            await create_resource(kube, namespace, f"edit-{number}")
        await create_resource(kube, namespace, "auto", autoscaling={"maxReplicas": 3, "metrics": metrics})
        await deployments(kube, namespace, count=6)
        await at_rest(running)
        before, passes = len(audited_writes(plane)), await running.metric("imageedit_operator_reconcile_total")
        await asyncio.sleep(20)
        assert audited_writes(plane)[before:] == []
        assert (
            await running.metric("imageedit_operator_reconcile_total") >= passes + 18
        )  # it looked, and had nothing to say
        assert running.resident_mib() < 120
        status, _ = await running.get("/healthz")
        assert status == 200


async def test_sigterm_ends_it_soon_and_with_success(plane: ControlPlane) -> None:  # noqa: F811
    async with operator(plane.kubeconfig) as running:
        await at_rest(running)
        begin = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(running.process.wait(), timeout=20) == 0
    assert time.monotonic() - begin < 10
    assert running.log[-1]["message"] == "stopped"


@asynccontextmanager
async def behind_proxy(
    plane: ControlPlane,  # noqa: F811
    tmp_path: Path,
    *flags: str,
) -> AsyncIterator[tuple[FaultProxy, Operator]]:
    """An operator whose way to the apiserver can be disturbed."""
    async with faulty(plane) as proxy, operator(proxy.write_kubeconfig(tmp_path / "kubeconfig"), *flags) as running:

        async def watches() -> bool | None:
            return True if proxy.open_watches() == 3 else None

        await eventually(watches, within_s=20, what="three open watches")
        yield proxy, running


async def test_an_outage_is_survived_and_what_happened_meanwhile_is_found(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    async with behind_proxy(plane, tmp_path, "--resync", "3") as (proxy, running):
        gone = await create_resource(kube, namespace, "gone")
        await deployments(kube, namespace)
        await proxy.down()
        await kube.delete(IMAGE_EDIT_DEPLOYMENTS, namespace, "gone", uid=gone["metadata"]["uid"])
        await create_resource(kube, namespace, "meanwhile")
        await asyncio.sleep(5)
        await proxy.up()
        await deployments(kube, namespace, count=2)

        async def forgotten() -> bool | None:
            _, text = await running.get("/metrics")
            return True if 'imageedit_deployment="gone"' not in text else None

        await eventually(forgotten, within_s=20, what="the end of the series of a resource that was deleted unseen")
        assert running.process.returncode is None, running.messages()


async def test_a_watch_that_kopf_cannot_bear_is_started_anew(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    async with behind_proxy(plane, tmp_path) as (proxy, running):
        assert proxy.inject(LEADER_CHANGED) == 3

        async def restarted() -> bool | None:
            return True if await running.metric("imageedit_operator_watch_restarts_total") >= 1 else None

        await eventually(restarted, within_s=30, what="a restart of the watches")
        await create_resource(kube, namespace)
        await deployments(kube, namespace)
        assert running.process.returncode is None, running.messages()


async def test_one_namespace_is_served_alone(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    ours, other = await new_namespace(kube), await new_namespace(kube)
    async with operator(plane.kubeconfig, "--namespaces", ours):
        await create_resource(kube, other)
        await create_resource(kube, ours)
        await deployments(kube, ours)
        await asyncio.sleep(2)
        assert await kube.list_all(DEPLOYMENTS, other) == []


def roles(rights: tuple[access.Right, ...], account: str, namespace: str) -> str:
    """A Role with exactly these rights, bound to a new service account."""
    rules = [{"apiGroups": [r.group], "resources": [r.resource], "verbs": list(r.verbs)} for r in rights]
    metadata = {"name": account, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def as_account(plane: ControlPlane, account: str, namespace: str, path: Path) -> Path:  # noqa: F811
    """A kubeconfig with a token of this service account."""
    config = json.loads(plane.kubeconfig.read_text())
    token = kubectl(plane, "-n", namespace, "create", "token", account).strip()
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


async def test_the_listed_rights_are_enough_and_cards_are_then_unknown(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    kubectl(plane, "apply", "-f", "-", stdin=roles(access.REQUIRED, "op", namespace))
    config = as_account(plane, "op", namespace, tmp_path / "kubeconfig")
    async with operator(config, "--namespaces", namespace) as running:
        await create_resource(kube, namespace, accelerator={"resourceName": "huawei.com/Ascend910"})
        (revision,) = await deployments(kube, namespace)
        async with serving(revision["metadata"]["labels"]["imageedit.dev/revision"]) as server:
            await add_pod(kube, namespace, revision, "p")
            await report_running(kube, namespace, "p", server.ip)
            await gate(kube, namespace, "p", True)
        assert await running.metric("imageedit_operator_free_cards_known") == 0
        _, text = await running.get("/metrics")
    refused = [line for line in text.splitlines() if 'code="403"' in line]
    assert all('verb="list"' in line for line in refused), refused  # nodes only
    assert not any("WriteRefused" in str(line) for line in running.log)


async def test_a_right_that_is_missing_is_named_before_anything_is_watched(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    rights = tuple(right for right in access.REQUIRED if right.resource != "pods/status")
    kubectl(plane, "apply", "-f", "-", stdin=roles(rights, "op", namespace))
    config = as_account(plane, "op", namespace, tmp_path / "kubeconfig")
    async with operator(config, "--namespaces", namespace) as running:
        assert await asyncio.wait_for(running.process.wait(), timeout=20) == 3
    assert "patch on pods/status" in running.messages()


async def test_one_resource_with_a_deaf_prometheus_does_not_slow_the_others(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
) -> None:
    namespace = await new_namespace(kube)
    connections: list[asyncio.StreamWriter] = []
    deaf = await asyncio.start_server(lambda _reader, writer: connections.append(writer), "127.0.0.1", 0)
    address = f"http://127.0.0.1:{deaf.sockets[0].getsockname()[1]}"
    async with deaf, operator(plane.kubeconfig, "--workers", "2"):
        metrics = {"prometheus": {"address": address}}
        await create_resource(kube, namespace, "deaf", autoscaling={"maxReplicas": 3, "metrics": metrics})
        await asyncio.sleep(1)
        begin = time.monotonic()
        await create_resource(kube, namespace, "other")

        async def look() -> bool | None:
            found = await kube.list_all(DEPLOYMENTS, namespace, labels="imageedit.dev/deployment=other")
            return True if found and found[0]["spec"]["replicas"] == 1 else None

        await eventually(look, within_s=10, what="the Deployment of the other resource")
        assert time.monotonic() - begin < 4
    for connection in connections:
        connection.close()
