"""The jobs whose state the disk has not taken yet. All methods belong to one event loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from imageedit_server.api.job_disk import JobDisk
from imageedit_server.errors import StorageUnusable
from imageedit_server.gate.jobs import Job


class Unsaved:
    """Notes them, and writes each as it is when its time comes.

    Args:
        now: what is known of a job now; None when it was deleted.
    """

    def __init__(self, disk: JobDisk, *, now: Callable[[str], Job | None]) -> None:
        self._disk = disk
        self._now = now
        self._noted: set[str] = set()
        self._leaving: set[str] = set()

    def note(self, job_id: str) -> None:
        """A job has a new state."""
        self._noted.add(job_id)

    async def save(self) -> None:
        """Write the states that are noted, up to the first one that the disk does not take."""
        for job_id in list(self._noted):
            job = self._now(job_id)
            self._noted.discard(job_id)
            try:
                if job is not None:
                    await self._disk.call(self._disk.store.save, job)
            except StorageUnusable:
                if job_id not in self._leaving:
                    self._noted.add(job_id)
                return

    @contextlib.contextmanager
    def leaving(self, job_id: str) -> Iterator[None]:
        """While a job is deleted: nothing of it is written behind that, also when a state that is on its way does not
        get there. A job that could not be deleted has a state to write again."""
        self._noted.discard(job_id)
        self._leaving.add(job_id)
        try:
            yield
        except StorageUnusable:
            self._noted.add(job_id)
            raise
        finally:
            self._leaving.discard(job_id)
