"""kopf against a real apiserver: what wakes us, what it asks for, and what it survives."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from apiserver.operator_faults import GONE, LEADER_CHANGED, FaultProxy, faulty
from apiserver.operator_plane import (
    LONG_S,
    audited,
    client,
    create_resource,
    deployment,
    eventually,
    is_write,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    pod,
    service,
)
from imageedit_operator.kopf_setup import CHUNK, Scope
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES
from imageedit_operator.wake_ups import SELECTOR, WATCHED, Told
from imageedit_operator.watching import WatchEnded, watch
from imageedit_operator.workqueue import Key
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)
OURS = {"app.kubernetes.io/managed-by": "imageedit-operator", "imageedit.dev/deployment": "edit"}


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin, past the proxy."""
    async with client(plane) as connected:
        yield connected


@pytest.fixture
async def proxy(plane: ControlPlane) -> AsyncIterator[FaultProxy]:  # noqa: F811
    """A proxy that can misbehave."""
    async with faulty(plane) as started:
        yield started


@dataclass(kw_only=True)
class Watching:
    """A run of the watches and the keys that it gave."""

    keys: list[Key] = field(default_factory=list)
    told: list[Key] = field(default_factory=list)
    """Every event, news or not."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    run: asyncio.Task[None] | None = None

    def hear(self, told: Told) -> None:
        """One event."""
        self.told.append(told.key)
        if told.delay_s is not None:
            self.keys.append(told.key)

    async def woken(self, key: Key) -> None:
        """Waits for this key, and forgets all keys."""

        async def look() -> bool | None:
            return True if key in self.keys else None

        await eventually(look, what=f"a wake-up of {key}")
        self.keys.clear()


@asynccontextmanager
async def watching(kubeconfig: Path, *namespaces: str) -> AsyncIterator[Watching]:
    """The watches, stopped at the end."""
    running = Watching()
    scope = Scope(namespaces=namespaces, kubeconfig=str(kubeconfig))
    running.run = asyncio.create_task(watch(scope, running.hear, running.stop))
    try:
        yield running
    finally:
        running.stop.set()
        await asyncio.wait({running.run}, timeout=LONG_S)
        if running.run.done():
            running.run.exception()  # seen here by tests that look for none


@asynccontextmanager
async def through(proxy: FaultProxy, tmp_path: Path, *namespaces: str) -> AsyncIterator[Watching]:
    """The watches through the proxy, all of them open."""
    async with watching(proxy.write_kubeconfig(tmp_path / "kubeconfig"), *namespaces) as running:
        await all_open(proxy)
        yield running


async def all_open(proxy: FaultProxy) -> None:
    """Waits until all watches stream."""

    async def look() -> bool | None:
        return True if proxy.open_watches() == len(WATCHED) else None

    await eventually(look, what="open watches")


async def test_a_new_resource_and_its_children_wake_it(proxy: FaultProxy, kube: KubeClient, tmp_path: Path) -> None:
    namespace = await new_namespace(kube)
    key = Key(namespace, "edit")
    async with through(proxy, tmp_path) as running:
        await create_resource(kube, namespace)
        await running.woken(key)
        await kube.create(DEPLOYMENTS, namespace, deployment("d", labels=OURS))
        await running.woken(key)
        await kube.create(PODS, namespace, pod("p", labels=OURS))
        await running.woken(key)
        await kube.patch(PODS, namespace, "p", {"status": {"phase": "Running"}}, subresource="status")
        await running.woken(key)
        await kube.create(SERVICES, namespace, service("edit", labels=OURS))
        await running.woken(key)
        await kube.patch(SERVICES, namespace, "edit", {"spec": {"selector": {"app": "other"}}})
        await running.woken(key)
        await kube.patch(SERVICES, namespace, "edit", {"metadata": {"labels": None}})
        await running.woken(key)
        stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
        await kube.delete(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", uid=stored["metadata"]["uid"])
        await running.woken(key)


async def test_foreign_pods_and_services_are_not_even_sent(proxy: FaultProxy, kube: KubeClient, tmp_path: Path) -> None:
    namespace = await new_namespace(kube)
    async with through(proxy, tmp_path) as running:
        await kube.create(PODS, namespace, pod("foreign", labels={"app": "x"}))
        await kube.create(SERVICES, namespace, service("foreign", labels={"app": "x"}))
        await create_resource(kube, namespace, "last")
        await running.woken(Key(namespace, "last"))
    asked = [query for query in proxy.listed if query["path"].endswith(("/pods", "/deployments", "/services"))]
    assert len(asked) >= 6  # a list and a watch of each
    assert {query.get("labelSelector") for query in asked} == {SELECTOR}


async def test_no_list_is_asked_for_as_a_whole(proxy: FaultProxy, tmp_path: Path) -> None:
    """The objects of a thousand resources are 100 MB once they are parsed."""
    async with through(proxy, tmp_path):
        asked = [query for query in proxy.listed if "watch" not in query]
    lists = [query for query in asked if query["path"].endswith(tuple(f"/{kind.plural}" for kind in WATCHED))]
    assert len(lists) == len(WATCHED)
    assert {query.get("limit") for query in lists} == {str(CHUNK)}


async def test_one_namespace_sees_nothing_of_another(proxy: FaultProxy, kube: KubeClient, tmp_path: Path) -> None:
    ours, other = await new_namespace(kube), await new_namespace(kube)
    async with through(proxy, tmp_path, ours) as running:
        await create_resource(kube, other)
        await create_resource(kube, ours)

        async def look() -> bool | None:
            return True if running.keys else None

        await eventually(look, what="a wake-up")
        await asyncio.sleep(0.5)  # the other one was created before, and would have woken us by now
        assert set(running.keys) == {Key(ours, "edit")}
    paths = {query["path"] for query in proxy.listed if "limit" in query or "watch" in query}
    assert all(f"/namespaces/{ours}/" in path for path in paths)


async def test_an_expired_version_in_the_stream_lists_everything_again(
    proxy: FaultProxy, kube: KubeClient, tmp_path: Path
) -> None:
    namespace = await new_namespace(kube)
    await create_resource(kube, namespace)
    async with through(proxy, tmp_path) as running:
        await running.woken(Key(namespace, "edit"))
        await all_open(proxy)
        running.told.clear()
        assert proxy.inject(GONE) == len(WATCHED)

        async def listed() -> bool | None:
            return True if Key(namespace, "edit") in running.told else None

        await eventually(listed, what="a second list")
        assert running.keys == []  # it is as it was: nothing to look at
        await all_open(proxy)
        await create_resource(kube, namespace, "after")
        await running.woken(Key(namespace, "after"))


async def test_an_outage_of_the_apiserver_is_survived(proxy: FaultProxy, kube: KubeClient, tmp_path: Path) -> None:
    namespace = await new_namespace(kube)
    async with through(proxy, tmp_path) as running:
        await proxy.down()
        await create_resource(kube, namespace, "meanwhile")
        await asyncio.sleep(3.0)
        await proxy.up()
        await running.woken(Key(namespace, "meanwhile"))
        assert running.run is not None
        assert not running.run.done()


@pytest.mark.parametrize("fault", ["leader changed", "410 by status"])
async def test_what_kopf_does_not_survive_ends_the_run_with_its_reason(
    proxy: FaultProxy, tmp_path: Path, fault: str
) -> None:
    async with through(proxy, tmp_path) as running:
        if fault == "leader changed":
            proxy.inject(LEADER_CHANGED)
        else:
            proxy.refuse_watches = 410
            proxy.inject({"type": "BOOKMARK", "object": {"metadata": {}}})
        assert running.run is not None
        with pytest.raises(WatchEnded):
            await asyncio.wait_for(running.run, timeout=LONG_S)


async def test_a_failed_run_leaves_nothing_that_asyncio_complains_of(
    proxy: FaultProxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with through(proxy, tmp_path) as running:
        proxy.inject(LEADER_CHANGED)
        assert running.run is not None
        await asyncio.wait({running.run}, timeout=LONG_S)
        assert running.run.done()
    gc.collect()
    assert [
        record.getMessage() for record in caplog.records if record.name == "asyncio" and record.levelname == "ERROR"
    ] == []


async def test_a_run_after_a_failed_one_works(proxy: FaultProxy, kube: KubeClient, tmp_path: Path) -> None:
    namespace = await new_namespace(kube)
    async with through(proxy, tmp_path) as first:
        proxy.inject(LEADER_CHANGED)
        assert first.run is not None
        await asyncio.wait({first.run}, timeout=LONG_S)
        assert first.run.done()
    async with through(proxy, tmp_path) as second:
        await create_resource(kube, namespace)
        await second.woken(Key(namespace, "edit"))


async def test_the_watches_end_when_asked_and_leave_no_thread(proxy: FaultProxy, tmp_path: Path) -> None:
    async with through(proxy, tmp_path) as running:
        running.stop.set()
        assert running.run is not None
        await asyncio.wait_for(running.run, timeout=LONG_S)

        async def gone() -> bool | None:
            return None if any(thread.name == "kopf" for thread in threading.enumerate()) else True

        await eventually(gone, what="the end of kopf's thread")


async def test_kopf_writes_nothing(plane: ControlPlane, kube: KubeClient) -> None:  # noqa: F811
    namespace = await new_namespace(kube)
    await create_resource(kube, namespace)
    async with watching(plane.kubeconfig) as running:
        await running.woken(Key(namespace, "edit"))
        await asyncio.sleep(2.0)
    requests = [event for event in audited(plane) if event.get("userAgent", "").startswith("kopf/")]
    assert requests
    assert [(event["verb"], event["requestURI"]) for event in requests if is_write(event)] == []
    stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
    assert "annotations" not in stored["metadata"]
    assert "finalizers" not in stored["metadata"]
