"""Two operator processes and one Lease on a real apiserver: who acts, and how fast the other one follows."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from apiserver.operator_faults import faulty
from apiserver.operator_plane import (
    client,
    create_resource,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    writes_but_leases,
)
from apiserver.operator_pods import deployments, status_of
from apiserver.operator_process import Operator, at_rest, operator
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, LEASES, SERVICES
from imageedit_operator.kube.lease import LeaseFile
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)
PATIENT = ("--lease-duration", "600", "--renew-deadline", "500")
"""Only a Lease that was given back can be had with these."""
HASTY = ("--lease-duration", "4", "--renew-deadline", "3", "--retry-period", "0.5")


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


def flags(namespace: str, *others: str) -> tuple[str, ...]:
    """An operator of one namespace, with its Lease in there."""
    return ("--namespaces", namespace, "--lease-namespace", namespace, *others)


@asynccontextmanager
async def leader_and_standby(
    plane: ControlPlane,  # noqa: F811
    namespace: str,
    *others: str,
) -> AsyncIterator[tuple[Operator, Operator]]:
    """Two operators, of which the first one acts."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(operator(plane.kubeconfig, *flags(namespace, *others)))
        await first.becomes("leader")
        second = await stack.enter_async_context(operator(plane.kubeconfig, *flags(namespace, *others)))
        await second.becomes("standby")
        yield first, second


async def test_one_acts_and_the_other_is_healthy_and_waits(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with leader_and_standby(plane, namespace) as (first, second):
        await create_resource(kube, namespace)
        await deployments(kube, namespace)
        assert [(await one.get("/healthz"))[0] for one in (first, second)] == [200, 200]
        assert [await one.metric("imageedit_operator_leading") for one in (first, second)] == [1, 0]
        assert await second.metric("imageedit_operator_reconcile_total") == 0


async def test_a_killed_leader_is_followed(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with leader_and_standby(plane, namespace) as (first, second):
        first.process.kill()
        await create_resource(kube, namespace)
        await deployments(kube, namespace)
        await second.becomes("leader")
        assert (await kube.get(LEASES, namespace, "imageedit-operator"))["spec"]["leaseTransitions"] == 1


async def test_a_leader_that_is_asked_to_stop_gives_the_lease_back(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with leader_and_standby(plane, namespace, *PATIENT) as (first, second):
        first.process.send_signal(signal.SIGTERM)
        await create_resource(kube, namespace)
        await deployments(kube, namespace)
        await second.becomes("leader")
        assert await first.process.wait() == 0


async def test_a_standby_that_is_asked_to_stop_leaves_the_lease_alone(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    async with leader_and_standby(plane, namespace, *PATIENT) as (first, second):
        held = (await kube.get(LEASES, namespace, "imageedit-operator"))["spec"]["holderIdentity"]
        second.process.send_signal(signal.SIGTERM)
        assert await second.process.wait() == 0
        assert await first.role() == "leader"
        assert (await kube.get(LEASES, namespace, "imageedit-operator"))["spec"]["holderIdentity"] == held


async def test_a_frozen_leader_writes_nothing_when_it_wakes_up_and_another_one_acts(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    async with (
        faulty(plane) as proxy,
        operator(proxy.write_kubeconfig(tmp_path / "kubeconfig"), *flags(namespace, *HASTY)) as first,
    ):
        await first.becomes("leader")
        await create_resource(kube, namespace)
        await deployments(kube, namespace)
        async with operator(plane.kubeconfig, *flags(namespace, *HASTY)) as second:
            await second.becomes("standby")
            first.process.send_signal(signal.SIGSTOP)
            await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", {"spec": {"replicas": 2}})  # work for it
            await second.becomes("leader")
            before = len(proxy.written)
            first.process.send_signal(signal.SIGCONT)
            await first.becomes("standby")
            stored = [write for write in proxy.written[before:] if write.status < 400]
            assert stored == []
            await second.becomes("leader")


async def test_an_outage_that_costs_the_lease_ends_nobody(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
    tmp_path: Path,
) -> None:
    namespace = await new_namespace(kube)
    async with (
        faulty(plane) as proxy,
        operator(proxy.write_kubeconfig(tmp_path / "kubeconfig"), *flags(namespace, *HASTY)) as running,
    ):
        await running.becomes("leader")
        await proxy.down()
        await running.becomes("standby")
        assert await running.metric("imageedit_operator_workqueue_depth") == 0
        await create_resource(kube, namespace)
        await proxy.up()
        await deployments(kube, namespace)
        assert running.process.returncode is None, running.messages()
        await running.becomes("leader")


async def test_two_that_act_at_once_end_in_the_same_state_and_do_not_fight(
    plane: ControlPlane,  # noqa: F811
    kube: KubeClient,
) -> None:
    namespace = await new_namespace(kube)
    forced = flags(namespace, "--leader-elect", "off", "--resync", "2")
    async with operator(plane.kubeconfig, *forced) as first, operator(plane.kubeconfig, *forced) as second:
        for number in range(4):
            await create_resource(kube, namespace, f"edit-{number}")
        await deployments(kube, namespace, count=4)
        await at_rest(plane, first, passes=12)
        await at_rest(plane, second, passes=12)
        for number in range(4):
            await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, f"edit-{number}", {"spec": {"replicas": 3}})
        await deployments(kube, namespace, count=4, replicas=3)
        await at_rest(plane, first, passes=12)
        written = len(writes_but_leases(plane))
        await at_rest(plane, second, passes=24)
        assert len(writes_but_leases(plane)) == written
        for number in range(4):
            status = await status_of(kube, namespace, f"edit-{number}")
            assert (status["observedGeneration"], status["desiredReplicas"]) == (2, 3)
    assert len(await kube.list_all(SERVICES, namespace)) == len(await kube.list_all(DEPLOYMENTS, namespace)) == 4


# --- the Lease itself


async def test_of_two_that_take_the_same_lease_one_is_refused(kube: KubeClient) -> None:
    namespace = await new_namespace(kube)
    lease = LeaseFile(kube, namespace=namespace, name="lease", clock=lambda: 1796007600.25)
    assert await lease.read() is None
    first = await lease.create("a", 15.0)
    with pytest.raises(ApiError) as late:
        await lease.create("b", 15.0)
    assert late.value.conflict
    taken = await lease.take(first, "b", 15.0)
    with pytest.raises(ApiError) as lost:
        await lease.renew(first, 15.0)
    assert lost.value.conflict
    assert (taken.holder, taken.transitions, taken.lease_s) == ("b", 1, 15.0)
    released = await lease.release(taken)
    assert (released.holder, await lease.read()) == ("", released)


async def test_every_renewal_within_one_second_is_a_write(kube: KubeClient) -> None:
    namespace = await new_namespace(kube)
    ticks = iter(range(10))
    lease = LeaseFile(kube, namespace=namespace, name="lease", clock=lambda: 1796007600.0 + next(ticks) * 1e-5)
    first = await lease.create("a", 15.0)
    second = await lease.renew(first, 15.0)
    assert first.version != second.version
