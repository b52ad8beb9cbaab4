"""What dies comes back by itself, and the client gets an answer or a clear error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.containers import kill_container, kill_worker
from support.kubectl import Kubectl, condition
from support.load import Tally
from support.resources import Resource
from support.system import OPERATOR_NAMESPACE
from support.watching import PodWatch, container_id, gate_of, is_ready

pytestmark = pytest.mark.timeout(240)


def test_a_restarted_container_is_cold_until_its_own_process_is_proven_warm(resource: Resource) -> None:
    resource.create(real=True, replicas=1)
    resource.wait_complete()
    first = resource.only_container()
    assert first in gate_of(resource.only_pod())["message"]

    kill_container(first)
    resource.wait_until("another container", lambda: resource.only_container() not in ("", first))
    seen_closed = []

    def warm_again() -> bool:
        pod = resource.only_pod()
        gate = gate_of(pod)
        seen_closed.append(gate["status"] == "False" and gate["reason"] == "ContainerRestarted")
        # Whatever the gate says meanwhile: a pod whose gate was proven for the dead container is never Ready.
        assert not (is_ready(pod) and first in gate["message"])
        return is_ready(pod) and container_id(pod) in gate["message"]

    resource.wait_until("the new container to be proven warm", warm_again)
    assert any(seen_closed)
    assert resource.only_container() != first


def test_a_worker_killed_in_the_middle_of_an_edit_gives_an_error_and_comes_back(resource: Resource) -> None:
    resource.create(replicas=1)
    resource.wait_complete()

    async def kill_mid_edit() -> Tally:
        async with resource.load(clients=2) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 2)
            kill_worker(resource.only_container())
            await asyncio.to_thread(resource.wait_until, "the error", lambda: load.tally.lost_total > 0)
            answered = load.tally.answered
            await asyncio.to_thread(resource.wait_until, "answers again", lambda: load.tally.answered > answered + 2)
        return load.tally

    tally = asyncio.run(kill_mid_edit())

    # The killed edit is answered with an error object that says so; no connection is just cut.
    assert set(tally.lost) == {"503 worker_lost"}, tally


def test_killed_operators_come_back_and_touch_no_pod(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    before = resource.only_pod()["metadata"]["uid"]
    for operator in operator_pods(kubectl):
        kill_container(container_id(operator))
    resource.patch({"replicas": 2})
    resource.wait_complete()

    restarts = [pod["status"]["containerStatuses"][0]["restartCount"] for pod in operator_pods(kubectl)]
    assert restarts
    assert min(restarts) > 0
    assert before in {pod["metadata"]["uid"] for pod in resource.pods()}
    assert resource.read()["status"]["readyReplicas"] == 2


def test_a_deleted_pod_finishes_what_it_accepted_and_is_replaced(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=2)
    resource.wait_complete()

    async def delete_one() -> Tally:
        async with resource.load(clients=4) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 4)
            victim = resource.pods()[0]["metadata"]["name"]
            kubectl.run("delete", "pod", victim, "-n", resource.namespace, "--wait=false")
            gone = lambda: victim not in {pod["metadata"]["name"] for pod in resource.pods()}  # noqa: E731
            await asyncio.to_thread(resource.wait_until, "the pod to leave", gone)
            await asyncio.to_thread(resource.wait_complete)
        return load.tally

    with PodWatch(kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(delete_one())

    assert tally.lost_total == 0, tally
    assert min(seen.ready) >= 1


def test_a_missing_model_is_named_and_nothing_else_suffers(
    resource: Resource, other_resource: Resource, kubectl: Kubectl
) -> None:
    resource.create(replicas=1)
    resource.wait_complete()

    other_resource.create(real=True, replicas=1, source={"hostPath": {"path": "/usr/share"}})
    broken = other_resource.wait_condition("Ready", status="False", reason="ModelMissing")

    assert "spec.model.source" in broken["message"]
    assert condition(other_resource.read(), "Available")["status"] == "False"
    assert condition(resource.read(), "Ready")["status"] == "True"
    assert asyncio.run(one_edit(resource)).answered > 0


async def one_edit(resource: Resource) -> Tally:
    """Edit until one was answered."""
    async with resource.load(clients=1) as load:
        await asyncio.to_thread(resource.wait_until, "an answer", lambda: load.tally.answered > 0)
    return load.tally


def operator_pods(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The operator's pods."""
    selector = "app.kubernetes.io/name=imageedit-operator"
    return list(kubectl.get("pods", "-n", OPERATOR_NAMESPACE, "-l", selector)["items"])
