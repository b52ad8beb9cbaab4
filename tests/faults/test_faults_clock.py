"""The clock of the operator's machine is set a day forward, then an hour back, in the middle of a rollout.

Linux gives a process no clock of its own, so the interpreter's `time.time` is moved before the operator is loaded.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from apiserver.operator_plane import ROOT, eventually
from apiserver.operator_process import ENVIRONMENT, operator
from faults.scene import scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS
from localcluster.controlplane import ControlPlane

DAY_S, HOUR_S = 86_400, 3600
STANDS_S = 6.0
MOVED = """
import time
from pathlib import Path

real, offset = time.time, Path(__file__).with_name("offset")
time.time = lambda: real() + float(offset.read_text() or 0)
"""


def movable_clock(folder: Path) -> tuple[Path, dict[str, str]]:
    """A file of seconds that an interpreter with this environment adds to the time."""
    (folder / "sitecustomize.py").write_text(MOVED)
    (folder / "offset").write_text("0")
    return folder / "offset", {**ENVIRONMENT, "PYTHONPATH": f"{folder}:{ROOT / 'operator/src'}"}


async def test_a_clock_that_is_set_neither_cuts_a_drain_short_nor_stops_a_rollout(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    offset, env = movable_clock(tmp_path)
    async with scene(kube) as stage, operator(plane.kubeconfig, *stage.flags(), env=env) as running:
        await stage.create()
        await stage.complete()
        (old,) = stage.node.servers.values()
        old.running += 1
        await stage.roll("next")

        async def drains() -> bool | None:
            return True if old.drained_with else None

        await eventually(drains, what="the drain of the old pod")
        offset.write_text(str(DAY_S))
        await asyncio.sleep(STANDS_S)
        pods = await kube.list_all(PODS, stage.namespace)
        assert len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) == 2, (
            "it still works on an edit"
        )
        offset.write_text(str(-HOUR_S))
        old.running -= 1
        await stage.complete()
        await stage.roll("last")
        await stage.complete()
        assert running.process.returncode is None, running.messages()
