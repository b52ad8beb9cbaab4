"""The operator killed after each write of a rollout, one after the other: every one of these ends in the same state."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from apiserver.operator_faults import FaultProxy, Write, faulty
from apiserver.operator_process import Operator, operator
from faults.invariants import CHECKS
from faults.scene import Scene, scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import EVENTS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(1500)

MOST_WRITES = 60


class Killer:
    """Kills the operator right after its k-th write, before it learns that it was done."""

    def __init__(self, proxy: FaultProxy) -> None:
        self._left = 0
        self._victim: Operator | None = None
        proxy.on_write = self._count

    def aim(self, victim: Operator, writes: int) -> None:
        """From now on."""
        self._victim, self._left = victim, writes

    def _count(self, _: Write) -> None:
        if self._victim is None:
            return
        self._left -= 1
        if self._left == 0:
            self._victim.process.kill()
            self._victim = None


async def rollouts_killed_one_write_later_each_time(stage: Scene, killer: Killer, kubeconfig: Path) -> int:
    """Rolls, with the operator dying after 1, 2, 3 ... writes and started again, until one rollout ends before."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(operator(kubeconfig, *stage.flags()))
        await stage.complete()
        for writes in range(1, MOST_WRITES):
            victim = running
            killer.aim(victim, writes)
            await stage.roll(f"after-{writes}")
            await stage.complete_unless(victim.ended)
            if victim.process.returncode is None:
                return writes - 1
            running = await stack.enter_async_context(operator(kubeconfig, *stage.flags()))
            await stage.complete()
    raise AssertionError("a rollout has no end of writes")


TEMPLATE = {"metadata": {"labels": {"team": "pictures"}}, "spec": {"hostAliases": [{"ip": "10.0.0.9"}]}}


@pytest.mark.parametrize(
    ("replicas", "cards", "template"),
    [(1, 2, TEMPLATE), (2, 2, {})],
    ids=["one free card, with a template", "no free card"],
)
async def test_a_rollout_ends_the_same_wherever_its_operator_is_killed(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path, *, replicas: int, cards: int, template: dict[str, Any]
) -> None:
    async with scene(kube, replicas=replicas, cards=cards) as stage, faulty(plane) as proxy:
        await stage.create(template=template)
        kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
        points = await rollouts_killed_one_write_later_each_time(stage, Killer(proxy), kubeconfig)
        notes = [item.get("note", "") for item in await kube.list_all(EVENTS, stage.namespace)]
    assert [note for note in notes if "was deleted" in note] == [], "nobody but the operator deleted anything"
    CHECKS["an operator killed after a write"] += points
    assert points >= 5, "a rollout of so few writes was not one"
