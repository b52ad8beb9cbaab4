"""Jobs on disk: their states in SQLite, bodies and results as files. Blocking: one thread calls it.

A file is written under another name and renamed, so it is whole or absent. A row names only files that are there:
the body comes before its row, the result before its state.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from imageedit_server.errors import SettingsInvalid
from imageedit_server.gate.jobs import Job, JobState

COLUMNS = tuple(field.name for field in fields(Job))
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS jobs (job_id TEXT PRIMARY KEY, created_s REAL NOT NULL, body_bytes INTEGER NOT NULL,"
    " digest TEXT NOT NULL, key TEXT, state TEXT NOT NULL, started_s REAL, ended_s REAL, deaths INTEGER NOT NULL,"
    " expected_s REAL NOT NULL, result_bytes INTEGER NOT NULL, error_code TEXT, error_message TEXT)"
)
UPSERT = f"INSERT OR REPLACE INTO jobs ({', '.join(COLUMNS)}) VALUES ({', '.join(':' + name for name in COLUMNS)})"
SCHEMA_VERSION = 1


class JobStore:
    """The jobs in one folder, which belongs to one process at a time.

    Raises:
        SettingsInvalid: the folder cannot be written, or belongs to another version or process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._rows = sqlite3.connect(
                folder / "jobs.sqlite", timeout=1.0, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise SettingsInvalid(
                f"--jobs-dir {folder} cannot be used: {error}; give a folder that this process alone can write"
            ) from error

    def _prepare(self) -> None:
        # Two processes on one folder would run every job twice.
        self._rows.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        (version,) = self._rows.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise OSError(f"its jobs are of version {version}, this server knows {SCHEMA_VERSION}")
        with self._transaction():
            self._rows.execute(SCHEMA)
            self._rows.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def all(self) -> list[Job]:
        """Every job, oldest first. Files that no row names are deleted: the process died while it wrote them."""
        query = f"SELECT {', '.join(COLUMNS)} FROM jobs ORDER BY created_s, job_id"
        jobs = []
        for row in self._rows.execute(query):
            values = dict(zip(COLUMNS, row, strict=True))
            jobs.append(Job(**{**values, "state": JobState(values["state"])}))
        known = {job.job_id for job in jobs}
        for path in self._folder.glob("*.job.*"):
            if path.name.endswith(".part") or path.name.partition(".")[0] not in known:
                path.unlink(missing_ok=True)
        return jobs

    def add(self, job: Job, body: bytes) -> None:
        """A new job.

        Raises:
            OSError, sqlite3.Error: it is not kept, and nothing of it is left.
        """
        try:
            self._write(self._body(job.job_id), body)
            self.save(job)
        except BaseException:
            self._body(job.job_id).unlink(missing_ok=True)
            raise

    def save(self, job: Job) -> None:
        """A job's new state; the body of one that has ended is needed no more."""
        self._rows.execute(UPSERT, {**asdict(job), "state": job.state.value})
        if job.ended:
            self._body(job.job_id).unlink(missing_ok=True)

    def body(self, job_id: str) -> bytes:
        """The body that was sent."""
        return self._body(job_id).read_bytes()

    def write_result(self, job_id: str, result: bytes) -> None:
        """The answer of a job."""
        self._write(self._result(job_id), result)

    def result(self, job_id: str) -> bytes | None:
        """The answer of a job, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            return self._result(job_id).read_bytes()
        return None

    def delete(self, job_id: str) -> None:
        """Row and files; nothing happens when they are gone already."""
        self._rows.execute("DELETE FROM jobs WHERE job_id = ?", (job_id,))
        for path in (self._body(job_id), self._result(job_id)):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder."""
        self._rows.close()

    def _body(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.job.body"

    def _result(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.job.result"

    def _write(self, path: Path, data: bytes) -> None:
        unfinished = path.with_name(path.name + ".part")
        try:
            with unfinished.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._rows.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._rows.execute("ROLLBACK")
            raise
        self._rows.execute("COMMIT")
