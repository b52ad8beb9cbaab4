"""Watches that fail in the middle of a rollout: it ends all the same, and the operator lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from apiserver.operator_faults import GONE, LEADER_CHANGED, FaultProxy
from apiserver.operator_plane import eventually
from apiserver.operator_process import behind_proxy
from faults.scene import NAME, Scene, scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.wake_ups import WATCHED
from localcluster.controlplane import ControlPlane

WATCHES_S = 30.0
"""Longer than kopf may take to end, shorter than it takes to find a watch deaf."""
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {}}}


async def expired_in_the_stream(proxy: FaultProxy) -> None:
    assert proxy.inject(GONE) > 0


async def expired_by_status(proxy: FaultProxy) -> None:
    proxy.refuse_watches = 410
    assert proxy.inject(BOOKMARK) > 0
    await asyncio.sleep(3)
    proxy.refuse_watches = 0


async def an_error_event(proxy: FaultProxy) -> None:
    assert proxy.inject(LEADER_CHANGED) > 0


async def an_error_event_in_one_watch_alone(proxy: FaultProxy) -> None:
    """The others are open and well when kopf gives up, and must not outlive it."""
    assert proxy.inject(LEADER_CHANGED, watches=1) == len(WATCHED)


async def silence(proxy: FaultProxy) -> None:
    proxy.muted = True


async def cut_in_the_middle_of_an_object(proxy: FaultProxy) -> None:
    assert proxy.cut_in_the_middle() > 0


async def cut_again_and_again(proxy: FaultProxy) -> None:
    for _ in range(5):
        proxy.cut_in_the_middle()
        await asyncio.sleep(1)


@pytest.mark.parametrize(
    "fault",
    [
        expired_in_the_stream,
        expired_by_status,
        an_error_event,
        an_error_event_in_one_watch_alone,
        silence,
        cut_in_the_middle_of_an_object,
        cut_again_and_again,
    ],
    ids=lambda fault: fault.__name__,
)
async def test_a_rollout_ends_although_the_watches_fail(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path, fault: Callable[[FaultProxy], Awaitable[None]]
) -> None:
    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags()) as (proxy, running):
        await stage.create()
        await stage.complete()
        await stage.roll("next")
        await fault(proxy)
        await stage.complete()
        proxy.muted = False
        await stage.roll("last")  # whatever it was has left nothing behind
        await stage.complete()
        assert running.process.returncode is None, running.messages()
        assert (await running.get("/healthz"))[0] == 200

        async def all_open() -> bool | None:
            return True if proxy.open_watches() == len(WATCHED) else None

        await eventually(all_open, within_s=WATCHES_S, what="open watches")


async def test_a_watch_that_is_open_and_deaf_is_started_anew(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags()) as (proxy, running):
        await stage.create()
        await stage.complete()
        proxy.muted = True
        await stage.roll("next")
        await stage.complete()  # the resync sees what the watch does not tell

        async def restarted() -> bool | None:
            return True if await running.metric("imageedit_operator_watch_restarts_total") else None

        await eventually(restarted, within_s=240, what="a restart of the watches")
        proxy.muted = False
        await stage.roll("last")
        await stage.complete()


async def test_what_was_deleted_while_the_watches_were_deaf_is_made_again(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags()) as (proxy, _):
        await stage.create()
        await stage.complete()
        stage.observer.harmed = True  # what is deleted by hand takes its pod with it
        proxy.muted = True
        (deployment,) = await kube.list_all(DEPLOYMENTS, stage.namespace)
        await kube.delete(
            DEPLOYMENTS, stage.namespace, deployment["metadata"]["name"], uid=deployment["metadata"]["uid"]
        )
        proxy.inject(GONE)
        proxy.muted = False
        await _replaced(stage, deployment["metadata"]["uid"])
        await stage.complete()


async def test_a_resource_deleted_while_the_watches_were_deaf_is_forgotten(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags()) as (proxy, running):
        await stage.create()
        await stage.complete()
        stage.observer.harmed = True
        proxy.muted = True
        stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, NAME)
        await kube.delete(IMAGE_EDIT_DEPLOYMENTS, stage.namespace, NAME, uid=stored["metadata"]["uid"])
        proxy.inject(GONE)
        proxy.muted = False

        async def forgotten() -> bool | None:
            _, text = await running.get("/metrics")
            return True if f'imageedit_deployment="{NAME}"' not in text else None

        await eventually(forgotten, what="the end of the series of a resource that was deleted unseen")


async def _replaced(stage: Scene, uid: str) -> None:
    async def look() -> bool | None:
        found = await stage.kube.list_all(DEPLOYMENTS, stage.namespace)
        return True if found and found[0]["metadata"]["uid"] != uid else None

    await eventually(look, what="another Deployment")
