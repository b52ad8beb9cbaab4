"""The operator as a process against a real apiserver: starting, working, resting, stopping.

No kubelet and no controllers: pods are written by the test, and answered for by servers on loopback addresses.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.operator_plane import (
    LONG_S,
    client,
    create_resource,
    eventually,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    writes_but_leases,
)
from apiserver.operator_pods import add_pod, deployments, gate, report_running, serving, status_of
from apiserver.operator_process import ENVIRONMENT, PASSES, at_rest, operator
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES
from imageedit_operator.kube.parsing import parse_pod
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

ATTEMPTS = 8
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


async def test_without_the_resource_definition_it_ends_and_says_what_to_do() -> None:
    with controlplane.up_only() as bare:
        async with operator(bare.kubeconfig) as running:
            assert await asyncio.wait_for(running.process.wait(), timeout=LONG_S) == 3
    assert "kubectl apply --server-side -f crds/" in running.messages()


async def test_a_wrong_setting_ends_it_before_anything_else() -> None:
    arguments = ["-m", "imageedit_operator", "--workers", "none"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=pipe, env=ENVIRONMENT)
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

        status = await eventually(look, what="a status")
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
            asked = server.asked

            async def passed() -> bool | None:  # the pass of the first question has ended when the third one comes
                return True if server.asked >= asked + 3 else None

            await eventually(passed, what="passes that would have opened it")
            assert parse_pod(await kube.get(PODS, namespace, "p")).gate in {None, False}
            server.warm = True
            await gate(kube, namespace, "p", True)
            await report_running(kube, namespace, "p", server.ip, ready=True)

            async def serves() -> bool | None:
                return True if (await status_of(kube, namespace)).get("phase") == "Serving" else None

            await eventually(serves, what="phase Serving")
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

            await eventually(told, what="a drain")
            assert server.drained_with == f"Bearer {stored['metadata']['uid']}"
            assert (await kube.list_all(DEPLOYMENTS, namespace))[0]["spec"]["replicas"] == 1
            await report_running(kube, namespace, "p", server.ip, ready=False)  # the kubelet saw the gate
            await deployments(kube, namespace, replicas=0)


async def test_at_rest_it_writes_nothing_but_its_lease_and_stays_small(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with operator(plane.kubeconfig, "--resync", "2", "--namespaces", namespace) as running:
        metrics = {"prometheus": {"address": "http://127.0.0.1:1"}}
        for number in range(5):
            await create_resource(kube, namespace, f"edit-{number}")
        await create_resource(kube, namespace, "auto", autoscaling={"maxReplicas": 3, "metrics": metrics})
        await deployments(kube, namespace, count=6)
        await at_rest(plane, running, passes=20)
        before, passes = len(writes_but_leases(plane)), await running.metric(PASSES)
        await asyncio.sleep(20)

        async def looked() -> bool | None:
            return True if await running.metric(PASSES) >= passes + 18 else None

        await eventually(looked, what="18 passes")  # it looked, and had nothing to say
        assert writes_but_leases(plane)[before:] == []
        assert running.resident_mib() < 120
        status, _ = await running.get("/healthz")
        assert status == 200


async def test_sigterm_ends_it_with_success_and_not_by_running_out_of_time(plane: ControlPlane) -> None:  # noqa: F811
    async with operator(plane.kubeconfig, "--shutdown", "300") as running:

        async def listed() -> bool | None:
            return True if await running.metric("imageedit_operator_last_resync_timestamp_seconds") else None

        await eventually(listed, what="a first resync")
        running.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(running.process.wait(), timeout=LONG_S) == 0
    assert running.log[-1]["message"] == "stopped"


async def test_one_namespace_is_served_alone(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    ours, other = await new_namespace(kube), await new_namespace(kube)
    async with operator(plane.kubeconfig, "--namespaces", ours):
        await create_resource(kube, other)
        await create_resource(kube, ours)
        await deployments(kube, ours)
        await asyncio.sleep(2)
        assert await kube.list_all(DEPLOYMENTS, other) == []


async def test_one_resource_with_a_deaf_prometheus_does_not_slow_the_others(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
) -> None:
    """Another resource is served while the question to the deaf Prometheus is still open: they do not wait in line."""
    namespace = await new_namespace(kube)
    begun, given_up = 0, 0

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal begun, given_up
        begun += 1
        await reader.read()  # never answers; ends when the operator does not wait any longer
        given_up += 1
        writer.close()

    deaf = await asyncio.start_server(hold, "127.0.0.1", 0)
    metrics = {"prometheus": {"address": f"http://127.0.0.1:{deaf.sockets[0].getsockname()[1]}"}}
    async with deaf, operator(plane.kubeconfig, "--workers", "2", "--namespaces", namespace):
        await create_resource(kube, namespace, "deaf", autoscaling={"maxReplicas": 3, "metrics": metrics})
        served_meanwhile = False
        for attempt in range(ATTEMPTS):  # a busy machine may need longer for the other one than the question lasts
            asked = begun

            async def asks(asked: int = asked) -> bool | None:
                return True if begun > asked else None

            await eventually(asks, what="a question to Prometheus")
            abandoned = given_up
            await create_resource(kube, namespace, f"other-{attempt}")

            async def served(name: str = f"other-{attempt}") -> bool | None:
                found = await kube.list_all(DEPLOYMENTS, namespace, labels=f"imageedit.dev/deployment={name}")
                return True if found and found[0]["spec"]["replicas"] == 1 else None

            await eventually(served, what="the Deployment of the other resource")
            served_meanwhile = given_up == abandoned
            if served_meanwhile:
                break
        assert served_meanwhile
