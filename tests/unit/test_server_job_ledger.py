"""What is known of jobs in memory and what is on disk stay one, though the disk is slow or takes nothing meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from imageedit_server.api.job_ledger import JobLedger, NewJob
from imageedit_server.errors import NotFound
from imageedit_server.gate.job_book import JobLimits
from support.full_disk import disk_full

LIMITS = JobLimits(keep_s=100.0, max_open=50, max_kept=50, max_bytes=10**6)
NEW = NewJob(body=b"body", digest=hashlib.sha256(b"body").hexdigest(), key=None, seed=1, expected_s=1.0)


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[JobLedger]:
    ledger = JobLedger(folder, LIMITS, now_s=lambda: 100.0)
    await ledger.load()
    try:
        yield ledger
    finally:
        await ledger.close()


class SlowRead:
    """A body whose reading takes until it is ended: what the ledger asks of the disk afterwards waits for it."""

    def __init__(self, ledger: JobLedger, folder: Path, name: str) -> None:
        self._pipe = folder / f"{name}.job.body"
        os.mkfifo(self._pipe)
        self._reading = asyncio.create_task(ledger.body(name))

    async def end(self) -> None:
        await asyncio.to_thread(self._pipe.write_bytes, b"")
        with contextlib.suppress(NotFound):
            await self._reading


async def test_a_deleted_job_stays_deleted_though_the_disk_was_full_when_its_last_state_came(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        job_id = (await ledger.add(NEW)).job_id
        before_the_state = SlowRead(ledger, tmp_path, "one")
        ending = asyncio.create_task(ledger.cancelled(job_id))
        await asyncio.sleep(0)
        before_the_deletion = SlowRead(ledger, tmp_path, "two")
        await asyncio.sleep(0)
        deleting = asyncio.create_task(ledger.delete(job_id))
        await asyncio.sleep(0)
        with disk_full():
            await before_the_state.end()
            await ending
        sweeping = asyncio.create_task(ledger.sweep())
        await asyncio.sleep(0)
        await before_the_deletion.end()
        await asyncio.gather(deleting, sweeping)

    async with opened(tmp_path) as ledger:
        assert list(ledger.book) == []


async def cut_off(ledger: JobLedger, root: Path) -> tuple[SlowRead, asyncio.Task[Any]]:
    """A client that leaves while the disk, busy with a read before it, is to take its job."""
    before_it = SlowRead(ledger, root, "one")
    await asyncio.sleep(0)
    adding = asyncio.create_task(ledger.add(NEW))
    await asyncio.sleep(0)
    adding.cancel()
    return before_it, adding


async def test_a_job_that_the_disk_did_not_take_is_forgotten_though_its_client_had_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        before_it, _ = await cut_off(ledger, tmp_path)
        with disk_full():
            await before_it.end()
            await ledger.body("none")

        assert list(ledger.book) == []


async def test_a_job_whose_client_left_is_not_run_before_the_disk_has_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        before_it, adding = await cut_off(ledger, tmp_path)
        await asyncio.wait([adding])
        waiting_early = list(ledger.waiting())
        await before_it.end()
        await ledger.body("none")

        assert waiting_early == []
        assert len(list(ledger.waiting())) == 1
