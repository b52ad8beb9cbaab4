"""Which share of the time the slot works while eight clients keep it loaded, and how late the event loop is then.

Counted from the first answer after the start to the last one: the engine says in each answer how long it held the
slot, so the rest of that time the slot was empty although somebody waited.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import AT_LEAST, AT_MOST, Figure, median
from bench.server import programs
from bench.server.programs import Program
from imageedit_server.loadtest.asking import EDIT_PATH, Asking, asking, sample_picture
from imageedit_server.loadtest.http import HttpClient
from imageedit_server.loadtest.statistics import percentile

CLIENTS = 8
PATIENCE_S = 120.0
LAG_S = 0.050


@dataclass(frozen=True, kw_only=True)
class Slot:
    """`busy` is the share of time that the engine held the slot, `ideal` that of the edits' nominal time."""

    busy: float
    ideal: float
    per_s: float


def figures(*, slow_s: float, fast_s: float, repeats: int) -> Iterator[Figure]:
    """Both slots; the lag is that of the fast one, where the loop has the most to do."""
    with programs.ours(2.2, "--max-wait", "1000") as program:
        slow = loaded(program, edit_s=2.2, seconds=slow_s)
    yield median(
        "busy_fraction_2200ms",
        [slow.busy],
        how=f"{CLIENTS} clients, {slow_s:g} s, slot of 2.2 s",
        target=(AT_LEAST, 0.995),
    )
    runs, lags = [], []
    for _ in range(repeats):
        with programs.ours(0.1, "--max-wait", "1000") as program:
            began_s = time.monotonic()
            runs.append(loaded(program, edit_s=0.1, seconds=fast_s))
            ended_s = time.monotonic()
            program.process.terminate()
            program.process.wait(programs.STOP_S)
            lags.append(lag_p99_s(program.lag_file, began_s, ended_s))
    how = f"{CLIENTS} clients, {fast_s:g} s, slot of 0.1 s"
    yield median("busy_fraction_100ms", [run.busy for run in runs], how=how, target=(AT_LEAST, 0.95))
    yield median("of_ideal_100ms", [run.ideal for run in runs], how=f"{how}: edits x 0.1 s / time")
    yield median(
        "loop_lag_p99_ms",
        [1000 * lag for lag in lags],
        how=f"{how}: a clock on the API's event loop, every 10 ms",
        digits=1,
        target=(AT_MOST, 1000 * LAG_S),
    )


def loaded(program: Program, *, edit_s: float, seconds: float) -> Slot:
    """Keep the slot loaded for that time."""
    return asyncio.run(_loaded(edit_of(program), edit_s, seconds))


def edit_of(program: Program, *, patience_s: float = PATIENCE_S) -> Asking:
    """The one edit that everything here asks for."""
    return asking(
        program.address,
        picture=sample_picture(),
        prompt="make the background blue",
        size=None,
        steps=None,
        api_key=None,
        timeout_s=patience_s,
    )


def lag_p99_s(file: Path, began_s: float, ended_s: float) -> float:
    """The lag that one wake-up in a hundred exceeded in that time."""
    return percentile([lag for at_s, lag in json.loads(file.read_text()) if began_s <= at_s <= ended_s], 0.99)


async def _loaded(asked: Asking, edit_s: float, seconds: float) -> Slot:
    end_s = time.monotonic() + seconds
    answers: list[tuple[float, float]] = []

    async def client(first: int) -> None:
        http = HttpClient(asked.address)
        number = first
        while time.monotonic() < end_s:
            answer = await http.request("POST", EDIT_PATH, headers=asked.headers, body=asked.body(number))
            answers.append((time.monotonic(), json.loads(answer.body)["seconds"]))
            number += CLIENTS
        http.close()

    await asyncio.gather(*(client(number) for number in range(1, CLIENTS + 1)))
    # At the end fewer and fewer clients ask: what counts is until the last answer that others still waited behind.
    counted = sorted(answers)[: len(answers) - CLIENTS]
    elapsed_s = counted[-1][0] - counted[0][0]
    return Slot(
        busy=sum(held_s for _, held_s in counted[1:]) / elapsed_s,
        ideal=edit_s * (len(counted) - 1) / elapsed_s,
        per_s=(len(counted) - 1) / elapsed_s,
    )
