"""Jobs are run one at a time in their order, and neither a disk that is away nor a lost worker loses one."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from imageedit_server.api.job_ledger import JobLedger, NewJob
from imageedit_server.api.job_runner import JobRunner, NotNow
from imageedit_server.errors import Conflict, InvalidInput, StorageUnusable
from imageedit_server.gate.job_book import JobLimits
from imageedit_server.gate.jobs import Job, JobState
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from support.full_disk import disk_full

LIMITS = JobLimits(keep_s=100.0, max_open=50, max_kept=50, max_bytes=10**6)


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


class HandEdit:
    """An edit whose run ends when the test says so."""

    def __init__(self, editor: HandEditor, name: str) -> None:
        self.place, self.starts_in_s, self.step, self.steps = None, 0.0, 0, 4
        self._editor, self._name = editor, name
        self.given_up = False

    async def run(self, before_start: Callable[[], Awaitable[None]]) -> bool:
        if not self._editor.open:
            raise NotNow
        await before_start()
        self._editor.ran.append(self._name)
        self._editor.at_once += 1
        self._editor.most_at_once = max(self._editor.most_at_once, self._editor.at_once)
        self._editor.running = self
        try:
            await self._editor.ends()
        finally:
            self._editor.at_once -= 1
        return not self.given_up

    async def answer(self) -> bytes:
        return b"result of " + self._name.encode()

    def give_up(self) -> None:
        self.given_up = True


class HandEditor:
    """Makes such edits; a body that begins with `bad` is refused."""

    def __init__(self) -> None:
        self.open = True
        self.ran: list[str] = []
        self.read: list[str] = []
        self.at_once = self.most_at_once = 0
        self.running: HandEdit | None = None
        self._ends: asyncio.Queue[Exception | None] = asyncio.Queue()

    def span(self, job: Job) -> AbstractContextManager[object]:
        return nullcontext()

    def may_start(self) -> bool:
        return self.open

    async def prepared(self, job: Job, body: bytes) -> HandEdit:
        self.read.append(body.decode())
        if body.startswith(b"bad"):
            raise InvalidInput("It is bad.", code="invalid_image")
        return HandEdit(self, body.decode())

    async def ends(self) -> None:
        error = await self._ends.get()
        if error is not None:
            raise error

    def end(self, error: Exception | None = None) -> None:
        self._ends.put_nowait(error)


class Bench:
    """A ledger in a folder, and a runner on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = JobLedger(folder, LIMITS, now_s=lambda: 100.0)
        self.editor = HandEditor()
        self.runner = JobRunner(self.ledger, self.editor, disk_retry_s=0.01)

    async def add(self, name: str) -> str:
        body = name.encode()
        new = NewJob(body=body, digest=digest_of(body), key=name, seed=1, expected_s=1.0)
        job = await self.ledger.add(new)
        self.runner.wake()
        return job.job_id

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - conditions of several parts, none of which has an event
                await asyncio.sleep(0.001)

    async def until_state(self, job_id: str, state: JobState) -> Job:
        await self.until(lambda: self.ledger.known(job_id).state is state)
        return self.ledger.known(job_id)

    @contextlib.contextmanager
    def disk_away(self) -> Iterator[None]:
        away = self.folder.rename(self.folder.with_name("away"))
        try:
            yield
        finally:
            away.rename(self.folder)


@contextlib.asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    made = Bench(folder / "jobs")
    await made.ledger.load()
    task = asyncio.create_task(made.runner.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])
        await made.ledger.close()


