"""Half as much again as the slot can do, from clients that give up and try again: what gets done, and what is after it.

Clients come at random times whatever the server does (an open loop), first at 70 % of what the slot can do, then at
150 %, then at 70 % again. Goodput is what users got in the middle part, as a share of what the slot could do; an answer
that came after its client had given up is none.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.figures import AT_LEAST, AT_MOST, Figure, median
from bench.server import programs
from bench.server.busy import edit_of
from bench.server.patience import Wanted, wanted
from bench.server.programs import Program
from imageedit_server.loadtest.asking import Asking

EDIT_S = 1.0
# 4.5 edits, as 10 s are for edits of 2.2 s.
PATIENCE_S = 4.5
BASE, OVERLOAD = 0.7, 1.5
BACK_TO_NORMAL_S = 60.0
NORMAL_FOR_S = 10.0
SEED = 7


@dataclass(frozen=True, kw_only=True)
class Result:
    """The share of the slot's capacity that users got, tries a request, and seconds until normal (None: not seen)."""

    goodput: float
    tries: float
    recovery_s: float | None


def figures(*, before_s: float, during_s: float, after_s: float) -> Iterator[Figure]:
    """Ours, then the plain queue, with the same clients at the same times."""
    how = (
        f"slot of {EDIT_S:g} s, {before_s:g} s at {BASE:.0%}, {during_s:g} s at {OVERLOAD:.0%},"
        f" {after_s:g} s at {BASE:.0%}; clients wait {PATIENCE_S:g} s and try again twice"
    )
    phases = ((BASE, before_s), (OVERLOAD, during_s), (BASE, after_s))
    here = measured(programs.ours(EDIT_S), phases)
    yield median("overload_goodput", [here.goodput], how=how, target=(AT_LEAST, 0.9))
    normal = f"{how}: from the end of the overload until everybody is answered for {NORMAL_FOR_S:g} s"
    yield Figure(name="overload_recovery_s", value=here.recovery_s, how=normal, target=(AT_MOST, BACK_TO_NORMAL_S))
    yield median("overload_tries", [here.tries], how=f"{how}: tries a request", digits=2)
    plain = measured(programs.plain_queue(EDIT_S), phases)
    yield median("plain_queue_goodput", [plain.goodput], how=how)
    yield Figure(name="plain_queue_recovery_s", value=plain.recovery_s, how=normal)
    yield median("plain_queue_tries", [plain.tries], how=f"{how}: tries a request", digits=2)


def measured(server: AbstractContextManager[Program], phases: Sequence[tuple[float, float]]) -> Result:
    """Run the three phases against one server."""
    with server as program:
        began_s = time.monotonic()
        seen = asyncio.run(_open_loop(edit_of(program, patience_s=PATIENCE_S), phases, began_s))
    start_s = began_s + phases[0][1]
    end_s = start_s + phases[1][1]
    within = [one for one in seen if one.answered and start_s <= one.ended_s < end_s]
    return Result(
        goodput=len(within) * EDIT_S / (end_s - start_s),
        tries=sum(one.tries for one in seen) / len(seen),
        recovery_s=recovery_s(seen, end_s, end_s + phases[2][1]),
    )


def recovery_s(seen: Sequence[Wanted], overload_ended_s: float, measured_until_s: float) -> float | None:
    """Seconds until everyone who asks within the next `NORMAL_FOR_S` is answered; None when that was not seen.

    Every failure begins the count anew, so only the end of the overload and the failures after it can be the answer.
    """
    failures = [one.began_s for one in seen if not one.answered and one.began_s >= overload_ended_s]
    for since_s in (overload_ended_s, *sorted(failures)):
        until_s = since_s + NORMAL_FOR_S
        if until_s <= measured_until_s and not any(since_s < failed_s <= until_s for failed_s in failures):
            return round(since_s - overload_ended_s, 1)
    return None


async def _open_loop(asked: Asking, phases: Sequence[tuple[float, float]], began_s: float) -> list[Wanted]:
    chance = random.Random(SEED)
    users: list[asyncio.Task[Wanted]] = []
    end_s = began_s
    for load, seconds in phases:
        end_s += seconds
        while True:
            await asyncio.sleep(chance.expovariate(load / EDIT_S))
            if time.monotonic() >= end_s:
                break
            users.append(asyncio.create_task(wanted(asked, len(users) + 1, random.Random(len(users)))))
    return list(await asyncio.gather(*users))
