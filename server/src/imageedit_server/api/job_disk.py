"""The store of jobs behind one thread, so that no event loop waits for a disk and every call keeps its order."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from imageedit_server.api.job_store import Found, JobStore
from imageedit_server.errors import StorageUnusable
from imageedit_server.logs import fields

log = logging.getLogger("imageedit.jobs")

T = TypeVar("T")

RETRY_AFTER_S = 30


class JobDisk:
    """The disk of one folder of jobs.

    Raises:
        SettingsInvalid: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.store = JobStore(folder)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jobs")

    async def all(self) -> list[Found]:
        """Every job that is there.

        Raises:
            SettingsInvalid: what is there cannot be read.
        """
        return await self._in_thread(self.store.all)

    async def call(self, method: Callable[..., T], *arguments: object) -> T:
        """Call a method of the store, after all that was called before.

        Raises:
            StorageUnusable: the disk does not work now.
        """
        try:
            return await self._in_thread(method, *arguments)
        except (OSError, sqlite3.Error) as error:
            log.error("jobs_unavailable", extra=fields(call=method.__name__, error=str(error)))
            raise StorageUnusable(
                f"The disk of the jobs does not work now; try again in {RETRY_AFTER_S} s, or ask its owner.",
                code="jobs_unavailable",
                retry_after_s=RETRY_AFTER_S,
            ) from error

    async def close(self) -> None:
        """Let go of the folder."""
        await self._in_thread(self.store.close)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, method: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: method(*arguments))
