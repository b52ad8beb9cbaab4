"""The operator beside a thousand resources that need nothing: its writes, processor time, memory and restart."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from apiserver.operator_process import PASSES, Operator
from bench.figures import AT_MOST, Figure
from bench.operator.world import World

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
QUIET_S = 10.0
LONGEST_S = 240.0
CAUGHT_UP_LONGEST_S = 120.0


def processor_s(pid: int) -> float:
    """Seconds of processor time, user and system, that the process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


async def at_rest(world: World, operator: Operator) -> None:
    """Until nothing was written for a while and no resource waits for a worker."""
    end_s = time.monotonic() + LONGEST_S
    before = -1
    while True:
        written = len(world.writes())
        if written == before and not await operator.metric("imageedit_operator_workqueue_depth"):
            return
        if time.monotonic() > end_s:
            raise TimeoutError(f"the operator still writes after {LONGEST_S:.0f} s: {world.writes()[-1]}")
        before = written
        await asyncio.sleep(QUIET_S)


async def work(operator: Operator) -> tuple[float, float, float]:
    """Passes, requests and seconds of processor time of the process so far."""
    requests = await operator.metric("imageedit_operator_api_requests_total")
    return await operator.metric(PASSES), requests, processor_s(operator.process.pid)


def start_work(before: Sequence[float], after: Sequence[float], *, count: int) -> list[Figure]:
    """What the start of each resource took: figures that a busy machine hardly changes."""
    passes, requests, seconds = ((later - earlier) / count for earlier, later in zip(before, after, strict=True))
    how = "of the operator for each resource, from the first create until all are Ready"
    return [
        Figure(name="start_passes", value=round(passes, 2), how=f"passes {how}"),
        Figure(name="start_requests", value=round(requests, 2), how=f"requests but the watches' {how}"),
        Figure(name="start_cpu_ms", value=round(1000 * seconds, 1), how=f"processor time {how}"),
    ]


async def idle(world: World, operator: Operator, *, seconds: float) -> list[Figure]:
    """What it takes when nothing happens."""
    since, passes = datetime.now(UTC).isoformat(), await operator.metric(PASSES)
    began_s, taken_s = time.monotonic(), processor_s(operator.process.pid)
    await asyncio.sleep(seconds)
    fraction = (processor_s(operator.process.pid) - taken_s) / (time.monotonic() - began_s)
    looked = await operator.metric(PASSES) - passes
    how = f"in {seconds:.0f} s with every resource Ready; {looked:.0f} passes were made"
    return [
        Figure(
            name="idle_writes",
            value=len(world.writes(since)),
            target=(AT_MOST, 0),
            how=f"audited writes but the Lease's, {how}",
        ),
        Figure(
            name="idle_cpu_fraction",
            value=round(fraction, 4),
            target=(AT_MOST, 0.02),
            how=f"user and system time of the process by wall time, {how}",
        ),
        Figure(
            name="rss_mb",
            value=round(operator.resident_mib(), 1),
            target=(AT_MOST, 200),
            how="resident MiB of the process after that",
        ),
    ]


async def caught_up_s(operator: Operator, *, began_s: float, count: int) -> Figure:
    """From the start of a new process until it has looked at every resource and none waits."""
    while True:
        seconds = time.monotonic() - began_s
        done = await operator.metric(PASSES)
        if done >= count and not await operator.metric("imageedit_operator_workqueue_depth"):
            break
        if seconds > CAUGHT_UP_LONGEST_S:
            return _restart(None, f"{done:.0f} of {count} passes after {seconds:.0f} s")
        await asyncio.sleep(0.2)
    return _restart(round(seconds, 2), f"{done:.0f} passes, {operator.resident_mib():.0f} MiB then")


def _restart(seconds: float | None, seen: str) -> Figure:
    how = f"from exec of a new process, the old one stopped by SIGTERM, until as many passes as resources; {seen}"
    return Figure(name="restart_to_caught_up_s", value=seconds, target=(AT_MOST, 15), how=how)
