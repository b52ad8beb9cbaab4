"""A job's life by its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.gate import jobs as states
from imageedit_server.gate.jobs import Job, JobState

Event = Callable[[Job], Job]
EVENTS: dict[str, Event] = {
    "started": lambda job: states.started(job, 20.0),
    "succeeded": lambda job: states.succeeded(job, 30.0, result_bytes=7),
    "failed": lambda job: states.failed(job, 30.0, code="edit_failed", message="why"),
    "put back": lambda job: states.put_back(job, 30.0),
    "died": lambda job: states.died(job, 30.0),
    "cancelled": lambda job: states.cancelled(job, 30.0),
}


def job(job_id: str = "job_1", *, state: JobState = JobState.QUEUED, deaths: int = 0, number: int = 1) -> Job:
    return Job(
        job_id=job_id, number=number, created_s=10.0, body_bytes=4, digest="d", seed=7, state=state, deaths=deaths
    )


TABLE = [
    (JobState.QUEUED, 0, "started", JobState.RUNNING),
    (JobState.QUEUED, 0, "succeeded", JobState.QUEUED),
    (JobState.QUEUED, 0, "failed", JobState.FAILED),
    (JobState.QUEUED, 0, "died", JobState.QUEUED),
    (JobState.QUEUED, 0, "put back", JobState.QUEUED),
    (JobState.QUEUED, 0, "cancelled", JobState.CANCELLED),
    (JobState.RUNNING, 0, "started", JobState.RUNNING),
    (JobState.RUNNING, 0, "succeeded", JobState.SUCCEEDED),
    (JobState.RUNNING, 0, "failed", JobState.FAILED),
    (JobState.RUNNING, 0, "died", JobState.QUEUED),
    (JobState.RUNNING, 1, "died", JobState.FAILED),
    (JobState.RUNNING, 0, "put back", JobState.QUEUED),
    (JobState.RUNNING, 1, "put back", JobState.QUEUED),
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


@given(st.lists(st.sampled_from(sorted(EVENTS.keys() - {"put back"})), max_size=30))
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


RECOVERED = [
    (JobState.QUEUED, True, None, JobState.QUEUED, None),
    (JobState.QUEUED, True, 9, JobState.QUEUED, None),
    (JobState.QUEUED, False, None, JobState.FAILED, "body_lost"),
    (JobState.RUNNING, True, 9, JobState.SUCCEEDED, None),
    (JobState.RUNNING, False, 9, JobState.SUCCEEDED, None),
    (JobState.RUNNING, True, None, JobState.QUEUED, None),
    (JobState.RUNNING, False, None, JobState.FAILED, "body_lost"),
    (JobState.SUCCEEDED, False, 9, JobState.SUCCEEDED, None),
    (JobState.SUCCEEDED, True, None, JobState.FAILED, "result_lost"),
    (JobState.SUCCEEDED, True, 8, JobState.FAILED, "result_lost"),
    (JobState.FAILED, True, 9, JobState.FAILED, None),
    (JobState.CANCELLED, True, 9, JobState.CANCELLED, None),
]


@pytest.mark.parametrize(("state", "has_body", "result_bytes", "expected", "code"), RECOVERED)
def test_a_job_of_a_process_that_is_gone_follows_its_table(
    state: JobState, has_body: bool, result_bytes: int | None, expected: JobState, code: str | None
) -> None:
    left = replace(job(state=state), ended_s=15.0 if state in states.ENDED else None)
    if state is JobState.SUCCEEDED:
        left = replace(left, result_bytes=9)
    found = states.recovered(left, 30.0, has_body=has_body, result_bytes=result_bytes)

    assert (found.state, found.error_code) == (expected, code)
    assert found.ended == (found.ended_s is not None)


def test_a_job_that_ended_in_the_future_of_a_clock_that_went_back_ended_now() -> None:
    left = replace(states.cancelled(job(), 4e9), state=JobState.CANCELLED)

    assert states.recovered(left, 1e9, has_body=False, result_bytes=None).ended_s == 1e9
