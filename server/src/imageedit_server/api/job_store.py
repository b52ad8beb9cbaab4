"""Jobs on disk: their states in SQLite, bodies and results as files. Blocking: one thread calls it.

A file is written under another name and renamed, so it is whole or absent. A row names only files that are there:
the body comes before its row, the result before its state.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from imageedit_server.errors import SettingsInvalid
from imageedit_server.gate.jobs import Job, JobState

COLUMNS = tuple(field.name for field in fields(Job))
SCHEMA = (
    "CREATE TABLE jobs (job_id TEXT PRIMARY KEY, number INTEGER NOT NULL, created_s REAL NOT NULL,"
    " body_bytes INTEGER NOT NULL, digest TEXT NOT NULL, seed INTEGER NOT NULL, key TEXT, state TEXT NOT NULL,"
    " started_s REAL, ended_s REAL, deaths INTEGER NOT NULL, expected_s REAL NOT NULL, result_bytes INTEGER NOT NULL,"
    " error_code TEXT, error_message TEXT)"
)
UPSERT = f"INSERT OR REPLACE INTO jobs ({', '.join(COLUMNS)}) VALUES ({', '.join(':' + name for name in COLUMNS)})"
SCHEMA_VERSION = 2
# "imej": tells our file from that of another program that happens to lie there.
APPLICATION_ID = 0x696D656A
BODY, RESULT, UNFINISHED = ".job.body", ".job.result", ".part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A job as another process left it, and which of its files are whole."""

    job: Job
    has_body: bool
    result_bytes: int | None


class JobStore:
    """The jobs in one folder, which belongs to one process at a time.

    Raises:
        SettingsInvalid: the folder cannot be written, is damaged, or belongs to another program, version or process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._usable(), contextlib.ExitStack() as opened:
            folder.mkdir(parents=True, exist_ok=True)
            self._rows = sqlite3.connect(
                folder / "jobs.sqlite", timeout=1.0, isolation_level=None, check_same_thread=False
            )
            opened.callback(self._rows.close)
            self._prepare()
            opened.pop_all()

    def _prepare(self) -> None:
        # Two processes on one folder would run every job twice.
        self._rows.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        with self._transaction():
            if not self._is_ours():
                self._rows.execute(SCHEMA)
                self._rows.execute(f"PRAGMA application_id={APPLICATION_ID}")
                self._rows.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        # Damage is found now, not in the middle of a job; a file with ten thousand jobs takes milliseconds.
        (verdict,) = self._rows.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise OSError(f"its jobs.sqlite is damaged ({verdict})")

    def _is_ours(self) -> bool:
        """Whether it has the jobs of this version; an empty file has nothing.

        Raises:
            OSError: it has something else.
        """
        (tables,) = self._rows.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = self._rows.execute("PRAGMA application_id").fetchone()
        (version,) = self._rows.execute("PRAGMA user_version").fetchone()
        if tables == 0:
            return False
        if application != APPLICATION_ID:
            raise OSError("its jobs.sqlite was made by another program")
        if version != SCHEMA_VERSION:
            raise OSError(f"its jobs are of version {version}, this server knows {SCHEMA_VERSION}")
        return True

    def all(self) -> list[Found]:
        """Every job in the order of arrival.

        Raises:
            SettingsInvalid: what is there cannot be read.
        """
        query = f"SELECT {', '.join(COLUMNS)} FROM jobs ORDER BY number, job_id"
        with self._usable():
            sizes = {entry.name: entry.stat().st_size for entry in os.scandir(self._folder) if entry.is_file()}
            jobs = [_job(row) for row in self._rows.execute(query)]
        return [
            Found(job=job, has_body=job.job_id + BODY in sizes, result_bytes=sizes.get(job.job_id + RESULT))
            for job in jobs
        ]

    def tidy(self, jobs: Iterable[Job]) -> None:
        """Delete the files that no job needs: the process died while it wrote or deleted them."""
        needed = {job.job_id + (RESULT if job.ended else BODY) for job in jobs}
        for path in self._folder.glob("*.job.*"):
            if path.name.endswith((BODY, RESULT, UNFINISHED)) and path.name not in needed:
                path.unlink(missing_ok=True)

    def add(self, job: Job, body: bytes) -> None:
        """A new job.

        Raises:
            OSError, sqlite3.Error: it is not kept, and nothing of it is left.
        """
        try:
            self._write(self._path(job.job_id, BODY), body)
            self.save(job)
        except BaseException:
            self._path(job.job_id, BODY).unlink(missing_ok=True)
            raise

    def save(self, job: Job) -> None:
        """A job's new state; an ended one needs its body no more, one without success no result."""
        self._rows.execute(UPSERT, {**asdict(job), "state": job.state.value})
        if job.ended:
            self._path(job.job_id, BODY).unlink(missing_ok=True)
            if job.state is not JobState.SUCCEEDED:
                self._path(job.job_id, RESULT).unlink(missing_ok=True)

    def body(self, job_id: str) -> bytes | None:
        """The body that was sent, if it is there."""
        return self._read(self._path(job_id, BODY))

    def write_result(self, job_id: str, result: bytes) -> None:
        """The answer of a job."""
        self._write(self._path(job_id, RESULT), result)

    def discard_result(self, job_id: str) -> None:
        """Delete an answer that nobody wants any more."""
        self._path(job_id, RESULT).unlink(missing_ok=True)

    def result(self, job_id: str) -> bytes | None:
        """The answer of a job, if there is one."""
        return self._read(self._path(job_id, RESULT))

    def delete(self, job_id: str) -> None:
        """Row and files; nothing happens when they are gone already."""
        self._rows.execute("DELETE FROM jobs WHERE job_id = ?", (job_id,))
        for kind in (BODY, RESULT):
            self._path(job_id, kind).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder."""
        self._rows.close()

    def _path(self, job_id: str, kind: str) -> Path:
        return self._folder / (job_id + kind)

    @staticmethod
    def _read(path: Path) -> bytes | None:
        with contextlib.suppress(FileNotFoundError):
            return path.read_bytes()
        return None

    def _write(self, path: Path, data: bytes) -> None:
        unfinished = path.with_name(path.name + UNFINISHED)
        try:
            with unfinished.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            self._sync_names()
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

    def _sync_names(self) -> None:
        """Without it a power cut can take back the new name of a file, while the row that names it stays."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._rows.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._rows.execute("ROLLBACK")
            raise
        self._rows.execute("COMMIT")

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, ValueError) as error:
            raise SettingsInvalid(
                f"--jobs-dir {self._folder} cannot be used: {error}; give a folder that this process alone can write,"
                " and move a jobs.sqlite away that is damaged or not of this version: its jobs are lost then"
            ) from error


def _job(row: tuple[object, ...]) -> Job:
    values: dict[str, object] = dict(zip(COLUMNS, row, strict=True))
    return Job(**{**values, "state": JobState(values["state"])})  # type: ignore[arg-type]
