"""`make bench-operator`: take every figure, print it, write build/bench/operator.json, end with 1 when one is missed.

`--count 50` does it with fewer resources, for a look; only what runs with 1,000 counts. Needs root, for a network
namespace of the run's own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from apiserver.operator_process import operator
from bench.figures import Figure, machine, write
from bench.operator import fleet, isolation, objects, planning, reaction, rest, rolling, world
from localcluster import binaries
from localcluster.progress import console

OUTPUT = Path(__file__).resolve().parents[3] / "build" / "bench" / "operator.json"
FLAGS = ("--http-port", "18080")
SPARE_CARDS = 64
REQUESTS = 500
LOAD_S = 60.0


def tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


async def with_many(count: int, *, idle_s: float, samples: int) -> AsyncIterator[Figure]:
    """Everything that is measured among a thousand resources."""
    async with world.world(cards=2 * count + samples + SPARE_CARDS) as here:
        async with operator(here.operator_kubeconfig, *FLAGS) as first:
            tell(f"{count} bare Deployments ...")
            bare_s = await fleet.deployments_s(here, count, tell)
            tell(f"{count} resources ...")
            before = await rest.work(first)
            ours_s = await fleet.resources_s(here, count, tell)
            for figure in fleet.start_figures(count, bare_s, ours_s):
                yield figure
            for figure in rest.start_work(before, await rest.work(first), count=count):
                yield figure
            if ours_s is None:
                return  # nothing of what follows can be measured beside resources that still start
            await rest.at_rest(here, first)
            tell(f"at rest, {idle_s:.0f} s ...")
            for figure in await rest.idle(here, first, seconds=idle_s):
                yield figure
            tell("reaction ...")
            yield await reaction.reaction(here, count=count, samples=samples)
            await rest.at_rest(here, first)
        tell("restart ...")
        began_s = time.monotonic()
        async with operator(here.operator_kubeconfig, *FLAGS) as second:
            yield await rest.caught_up_s(second, began_s=began_s, count=count)


async def without_operator(count: int) -> AsyncIterator[Figure]:
    """What the objects cost; in a world of its own, which the operator's would have to look at."""
    async with world.world(cards=2 * count + SPARE_CARDS, warms=True) as here:
        tell(f"{count} bare Deployments ...")
        bare_s = await fleet.deployments_s(here, count, tell)
        tell(f"the objects of {count} resources ...")
        for figure in objects.figures(count, bare_s, await objects.objects_s(here, count, tell)):
            yield figure


async def with_real_servers() -> AsyncIterator[Figure]:
    """What needs pods that serve; in a world of its own, since the machine has two cores."""
    async with world.world(cards=0) as here:
        tell("rollouts under load ...")
        async for figure in rolling.rollout_lost(here, least=REQUESTS):
            yield figure
        tell(f"a rollout on the only card, with {LOAD_S:g} s of load ...")
        yield await rolling.single_card_outage(here, load_s=LOAD_S)


async def take(count: int, *, idle_s: float, samples: int, parts: list[str], taken: list[Figure]) -> None:
    """All figures, each printed as soon as it is known."""

    def keep(figure: Figure) -> None:
        taken.append(figure)
        print(figure, flush=True)

    if "plan" in parts:
        keep(planning.plan_p99())
    if "objects" in parts:
        async for figure in without_operator(count):
            keep(figure)
    if "many" in parts:
        async for figure in with_many(count, idle_s=idle_s, samples=samples):
            keep(figure)
    if "rollouts" in parts:
        async for figure in with_real_servers():
            keep(figure)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="resources (1000)")
    parser.add_argument("--idle", type=float, default=180, help="seconds at rest (180)")
    parser.add_argument("--samples", type=int, default=40, help="changes whose reaction is timed (40)")
    parser.add_argument("--only", default="plan,objects,many,rollouts", help="parts of these four")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    asked = parser.parse_args()
    if not isolation.inside():
        if os.geteuid() != 0:
            print(
                "error: root is needed, for a network namespace of the run's own: sudo make bench-operator",
                file=sys.stderr,
            )
            return 1
        binaries.ensure(world.PROGRAMS, console)  # from the network, which the namespace has not
        isolation.enter("bench.operator")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ctrl-C does: what runs is stopped on the way out
    facts, taken = machine("aiohttp", "kopf", "kubernetes"), list[Figure]()
    tell(f"machine: {facts}")
    began_s = time.monotonic()
    try:
        parts = asked.only.split(",")
        asyncio.run(take(asked.count, idle_s=asked.idle, samples=asked.samples, parts=parts, taken=taken))
    finally:
        facts["load_average_at_the_end"] = [round(load, 2) for load in os.getloadavg()]
        write(asked.output, facts, taken, resources=asked.count)
    missed = [figure.name for figure in taken if not figure.passed]
    tell(f"{len(taken)} figures in {time.monotonic() - began_s:.0f} s, {len(missed)} missed; see {asked.output}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
