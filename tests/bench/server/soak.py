"""Thousands of requests of every kind: good ones, clients that leave, wrong input, and workers that are killed.

Each request that waits for its answer must get one, memory must not grow, and nothing may be left behind.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.figures import AT_MOST, Figure
from bench.server import programs
from imageedit_server.loadtest.asking import EDIT_PATH, Asking, asking, sample_picture
from imageedit_server.loadtest.http import Address, ConnectionBroken, HttpClient
from imageedit_server.loadtest.outcomes import error_code

EDIT_S = 0.015
SIDE_PX = 256
CLIENTS = 8
PATIENCE_S = 60.0
FIRST = 1000
# A worker that is lost more often within five minutes ends the pod, as it should.
KILLS = 3
GROWTH = 1.1

GOOD, LEFT = "good", "left"
BAD_BODIES: dict[str, bytes] = {
    "no json": b"{",
    "no base64": b'{"image": "...", "prompt": "p"}',
    "no picture": b'{"image": "aGVsbG8=", "prompt": "p"}',
    "no prompt": b'{"image": "aGVsbG8="}',
    "unknown field": b'{"image": "aGVsbG8=", "prompt": "p", "colour": 1}',
}
KINDS = [GOOD] * 80 + [LEFT] * 10 + [*BAD_BODIES] * 2
# What a good request may hear while the worker is replaced.
WORKER_AWAY = ("worker_lost", "not_ready", "queue_full", "wait_too_long")


@dataclass(kw_only=True)
class Soaked:
    """What happened: answers by kind, requests without one, answers that are wrong, memory after each part."""

    answers: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    resident_bytes: list[int] = field(default_factory=list)


def figures(*, requests: int) -> Iterator[Figure]:
    """The soak as figures."""
    with programs.ours(EDIT_S, size=f"{SIDE_PX}x{SIDE_PX}") as program:
        before = files_under(program.folder)
        began_s = time.monotonic()
        seen = asyncio.run(soaked(program.address, program.process.pid, requests=requests, kills=KILLS))
        took_s = time.monotonic() - began_s
        program.process.terminate()
        program.process.wait(programs.STOP_S)
        left = sorted(files_under(program.folder) - before - {str(program.lag_file)})
    how = f"{requests} requests from {CLIENTS} clients in {took_s:.0f} s, slot of {EDIT_S:g} s, {KILLS} workers killed"
    yield Figure(name="soak.unanswered", value=seen.unanswered, how=f"{how}; {dict(seen.answers)}", target=(AT_MOST, 0))
    yield Figure(
        name="soak.wrong_answers", value=seen.wrong.total(), how=f"{how}; {dict(seen.wrong)}", target=(AT_MOST, 0)
    )
    first, last = seen.resident_bytes[0], seen.resident_bytes[-1]
    yield Figure(
        name="soak.memory_growth",
        value=round(last / first, 3),
        how=f"{how}: memory of the API process, {last >> 20} MiB at the end, {first >> 20} MiB after {FIRST}",
        target=(AT_MOST, GROWTH),
    )
    yield Figure(name="soak.files_left", value=len(left), how=f"{how}: {left}", target=(AT_MOST, 0))


async def soaked(
    address: Address, pid: int, *, requests: int, kills: int, side_px: int = SIDE_PX, first: int = FIRST
) -> Soaked:
    """Send them all; memory is read after the first and at the end."""
    asked = asking(
        address,
        picture=sample_picture(side_px),
        prompt="make the background blue",
        size=None,
        steps=None,
        api_key=None,
        timeout_s=PATIENCE_S,
    )
    chance, seen = random.Random(1), Soaked()
    todo = iter([chance.choice(KINDS) for _ in range(requests)])
    kill_at = {requests * (number + 1) // (kills + 1) for number in range(kills)}
    done = 0

    async def client(own: random.Random) -> None:
        nonlocal done
        http = HttpClient(asked.address)
        for kind in todo:
            await _one(http, asked, kind=kind, number=done, chance=own, seen=seen)
            done += 1
            if done == first:
                seen.resident_bytes.append(psutil.Process(pid).memory_info().rss)
            if done in kill_at:
                kill_worker(pid)
        http.close()

    await asyncio.gather(*(client(random.Random(number)) for number in range(CLIENTS)))
    await asyncio.sleep(0.5)
    seen.resident_bytes.append(psutil.Process(pid).memory_info().rss)
    return seen


async def _one(http: HttpClient, asked: Asking, *, kind: str, number: int, chance: random.Random, seen: Soaked) -> None:
    # As the OpenAI libraries send it: the result is kept for a retry, which is what memory is needed for.
    headers = {**asked.headers, "x-stainless-retry-count": "0"}
    body = BAD_BODIES.get(kind) or asked.body(number)
    patience_s = chance.uniform(0.0, 8 * EDIT_S) if kind == LEFT else PATIENCE_S
    try:
        async with asyncio.timeout(patience_s):
            answer = await http.request("POST", EDIT_PATH, headers=headers, body=body)
    except (TimeoutError, ConnectionBroken, OSError) as error:
        if kind == LEFT and isinstance(error, TimeoutError):
            seen.answers["left"] += 1
        else:
            seen.unanswered += 1
        return
    code = error_code(answer.body)
    said = f"{answer.status} {code}".strip()
    seen.answers[said] += 1
    if not expected(kind, answer.status, code):
        seen.wrong[f"{kind}: {said}"] += 1
    if answer.status in (429, 503):
        await asyncio.sleep(0.2)


def expected(kind: str, status: int, code: str) -> bool:
    """Whether this is a right answer to a request of that kind."""
    if code in WORKER_AWAY:
        return status in (429, 503)
    return status == (400 if kind in BAD_BODIES else 200)


def kill_worker(pid: int) -> None:
    """As the kernel does it when memory is short."""
    for child in psutil.Process(pid).children():
        os.kill(child.pid, signal.SIGKILL)


def files_under(folder: Path) -> set[str]:
    """Every file there."""
    return {str(path) for path in folder.rglob("*") if path.is_file()}
