"""A job's life by its table, and what of it is on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.api.job_store import JobStore
from imageedit_server.errors import SettingsInvalid
from imageedit_server.gate import jobs as states
from imageedit_server.gate.jobs import Job, JobState

Event = Callable[[Job], Job]
EVENTS: dict[str, Event] = {
    "started": lambda job: states.started(job, 20.0),
    "succeeded": lambda job: states.succeeded(job, 30.0, result_bytes=7),
    "failed": lambda job: states.failed(job, 30.0, code="edit_failed", message="why"),
    "died": lambda job: states.died(job, 30.0),
    "cancelled": lambda job: states.cancelled(job, 30.0),
}


def job(job_id: str = "job_1", *, state: JobState = JobState.QUEUED, deaths: int = 0, created_s: float = 10.0) -> Job:
    return Job(job_id=job_id, created_s=created_s, body_bytes=4, digest="d", state=state, deaths=deaths)


TABLE = [
    (JobState.QUEUED, 0, "started", JobState.RUNNING),
    (JobState.QUEUED, 0, "succeeded", JobState.QUEUED),
    (JobState.QUEUED, 0, "failed", JobState.FAILED),
    (JobState.QUEUED, 0, "died", JobState.QUEUED),
    (JobState.QUEUED, 0, "cancelled", JobState.CANCELLED),
    (JobState.RUNNING, 0, "started", JobState.RUNNING),
    (JobState.RUNNING, 0, "succeeded", JobState.SUCCEEDED),
    (JobState.RUNNING, 0, "failed", JobState.FAILED),
    (JobState.RUNNING, 0, "died", JobState.QUEUED),
    (JobState.RUNNING, 1, "died", JobState.FAILED),
    (JobState.RUNNING, 0, "cancelled", JobState.CANCELLED),
    *[(state, 0, event, state) for state in states.ENDED for event in EVENTS],
]


@pytest.mark.parametrize(("state", "deaths", "event", "expected"), TABLE)
def test_a_job_follows_its_table(state: JobState, deaths: int, event: str, expected: JobState) -> None:
    assert EVENTS[event](job(state=state, deaths=deaths)).state is expected


def test_a_job_that_took_two_workers_with_it_is_quarantined_and_says_so() -> None:
    ended = states.died(job(state=JobState.RUNNING, deaths=1), 30.0)

    assert (ended.error_code, ended.deaths, ended.ended_s) == ("quarantined", 2, 30.0)
    assert "2 times" in (ended.error_message or "")


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=30))
def test_no_job_runs_more_than_twice_and_none_ends_twice(events: list[str]) -> None:
    now = job()
    starts = ends = 0
    for event in events:
        after = EVENTS[event](now)
        starts += now.state is JobState.QUEUED and after.state is JobState.RUNNING
        ends += not now.ended and after.ended
        now = after

    assert starts <= 2
    assert ends <= 1
    assert now.ended == (now.ended_s is not None)


def test_an_ended_job_is_kept_for_its_time_and_an_open_one_for_ever() -> None:
    ended = states.cancelled(job(), 100.0)

    assert not states.expired(ended, 159.0, keep_s=60.0)
    assert states.expired(ended, 160.0, keep_s=60.0)
    assert not states.expired(job(), 1e12, keep_s=60.0)


def test_jobs_and_bodies_are_there_after_the_process_is_gone(tmp_path: Path) -> None:
    first = JobStore(tmp_path)
    first.add(job("job_b", created_s=2.0), b"body b")
    first.add(job("job_a", created_s=1.0), b"body a")
    first.save(states.started(job("job_a", created_s=1.0), 5.0))
    first.close()

    again = JobStore(tmp_path)
    assert [(one.job_id, one.state) for one in again.all()] == [
        ("job_a", JobState.RUNNING),
        ("job_b", JobState.QUEUED),
    ]
    assert again.body("job_a") == b"body a"
    again.close()


def test_a_job_comes_back_from_disk_as_it_went(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    full = Job(
        job_id="job_1",
        created_s=1.5,
        body_bytes=3,
        digest="d",
        key="owner key",
        state=JobState.FAILED,
        started_s=2.5,
        ended_s=3.5,
        deaths=2,
        expected_s=4.5,
        result_bytes=9,
        error_code="quarantined",
        error_message="why",
    )
    store.save(full)

    assert store.all() == [full]
    store.close()


def test_a_result_is_whole_or_absent(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    store.add(job(), b"body")
    (tmp_path / "job_1.job.result.part").write_bytes(b"half")
    assert store.result("job_1") is None
    store.write_result("job_1", b"whole")

    assert store.result("job_1") == b"whole"
    store.close()


def test_what_a_dying_process_left_unfinished_is_cleaned_up(tmp_path: Path) -> None:
    (tmp_path / "job_x.job.body.part").write_bytes(b"half")
    (tmp_path / "job_y.job.body").write_bytes(b"without a row")
    (tmp_path / "notes.txt").write_bytes(b"of somebody else")
    store = JobStore(tmp_path)
    store.add(job(), b"body")
    store.all()

    assert sorted(path.name for path in tmp_path.iterdir() if "sqlite" not in path.name) == [
        "job_1.job.body",
        "notes.txt",
    ]
    store.close()


def test_the_body_of_an_ended_job_is_not_kept(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    store.add(job(), b"body")
    store.save(states.cancelled(job(), 3.0))

    assert not list(tmp_path.glob("*.job.*"))
    store.delete("job_1")
    assert store.all() == []
    store.close()


def test_a_folder_of_another_process_is_refused(tmp_path: Path) -> None:
    first = JobStore(tmp_path)
    with pytest.raises(SettingsInvalid, match="--jobs-dir"):
        JobStore(tmp_path)
    first.close()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SettingsInvalid, match="cannot be used"):
        JobStore(tmp_path / "file")
