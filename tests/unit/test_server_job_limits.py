"""How many jobs are taken and how long they are kept; no worker runs here, so all of them wait."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imageedit_server.api.jobs import Jobs
from imageedit_server.api.service import Service
from imageedit_server.errors import NotFound, Overloaded
from imageedit_server.gate.job_book import JobLimits
from imageedit_server.gate.jobs import JobState
from imageedit_server.settings import settings_from
from server.running import png_base64

BODY = json.dumps({"image": png_base64(), "prompt": "make the background blue"}).encode()


def limits(*, keep_s: float = 3600.0, max_open: int = 10, max_kept: int = 10, max_bytes: int = 10**9) -> JobLimits:
    return JobLimits(keep_s=keep_s, max_open=max_open, max_kept=max_kept, max_bytes=max_bytes)


def bodies(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.job.body")]


@contextlib.asynccontextmanager
async def opened(folder: Path, narrow: JobLimits | None = None) -> AsyncIterator[Jobs]:
    service = Service(settings_from(["--model-dir", "demo", "--sizes", "128x128"], {}))
    jobs = Jobs(service, folder, limits=narrow)
    await jobs.load()
    try:
        yield jobs
    finally:
        await jobs.close()


@pytest.mark.parametrize(
    "narrow",
    [limits(max_open=1), limits(max_kept=1), limits(max_bytes=len(BODY) + 10)],
)
async def test_one_more_job_than_may_be_there_is_refused_and_leaves_nothing(tmp_path: Path, narrow: JobLimits) -> None:
    async with opened(tmp_path, narrow) as jobs:
        await jobs.submit(BODY, key=None)
        with pytest.raises(Overloaded) as raised:
            await jobs.submit(BODY, key=None)

    assert raised.value.code == "too_many_jobs"
    assert len(bodies(tmp_path)) == 1


async def test_a_cancelled_job_makes_room(tmp_path: Path) -> None:
    async with opened(tmp_path, limits(max_open=1)) as jobs:
        first = await jobs.submit(BODY, key=None)
        assert (await jobs.cancel(first.job_id)).state is JobState.CANCELLED

        assert (await jobs.submit(BODY, key=None)).state is JobState.QUEUED


async def test_ended_jobs_are_swept_when_their_time_is_over_and_open_ones_are_not(tmp_path: Path) -> None:
    async with opened(tmp_path, limits(keep_s=0.0)) as jobs:
        ended, waits = await jobs.submit(BODY, key=None), await jobs.submit(BODY, key=None)
        await jobs.cancel(ended.job_id)
        await jobs.sweep()

        with pytest.raises(NotFound):
            jobs.standing(ended.job_id)
        assert jobs.standing(waits.job_id).job.state is JobState.QUEUED


async def test_what_waits_is_there_in_its_order_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as jobs:
        submitted = [(await jobs.submit(BODY, key=f"owner {number}")).job_id for number in range(3)]

    async with opened(tmp_path) as again:
        assert [again.standing(job_id).place for job_id in submitted] == [0, 1, 2]
        assert (await again.submit(BODY, key="owner 1")).job_id == submitted[1]
