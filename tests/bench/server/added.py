"""What a server adds to the engine's own time for one client, and how many edits it does for eight: ours and peers.

All in the same run, with the same engine, image code, picture and client; the servers take turns, so that whatever
else the machine does meets each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterator

from bench.figures import AT_LEAST, AT_MOST, Figure, median
from bench.server import programs
from bench.server.busy import edit_of, loaded
from bench.server.programs import PEERS, Program
from imageedit_server.loadtest.asking import EDIT_PATH, Asking
from imageedit_server.loadtest.http import HttpClient

EDIT_S = 0.1
OURS = "ours"


def figures(*, rounds: int, seconds: float, tell: Callable[[str], None]) -> Iterator[Figure]:
    """A round measures each server once."""
    added_ms: dict[str, list[float]] = {name: [] for name in (OURS, *PEERS)}
    per_s: dict[str, list[float]] = {name: [] for name in (OURS, *PEERS)}
    cpu_ms: dict[str, list[float]] = {name: [] for name in (OURS, *PEERS)}
    for number in range(rounds):
        for name in (OURS, *PEERS):
            with _server(name) as program:
                before_s = program.cpu_s()
                added_s = asyncio.run(_added_s(edit_of(program), seconds))
                added_ms[name].append(1000 * statistics.median(added_s))
                cpu_ms[name].append(1000 * (program.cpu_s() - before_s) / len(added_s))
                per_s[name].append(loaded(program, edit_s=EDIT_S, seconds=seconds).per_s)
            tell(f"round {number + 1}, {name}: {added_ms[name][-1]:.1f} ms added, {per_s[name][-1]:.2f} edits/s")
    how = f"slot of {EDIT_S:g} s, median of {rounds} rounds"
    one = f"{how}, one client for {seconds:g} s: latency less the engine's time, p50"
    eight = f"{how}, eight clients for {seconds:g} s: edits a second"
    peers_added = {name: median(f"peers.{name}.added_p50_ms", added_ms[name], how=one, digits=1) for name in PEERS}
    peers_per_s = {name: median(f"peers.{name}.throughput", per_s[name], how=eight, digits=2) for name in PEERS}
    lowest = min(figure.value for figure in peers_added.values() if figure.value is not None)
    highest = max(figure.value for figure in peers_per_s.values() if figure.value is not None)
    yield median("added_p50_ms", added_ms[OURS], how=one, digits=1, target=(AT_MOST, lowest))
    yield median("throughput", per_s[OURS], how=eight, digits=2, target=(AT_LEAST, highest))
    yield from (*peers_added.values(), *peers_per_s.values())
    used = (
        f"{how}, one client: processor time of all its processes for each edit; other work on the machine adds little"
    )
    yield median("cpu_ms_per_edit", cpu_ms[OURS], how=used, digits=1)
    for name in PEERS:
        yield median(f"peers.{name}.cpu_ms_per_edit", cpu_ms[name], how=used, digits=1)


def _server(name: str) -> contextlib.AbstractContextManager[Program]:
    return programs.ours(EDIT_S, "--max-wait", "1000") if name == OURS else programs.peer(name, EDIT_S)


async def _added_s(asked: Asking, seconds: float) -> list[float]:
    http = HttpClient(asked.address)
    added = []
    end_s, number = time.monotonic() + seconds, 1
    while time.monotonic() < end_s:
        started_s = time.monotonic()
        answer = await http.request("POST", EDIT_PATH, headers=asked.headers, body=asked.body(number))
        took_s = time.monotonic() - started_s
        added.append(took_s - float(json.loads(answer.body)["seconds"]))
        number += 1
    http.close()
    return added
