"""A job's life as a state machine. Pure: the time is an argument.

queued ─▶ running ─▶ succeeded | failed | cancelled
   ▲          │ the worker or the whole process died under it
   └──────────┘ once; the second time it is failed, as `quarantined`. Put back, without its fault: any number of times
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

# One death may be anyone's fault; a job that takes two workers with it would take them all.
DEATHS_ALLOWED = 1
QUARANTINED = "quarantined"
LOST_BODY = "body_lost"
LOST_RESULT = "result_lost"
UNWRITTEN_RESULT = "result_not_written"


class JobState(Enum):
    """Where a job stands; the values are those of the API and of the store."""

    QUEUED = "queued"
    RUNNING = "in_progress"
    SUCCEEDED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. Times are seconds since 1970; `deaths` counts the workers that died under it.

    `number` is its place in the order of arrival, which no clock changes. `key` is the idempotency key with its owner,
    `digest` the SHA-256 of the body. `seed` is fixed here, so that a job that runs again gives the same picture.
    """

    job_id: str
    number: int
    created_s: float
    body_bytes: int
    digest: str
    seed: int
    key: str | None = None
    state: JobState = JobState.QUEUED
    started_s: float | None = None
    ended_s: float | None = None
    deaths: int = 0
    expected_s: float = 0.0
    result_bytes: int = 0
    error_code: str | None = None
    error_message: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing happens to it any more."""
        return self.state in ENDED


# | state       | started | succeeded | failed | died, first time | died again           | put back | cancelled |
# | ----------- | ------- | --------- | ------ | ---------------- | -------------------- | -------- | --------- |
# | queued      | running | -         | failed | -                | -                    | -        | cancelled |
# | in_progress | -       | succeeded | failed | queued           | failed (quarantined) | queued   | cancelled |
# | any other   | -       | -         | -      | -                | -                    | -        | -         |
def started(job: Job, now_s: float) -> Job:
    """Its edit goes to the card."""
    return job if job.state is not JobState.QUEUED else replace(job, state=JobState.RUNNING, started_s=now_s)


def succeeded(job: Job, now_s: float, *, result_bytes: int) -> Job:
    """Its result is a whole file."""
    if job.state is not JobState.RUNNING:
        return job
    return replace(job, state=JobState.SUCCEEDED, ended_s=now_s, result_bytes=result_bytes)


def failed(job: Job, now_s: float, *, code: str, message: str) -> Job:
    """It cannot be done."""
    if job.ended:
        return job
    return replace(job, state=JobState.FAILED, ended_s=now_s, error_code=code, error_message=message)


def died(job: Job, now_s: float) -> Job:
    """The worker or the process died while it ran."""
    if job.state is not JobState.RUNNING:
        return job
    job = replace(job, deaths=job.deaths + 1)
    if job.deaths <= DEATHS_ALLOWED:
        return replace(job, state=JobState.QUEUED, started_s=None)
    return failed(
        job,
        now_s,
        code=QUARANTINED,
        message=f"The worker died {job.deaths} times during this job; it is not run again.",
    )


def put_back(job: Job, now_s: float) -> Job:
    """It could not run or end for a reason that is not its own: a disk that is full, a worker that was away."""
    del now_s
    return job if job.state is not JobState.RUNNING else replace(job, state=JobState.QUEUED, started_s=None)


def cancelled(job: Job, now_s: float) -> Job:
    """Its client wants it no more."""
    return job if job.ended else replace(job, state=JobState.CANCELLED, ended_s=now_s)


def expired(job: Job, now_s: float, *, keep_s: float) -> bool:
    """Whether an ended job is to be deleted."""
    return job.ended_s is not None and now_s - job.ended_s >= keep_s


# | state       | body  | result | then                                                               |
# | ----------- | ----- | ------ | ------------------------------------------------------------------ |
# | queued      | there | any    | as it is                                                           |
# | queued      | gone  | any    | failed (body_lost)                                                 |
# | in_progress | any   | whole  | succeeded: the process died between the result and its state       |
# | in_progress | there | none   | died                                                               |
# | in_progress | gone  | none   | failed (body_lost)                                                 |
# | completed   | any   | whole  | as it is                                                           |
# | completed   | any   | none   | failed (result_lost), with the time of its end                     |
# | any other   | any   | any    | as it is                                                           |
def recovered(job: Job, now_s: float, *, has_body: bool, result_bytes: int | None) -> Job:
    """What a job is that another process left on disk; `result_bytes` is the length of a whole result.

    An end that lies ahead is taken for now: a clock that went back would keep such a job for ever.
    """
    if job.ended_s is not None and job.ended_s > now_s:
        job = replace(job, ended_s=now_s)
    if job.state is JobState.RUNNING and result_bytes is not None:
        return succeeded(job, now_s, result_bytes=result_bytes)
    if not job.ended and not has_body:
        return failed(job, now_s, code=LOST_BODY, message="Its body is gone from disk; send it again.")
    if job.state is JobState.SUCCEEDED and result_bytes != job.result_bytes:
        message = "Its result is gone from disk; send the job again."
        return replace(job, state=JobState.FAILED, result_bytes=0, error_code=LOST_RESULT, error_message=message)
    return died(job, now_s)
