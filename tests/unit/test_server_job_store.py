"""What is on disk of each job."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from imageedit_server.api.job_store import JobStore
from imageedit_server.errors import SettingsInvalid
from imageedit_server.gate import jobs as states
from imageedit_server.gate.jobs import Job, JobState


def job(job_id: str = "job_1", *, number: int = 1) -> Job:
    return Job(job_id=job_id, number=number, created_s=10.0, body_bytes=4, digest="d", seed=7)


def test_jobs_and_bodies_are_there_after_the_process_is_gone(tmp_path: Path) -> None:
    first = JobStore(tmp_path)
    first.add(job("job_b", number=2), b"body b")
    first.add(job("job_a"), b"body a")
    first.save(states.started(job("job_a"), 5.0))
    first.close()

    again = JobStore(tmp_path)
    assert [(one.job.job_id, one.job.state) for one in again.all()] == [
        ("job_a", JobState.RUNNING),
        ("job_b", JobState.QUEUED),
    ]
    assert again.body("job_a") == b"body a"
    again.close()


def test_a_job_comes_back_from_disk_as_it_went(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    full = Job(
        job_id="job_1",
        number=3,
        created_s=1.5,
        body_bytes=3,
        digest="d",
        seed=4_294_967_295,
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

    assert [found.job for found in store.all()] == [full]
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
    (tmp_path / "job_1.job.result.part").write_bytes(b"half")
    (tmp_path / "my.job.txt").write_bytes(b"of somebody else")
    store.tidy([job()])

    assert sorted(path.name for path in tmp_path.iterdir() if "sqlite" not in path.name) == [
        "job_1.job.body",
        "my.job.txt",
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


def database(folder: Path) -> Path:
    """The file of a folder with one job."""
    store = JobStore(folder)
    store.add(job(), b"body")
    store.close()
    return folder / "jobs.sqlite"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.sqlite").write_bytes(b"hello " * 1000)
    with pytest.raises(SettingsInvalid, match="file is not a database; give"):
        JobStore(tmp_path)


def test_a_damaged_database_is_refused_at_the_start(tmp_path: Path) -> None:
    file = database(tmp_path)
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(bytes(data))
    with pytest.raises(SettingsInvalid, match="cannot be used"):
        JobStore(tmp_path)


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "jobs.sqlite")
    foreign.execute("CREATE TABLE jobs (name TEXT)")
    foreign.commit()
    with pytest.raises(SettingsInvalid, match="another program"):
        JobStore(tmp_path)

    assert foreign.execute("SELECT name FROM sqlite_master").fetchall() == [("jobs",)]
    foreign.close()


def test_jobs_of_another_version_are_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(database(tmp_path))
    other.execute("PRAGMA user_version=99")
    other.commit()
    other.close()
    with pytest.raises(SettingsInvalid, match="of version 99"):
        JobStore(tmp_path)


def test_a_row_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    altered = sqlite3.connect(database(tmp_path))
    altered.execute("UPDATE jobs SET state = 'dancing'")
    altered.commit()
    altered.close()
    store = JobStore(tmp_path)
    with pytest.raises(SettingsInvalid, match="dancing"):
        store.all()
    store.close()
