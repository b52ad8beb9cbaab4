"""Health is progress, not an open port."""

from __future__ import annotations

import asyncio
import http.client
import json
import time

import aiohttp
import pytest

from imageedit_operator.health import Board, Limits, Progress, keep_posting, serve, stuck

LIMITS = Limits(
    since_contact_s=420.0, since_watch_s=120.0, oldest_waiting_s=300.0, longest_pass_s=90.0, since_post_s=30.0
)


@pytest.mark.parametrize(
    ("leading", "ages_s", "since_post_s", "word"),
    [
        (True, (0, 0, 0, 0), 0, ""),
        (True, (420, 120, 300, 90), 30, ""),
        (True, (0, 0, 0, 0), 31, "the event loop is stuck"),
        (True, (421, 0, 0, 0), 0, "no resync completed"),
        (False, (421, 0, 0, 0), 0, "no look at the Lease"),
        (True, (0, 121, 0, 0), 0, "the watches gave no sign"),
        (True, (0, 0, 0, 91), 0, "its worker is lost"),
        (True, (0, 0, 301, 0), 0, "waits for a worker"),
        (True, (500, 500, 500, 500), 500, "the event loop is stuck"),
    ],
)
def test_a_process_without_progress_is_stuck(
    leading: bool, ages_s: tuple[float, float, float, float], since_post_s: float, word: str
) -> None:
    contact_s, watch_s, waiting_s, pass_s = ages_s
    progress = Progress(
        leading=leading,
        since_contact_s=contact_s,
        since_watch_s=watch_s,
        oldest_waiting_s=waiting_s,
        longest_pass_s=pass_s,
    )
    why = stuck(progress, since_post_s, LIMITS)
    assert bool(why) is bool(word)
    assert word in why


def board(progress: Progress) -> Board:
    return Board(progress, stopwatch=time.monotonic)


@pytest.mark.parametrize(
    ("leading", "since_contact_s", "status", "role"),
    [(True, 1.0, 200, "leader"), (False, 1.0, 200, "standby"), (True, 999.0, 503, "leader")],
)
async def test_healthz_answers_by_progress_and_says_who_acts(
    leading: bool, since_contact_s: float, status: int, role: str
) -> None:
    posted = board(Progress(leading=leading, since_contact_s=since_contact_s))
    async with (
        serve(0, board=posted, limits=LIMITS, render=lambda: b"") as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/healthz") as answer,
    ):
        body = await answer.json()
    assert answer.status == status
    assert body["status"] == ("ok" if status == 200 else "stuck")
    assert (body["role"], body["sinceContactSeconds"]) == (role, since_contact_s)


async def test_healthz_passes_a_notice_on_while_the_process_is_well() -> None:
    posted = board(Progress(leading=True, since_contact_s=0.0, notice="apply the definition"))
    async with (
        serve(0, board=posted, limits=LIMITS, render=lambda: b"") as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/healthz") as answer,
    ):
        body = await answer.json()
    assert (answer.status, body["status"], body["message"]) == (200, "ok", "apply the definition")


async def test_a_loop_that_does_not_turn_is_said_by_a_thread_that_does() -> None:
    posted = board(Progress(leading=True, since_contact_s=0.0))
    impatient = Limits(since_contact_s=420.0, since_post_s=0.0)
    async with serve(0, board=posted, limits=impatient, render=lambda: b"") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/healthz")  # blocks this loop until it is answered
        answer = connection.getresponse()
        said = json.load(answer)
        connection.close()
    assert answer.status == 503
    assert "event loop is stuck" in said["message"]


async def test_a_loop_that_turns_posts_its_progress() -> None:
    old, new = (Progress(leading=True, since_contact_s=age_s) for age_s in (1.0, 2.0))
    posted = board(old)
    posting = asyncio.create_task(keep_posting(posted, lambda: new))
    await asyncio.sleep(0)
    posting.cancel()
    assert posted.read()[0] == new


async def test_metrics_are_served_as_prometheus_text() -> None:
    async with (
        serve(
            0, board=board(Progress(leading=True, since_contact_s=0.0)), limits=LIMITS, render=lambda: b"m 1\n"
        ) as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as answer,
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
                board=board(Progress(leading=True, since_contact_s=0.0)),
                limits=LIMITS,
                render=lambda: b"",
            ):
                pass
