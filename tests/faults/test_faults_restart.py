"""The API server itself is killed in the middle of a rollout and started again on its data."""

from __future__ import annotations

import asyncio

from apiserver.operator_plane import eventually
from apiserver.operator_process import operator
from faults.scene import scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS
from localcluster.controlplane import ControlPlane, kill_apiserver, revive_apiserver

AWAY_S = 3.0


async def test_a_rollout_ends_although_the_apiserver_was_restarted_in_its_middle(
    plane: ControlPlane, kube: KubeClient
) -> None:
    async with scene(kube) as stage, operator(plane.kubeconfig, *stage.flags()) as running:
        await stage.create()
        await stage.complete()
        await stage.roll("next")

        async def under_way() -> bool | None:
            return True if len(await kube.list_all(PODS, stage.namespace)) == 2 else None

        await eventually(under_way, what="the middle of the rollout")
        ended = await asyncio.to_thread(kill_apiserver, plane)
        await asyncio.sleep(AWAY_S)
        await asyncio.to_thread(revive_apiserver, plane, ended)
        await stage.complete()
        await stage.roll("last")  # the watches are open again, or this would take a resync
        await stage.complete()
        assert "Unreachable" in running.messages(), "it did not notice"
        assert (await running.get("/healthz"))[0] == 200
        assert running.process.returncode is None, running.messages()
