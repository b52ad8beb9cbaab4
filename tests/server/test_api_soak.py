"""A short piece of the soak of `make bench-server`: every kind of request, and workers that are killed meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from bench.server.soak import files_under, soaked
from imageedit_server.loadtest.http import Address
from server.running import stub_server

REQUESTS = 1000
KILLS = 2


@pytest.mark.timeout(400)
def test_a_thousand_requests_of_every_kind_are_all_answered_and_leave_nothing() -> None:
    with stub_server(edit_s=0.008) as server:
        before = files_under(server.folder)
        seen = asyncio.run(
            soaked(
                Address.parse(server.api), server.process.pid, requests=REQUESTS, kills=KILLS, side_px=128, first=500
            )
        )
        assert files_under(server.folder) == before
        assert server.metric("imageedit_worker_restarts_total") == KILLS
        assert (server.health()["running"], server.health()["waiting"]) == (0, 0)

    assert seen.unanswered == 0
    assert seen.wrong == {}
    assert seen.answers.total() == REQUESTS
    assert seen.answers["200"] > REQUESTS // 2
    assert len(seen.resident_bytes) == 2
