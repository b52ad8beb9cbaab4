"""All jobs of one folder in memory: by id, by key, and those that wait in the order of their arrival. Pure.

Everything that is asked for each request or poll costs the same however many jobs there are, or is one walk over those
that wait.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from imageedit_server.gate.jobs import Job, JobState, expired


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """How long ended jobs are kept; how many wait or run, and are there at all; the bytes of bodies and results."""

    keep_s: float
    max_open: int
    max_kept: int
    max_bytes: int


class JobBook:
    """What is known of each job now."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._by_key: dict[str, str] = {}
        # Numbers and ids of those that wait. One that is put back stands where it stood before.
        self._queued: list[tuple[int, str]] = []
        self._states: Counter[JobState] = Counter()
        self._held_bytes = 0
        self._last_number = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    @property
    def next_number(self) -> int:
        """Place of the next job in the order of arrival."""
        return self._last_number + 1

    @property
    def open(self) -> int:
        """Jobs that wait or run."""
        return self.count(JobState.QUEUED) + self.count(JobState.RUNNING)

    @property
    def open_s(self) -> float:
        """Expected seconds of all jobs that wait or run."""
        return sum(job.expected_s for job in self._jobs.values() if not job.ended)

    def count(self, state: JobState) -> int:
        """Jobs in one state."""
        return self._states[state]

    def get(self, job_id: str) -> Job | None:
        """A job, if there is one of that id."""
        return self._jobs.get(job_id)

    def of_key(self, key: str) -> Job | None:
        """The job of an idempotency key."""
        return self._jobs.get(self._by_key.get(key, ""))

    def queued(self) -> Iterator[Job]:
        """The jobs that wait, the first one first."""
        return (self._jobs[job_id] for _, job_id in self._queued)

    def put(self, job: Job) -> None:
        """A new job, or what one has become."""
        self.drop(job.job_id)
        self._jobs[job.job_id] = job
        self._last_number = max(self._last_number, job.number)
        self._states[job.state] += 1
        self._held_bytes += _held_bytes(job)
        if job.key is not None:
            self._by_key[job.key] = job.job_id
        if job.state is JobState.QUEUED:
            bisect.insort(self._queued, (job.number, job.job_id))

    def drop(self, job_id: str) -> None:
        """Forget a job; nothing happens when it is not there."""
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        self._states[job.state] -= 1
        self._held_bytes -= _held_bytes(job)
        if job.key is not None and self._by_key.get(job.key) == job_id:
            del self._by_key[job.key]
        if job.state is JobState.QUEUED:
            del self._queued[bisect.bisect_left(self._queued, (job.number, job_id))]

    # | open      | there      | bytes with this body | room |
    # | --------- | ---------- | -------------------- | ---- |
    # | max_open  | any        | any                  | no   |
    # | any       | max_kept   | any                  | no   |
    # | any       | any        | above max_bytes      | no   |
    # | fewer     | fewer      | up to max_bytes      | yes  |
    def has_room(self, limits: JobLimits, *, body_bytes: int) -> bool:
        """Whether one more job may be there."""
        return (
            self.open < limits.max_open
            and len(self._jobs) < limits.max_kept
            and self._held_bytes + body_bytes <= limits.max_bytes
        )

    def expired(self, now_s: float, *, keep_s: float) -> list[Job]:
        """The ended jobs whose time is over."""
        return [job for job in self._jobs.values() if expired(job, now_s, keep_s=keep_s)]

    def before(self, job: Job) -> Iterable[Job]:
        """The jobs that wait and come first."""
        for number, job_id in self._queued:
            if number >= job.number:
                return
            yield self._jobs[job_id]


def _held_bytes(job: Job) -> int:
    return job.result_bytes + (0 if job.ended else job.body_bytes)
