"""Health is progress, not an open port."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from imageedit_operator.health import Limits, Progress, serve, stuck

LIMITS = Limits(since_resync_s=420.0, oldest_waiting_s=300.0)


@pytest.mark.parametrize(
    ("since_resync_s", "oldest_waiting_s", "word"),
    [(0, 0, ""), (420, 300, ""), (421, 0, "no resync"), (0, 301, "waits for a worker"), (500, 500, "no resync")],
)
def test_a_process_without_progress_is_stuck(since_resync_s: float, oldest_waiting_s: float, word: str) -> None:
    why = stuck(Progress(since_resync_s=since_resync_s, oldest_waiting_s=oldest_waiting_s), LIMITS)
    assert bool(why) is bool(word)
    assert word in why


@pytest.mark.parametrize(("since_resync_s", "status"), [(1.0, 200), (999.0, 500)])
async def test_healthz_answers_by_progress(since_resync_s: float, status: int) -> None:
    def progress() -> Progress:
        return Progress(since_resync_s=since_resync_s, oldest_waiting_s=0.0)

    async with (
        serve(0, progress=progress, limits=LIMITS, render=lambda: b"") as port,
        aiohttp.ClientSession() as http,
        http.get(f"http://127.0.0.1:{port}/healthz") as answer,
    ):
        body = await answer.json()
    assert answer.status == status
    assert body["status"] == ("ok" if status == 200 else "stuck")
    assert body["sinceResyncSeconds"] == since_resync_s


async def test_metrics_are_served_as_prometheus_text() -> None:
    def progress() -> Progress:
        return Progress(since_resync_s=0.0, oldest_waiting_s=0.0)

    async with (
        serve(0, progress=progress, limits=LIMITS, render=lambda: b"m 1\n") as port,
        aiohttp.ClientSession() as http,
        http.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        assert await answer.text() == "m 1\n"
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


async def test_a_port_that_is_taken_is_an_error() -> None:
    server = await asyncio.start_server(lambda _r, _w: None, "0.0.0.0", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            async with serve(
                port,
                progress=lambda: Progress(since_resync_s=0.0, oldest_waiting_s=0.0),
                limits=LIMITS,
                render=lambda: b"",
            ):
                pass
