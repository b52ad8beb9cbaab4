"""Takes over the jobs of the process before, which may have died at any moment."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass

from imageedit_server.api.job_disk import JobDisk
from imageedit_server.errors import StorageUnusable
from imageedit_server.gate import jobs as states
from imageedit_server.gate.jobs import Job
from imageedit_server.logs import fields

log = logging.getLogger("imageedit.jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """A job as it was left, and as it is from now on."""

    left: Job
    job: Job


async def take_over(disk: JobDisk, now_s: float) -> list[TakenOver]:
    """Every job in the order of arrival, its state made to fit its files; files of no job are deleted.

    Raises:
        SettingsInvalid: what is there cannot be read.
    """
    taken = [
        TakenOver(
            left=found.job,
            job=states.recovered(found.job, now_s, has_body=found.has_body, result_bytes=found.result_bytes),
        )
        for found in await disk.all()
    ]
    # A disk that is full now is no reason not to serve: the next process decides the same.
    with contextlib.suppress(StorageUnusable):
        for one in taken:
            if one.job != one.left:
                log.info(
                    "job_recovered",
                    extra=fields(job_id=one.job.job_id, was=one.left.state.value, now=one.job.state.value),
                )
                await disk.call(disk.store.save, one.job)
        await disk.call(disk.store.tidy, [one.job for one in taken])
    return taken
