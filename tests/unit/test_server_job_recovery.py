"""Whenever the process dies, the next one has each job whole, in its order, and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imageedit_server.api.job_ledger import JobLedger
from imageedit_server.api.job_store import JobStore
from imageedit_server.gate import jobs as states
from imageedit_server.gate.job_book import JobLimits
from imageedit_server.gate.jobs import Job, JobState

BODY = b"the body"
LIMITS = JobLimits(keep_s=100.0, max_open=50, max_kept=50, max_bytes=10**6)


def job(job_id: str = "job_1", *, number: int = 1, created_s: float = 10.0) -> Job:
    digest = hashlib.sha256(BODY).hexdigest()
    return Job(
        job_id=job_id, number=number, created_s=created_s, body_bytes=len(BODY), digest=digest, seed=7, key=job_id
    )


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.job.*"))


@contextlib.asynccontextmanager
async def next_process(folder: Path, *, now_s: float = 50.0) -> AsyncIterator[JobLedger]:
    ledger = JobLedger(folder, LIMITS, now_s=lambda: now_s)
    await ledger.load()
    try:
        yield ledger
    finally:
        await ledger.close()


STAGES = ("body", "row", "start", "half a result", "result", "state", "half a deletion")


def dies_after(stage: str, folder: Path) -> None:
    """What is in the folder when the process is killed right after this stage of a job."""
    store, at = JobStore(folder), STAGES.index(stage)
    (folder / "job_1.job.body").write_bytes(BODY)
    running = states.started(job(), 20.0)
    done = states.succeeded(running, 30.0, result_bytes=6)
    if at >= STAGES.index("row"):
        store.save(job())
    if at >= STAGES.index("start"):
        store.save(running)
    if stage == "half a result":
        (folder / "job_1.job.result.part").write_bytes(b"res")
    if at >= STAGES.index("result"):
        store.write_result("job_1", b"result")
    if at >= STAGES.index("state"):
        store.save(done)
    if stage == "half a deletion":
        store.delete("job_1")
        store.write_result("job_1", b"result")
    store.close()


@pytest.mark.parametrize(
    ("stage", "state", "deaths", "files"),
    [
        ("body", None, 0, []),
        ("row", JobState.QUEUED, 0, ["job_1.job.body"]),
        ("start", JobState.QUEUED, 1, ["job_1.job.body"]),
        ("half a result", JobState.QUEUED, 1, ["job_1.job.body"]),
        ("result", JobState.SUCCEEDED, 0, ["job_1.job.result"]),
        ("state", JobState.SUCCEEDED, 0, ["job_1.job.result"]),
        ("half a deletion", None, 0, []),
    ],
)
async def test_a_job_whose_process_died_after_a_stage(
    tmp_path: Path, stage: str, state: JobState | None, deaths: int, files: list[str]
) -> None:
    dies_after(stage, tmp_path)
    for _ in range(2):  # The second time it is only read, and counts nothing again.
        async with next_process(tmp_path) as ledger:
            found = ledger.book.get("job_1")
            assert (None if found is None else found.state) is state
            assert files_in(tmp_path) == files
            if found is not None:
                assert (found.deaths, found.seed) == (deaths, 7)
                assert await ledger.result(found) == (b"result" if state is JobState.SUCCEEDED else None)


async def test_jobs_keep_their_order_when_the_clock_went_back(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    for number, created_s in ((1, 900.0), (2, 100.0), (3, 500.0)):
        store.add(job(f"job_{number}", number=number, created_s=created_s), BODY)
    store.close()
    async with next_process(tmp_path) as ledger:
        assert [one.job_id for one in ledger.waiting()] == ["job_1", "job_2", "job_3"]
        assert ledger.book.next_number == 4


async def test_a_result_that_is_gone_is_said_and_not_promised(tmp_path: Path) -> None:
    dies_after("state", tmp_path)
    (tmp_path / "job_1.job.result").unlink()
    async with next_process(tmp_path) as ledger:
        assert ledger.known("job_1").error_code == "result_lost"


async def test_a_key_is_known_after_a_restart_until_its_job_is_deleted(tmp_path: Path) -> None:
    dies_after("state", tmp_path)
    async with next_process(tmp_path) as ledger:
        found = await ledger.of_key("job_1", job().digest)
        assert found is not None
        await ledger.delete("job_1")

        assert await ledger.of_key("job_1", job().digest) is None


async def test_what_ended_in_the_future_expires_in_its_time(tmp_path: Path) -> None:
    dies_after("state", tmp_path)
    async with next_process(tmp_path, now_s=1.0):
        pass
    async with next_process(tmp_path, now_s=101.0) as ledger:
        await ledger.sweep()

        assert len(ledger.book) == 0
        assert files_in(tmp_path) == []