async def test_jobs_run_one_at_a_time_in_the_order_of_arrival(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        jobs = [await b.add(name) for name in "abcdef"]
        for job_id in jobs:
            b.editor.end()
            await b.until_state(job_id, JobState.SUCCEEDED)

        assert b.editor.ran == list("abcdef")
        assert b.editor.most_at_once == 1
        assert await b.ledger.result(b.ledger.known(jobs[2])) == b"result of c"


async def test_the_next_job_is_read_while_one_is_on_the_card(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        for name in "abc":
            await b.add(name)
        await b.until(lambda: b.editor.read == ["a", "b"])

        assert b.editor.ran == ["a"]


async def test_a_body_that_is_refused_fails_with_its_code_and_the_next_one_runs(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        bad, good = await b.add("bad"), await b.add("good")
        b.editor.end()
        await b.until_state(good, JobState.SUCCEEDED)

        assert b.ledger.known(bad).error_code == "invalid_image"


LOST = WorkerFailure(reason="WorkerLost", message="gone", sticky=True)
AWAY = WorkerFailure(reason="WorkerLost", message="restarting", sticky=False)
REFUSED = WorkerFailure(reason="EditFailed", message="no", sticky=False)


@pytest.mark.parametrize(
    ("error", "state", "deaths", "code"),
    [
        (WorkerError(LOST), JobState.QUEUED, 1, None),
        (WorkerError(AWAY), JobState.QUEUED, 0, None),
        (WorkerError(REFUSED), JobState.FAILED, 0, "edit_failed"),
        (NotNow(), JobState.QUEUED, 0, None),
        (StorageUnusable("full", code="jobs_unavailable"), JobState.QUEUED, 0, None),
        (InvalidInput("no", code="not_served"), JobState.FAILED, 0, "not_served"),
        (RuntimeError("bug"), JobState.FAILED, 0, "internal_error"),
    ],
)
async def test_what_ends_a_run_decides_the_job_by_the_table(
    tmp_path: Path, error: Exception, state: JobState, deaths: int, code: str | None
) -> None:
    async with bench(tmp_path) as b:
        job_id = await b.add("a")
        await b.until_state(job_id, JobState.RUNNING)
        b.editor.open = False
        b.editor.end(error)
        job = await b.until_state(job_id, state)

        assert (job.deaths, job.error_code) == (deaths, code)


async def test_a_job_that_could_not_run_waits_again_while_another_runs(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        first = await b.add("a")
        await b.add("b")
        await b.until_state(first, JobState.RUNNING)
        b.editor.end(WorkerError(AWAY))
        await b.until(lambda: len(b.editor.ran) >= 2)

        assert [job.number for job in b.ledger.book.queued()] in ([1], [2])
        assert b.editor.most_at_once == 1


@pytest.mark.parametrize("away", [True, False])
async def test_a_full_disk_neither_burns_jobs_nor_loses_a_result(tmp_path: Path, away: bool) -> None:
    async with bench(tmp_path) as b:
        jobs = [await b.add(name) for name in "abcd"]
        await b.until(lambda: (b.editor.read, b.editor.ran) == (["a", "b"], ["a"]))
        with b.disk_away() if away else disk_full():
            b.editor.end()
            b.editor.end()
            await asyncio.sleep(0.1)
            assert b.ledger.book.count(JobState.SUCCEEDED) == 0
        for _ in range(2):
            b.editor.end()
        for job_id in jobs:
            await b.until_state(job_id, JobState.SUCCEEDED)

        # Each once. "c" may come before "b", which rests after the disk did not take its start.
        assert sorted(b.editor.ran) == list("abcd")


async def test_a_job_that_the_disk_does_not_take_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        with b.disk_away(), pytest.raises(StorageUnusable) as raised:
            await b.add("a")
        assert (raised.value.status, raised.value.code, len(b.ledger.book)) == (503, "jobs_unavailable", 0)

        b.editor.end()
        await b.until_state(await b.add("a"), JobState.SUCCEEDED)


async def test_a_job_is_not_run_before_it_is_on_disk(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.editor.open = False
        for number in range(30):
            adding = asyncio.create_task(b.add(f"job {number}"))
            b.runner.wake()
            await adding
        b.editor.open = True
        for _ in range(30):
            b.editor.end()
        await b.until(lambda: b.ledger.book.count(JobState.SUCCEEDED) == 30)


async def test_a_result_that_comes_after_the_cancel_is_not_kept(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        job_id = await b.add("a")
        await b.until_state(job_id, JobState.RUNNING)
        await b.ledger.cancelled(job_id)
        b.editor.end()
        await b.runner.settle()

        assert b.ledger.known(job_id).state is JobState.CANCELLED
        assert not list(b.folder.glob("*.job.*"))


async def test_a_job_that_is_deleted_while_it_runs_leaves_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        job_id = await b.add("a")
        await b.until_state(job_id, JobState.RUNNING)
        await b.ledger.cancelled(job_id)
        await b.ledger.delete(job_id)
        b.editor.end()
        await b.runner.settle()

        assert len(b.ledger.book) == 0
        assert not list(b.folder.glob("*.job.*"))


async def test_a_body_that_was_altered_on_disk_is_not_edited(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.editor.open = False
        altered, gone, good = await b.add("altered"), await b.add("gone"), await b.add("good")
        (b.folder / f"{altered}.job.body").write_bytes(b"xltered")
        (b.folder / f"{gone}.job.body").unlink()
        b.editor.open = True
        b.editor.end()
        await b.until_state(good, JobState.SUCCEEDED)

        assert [b.ledger.known(one).error_code for one in (altered, gone)] == ["body_lost", "body_lost"]
        assert b.editor.read == ["good"]


async def test_one_key_is_one_job_and_another_body_a_conflict(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.editor.open = False
        job_id = await b.add("a")
        found = await b.ledger.of_key("a", digest_of(b"a"))
        assert found is not None
        assert found.job_id == job_id
        with pytest.raises(Conflict):
            await b.ledger.of_key("a", digest_of(b"other"))


async def test_a_state_that_the_disk_did_not_take_is_written_later(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.editor.open = False
        job_id = await b.add("a")
        with disk_full():
            await b.ledger.cancelled(job_id)
            with pytest.raises(StorageUnusable):
                await b.ledger.delete(job_id)
        await b.ledger.sweep()
    again = JobLedger(tmp_path / "jobs", LIMITS, now_s=lambda: 100.0)
    await again.load()

    assert again.known(job_id).state is JobState.CANCELLED
    await again.close()
