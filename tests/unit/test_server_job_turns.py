"""Jobs and requests share one card: neither starves, and the estimate of a request stays true."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from imageedit_server.api.queue import EditQueue, OnStep
from imageedit_server.gate.admission import Ask, Limits, Refusal, Work, refusal
from imageedit_server.gate.drain import DrainPhase
from imageedit_server.gate.estimate import Load
from imageedit_server.gate.turns import job_may_enter
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.shapes import Size
from unit.operator_shell.virtual_time import now, run_virtual

TABLE = [
    *[
        (phase, ready, jobs_in, False)
        for phase in DrainPhase
        if phase is not DrainPhase.ACCEPTING
        for ready in (True, False)
        for jobs_in in (0, 1)
    ],
    (DrainPhase.ACCEPTING, False, 0, False),
    (DrainPhase.ACCEPTING, False, 1, False),
    (DrainPhase.ACCEPTING, True, 1, False),
    (DrainPhase.ACCEPTING, True, 0, True),
]


@pytest.mark.parametrize(("drain", "worker_ready", "jobs_in", "enters"), TABLE)
def test_a_job_gets_in_by_the_table(drain: DrainPhase, worker_ready: bool, jobs_in: int, enters: bool) -> None:
    assert job_may_enter(drain=drain, worker_ready=worker_ready, jobs_in=jobs_in) is enters


@pytest.mark.parametrize(
    ("running", "waiting", "jobs", "hard_limit", "refused"),
    [
        (1, 0, 1, 0, None),
        (1, 1, 1, 0, Refusal.QUEUE_FULL),
        (1, 2, 1, 2, None),
        (1, 3, 1, 2, Refusal.QUEUE_FULL),
        (1, 2, 0, 2, Refusal.QUEUE_FULL),
    ],
)
def test_jobs_take_no_place_of_the_hard_limit(
    running: int, waiting: int, jobs: int, hard_limit: int, refused: Refusal | None
) -> None:
    found = refusal(
        drain=DrainPhase.ACCEPTING,
        worker_ready=True,
        work=Work(load=Load(running=running, waiting=waiting), ahead_s=1.0, jobs=jobs),
        limits=Limits(hard_limit=hard_limit),
        ask=Ask(),
    )

    assert (None if found is None else found.reason) is refused


@pytest.mark.parametrize(("ahead_s", "jobs_s", "refused"), [(9, 4, None), (11, 6, None), (11, 4, "wait_too_long")])
def test_jobs_do_not_count_for_the_longest_wait(ahead_s: float, jobs_s: float, refused: str | None) -> None:
    found = refusal(
        drain=DrainPhase.ACCEPTING,
        worker_ready=True,
        work=Work(load=Load(running=1, waiting=2), ahead_s=ahead_s, jobs=1, jobs_s=jobs_s),
        limits=Limits(hard_limit=9, max_wait_s=5.0),
        ask=Ask(),
    )

    assert (None if found is None else found.reason.value) == refused


@dataclass
class Crowd:
    """A card whose edits take as many seconds as they have steps, requests without a pause, and jobs."""

    hard_limit: int
    max_wait_s: float
    longest_s: int
    jobs: int
    seed: int
    promised: dict[str, tuple[float, float]] = field(default_factory=dict)
    started_s: dict[str, float] = field(default_factory=dict)
    first_in_line_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.queue = EditQueue(edit=self._edit, now_s=now, expected_s=lambda job: float(job.steps))
        self.queue.release()

    async def _edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        self.started_s[job.job_id] = now()
        await asyncio.sleep(job.steps)
        return EditResult(job_id=job.job_id, picture=b"", seconds=job.steps, steps=job.steps)

    def _job(self, name: str) -> EditJob:
        steps = self.random.randint(1, self.longest_s)
        return EditJob(job_id=name, picture=b"", size=Size(32, 32), prompt="p", steps=steps, seed=0)

    async def _requests(self) -> None:
        limits = Limits(hard_limit=self.hard_limit, max_wait_s=self.max_wait_s)
        number = 0
        while True:
            work = self.queue.line.work
            ask = Ask()
            if not refusal(drain=DrainPhase.ACCEPTING, worker_ready=True, work=work, limits=limits, ask=ask):
                number += 1
                self.promised[f"request {number}"] = (now(), work.ahead_s)
                self.queue.submit(self._job(f"request {number}"))
            else:
                await asyncio.sleep(self.random.choice((0.0, 0.25, 1.0)) or 0.125)

    async def _run_jobs(self) -> None:
        for number in range(self.jobs):
            self.first_in_line_s[f"job {number}"] = now()
            while not job_may_enter(drain=DrainPhase.ACCEPTING, worker_ready=True, jobs_in=self.queue.line.work.jobs):  # noqa: ASYNC110
                await asyncio.sleep(0.25)
            await asyncio.wait([self.queue.submit(self._job(f"job {number}"), of_job=True).answer])

    async def run(self) -> None:
        tasks = [asyncio.create_task(one) for one in (self.queue.run(), self._requests())]
        await asyncio.sleep(self.longest_s * 3)
        await self._run_jobs()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


# hard limit, longest wait, longest edit
CROWDS = {"by time": (50, 40.0, 4), "by count": (3, 1000.0, 9), "nothing waits": (0, 10.0, 6), "no wait": (50, 0.0, 6)}


@pytest.fixture(params=CROWDS.values(), ids=list(CROWDS))
def crowd(request: pytest.FixtureRequest) -> Crowd:
    hard_limit, max_wait_s, longest_s = request.param

    async def run() -> Crowd:
        made = Crowd(hard_limit=hard_limit, max_wait_s=max_wait_s, longest_s=longest_s, jobs=12, seed=hard_limit)
        await made.run()
        return made

    return run_virtual(run)


def test_a_job_starts_within_its_bound_however_many_requests_come(crowd: Crowd) -> None:
    line_s = min(crowd.max_wait_s, (crowd.hard_limit + 1) * crowd.longest_s) + crowd.longest_s
    waits = [crowd.started_s[name] - since for name, since in crowd.first_in_line_s.items()]

    assert len(waits) == crowd.jobs
    assert max(waits) <= line_s + 1


def test_requests_start_between_jobs_however_many_wait(crowd: Crowd) -> None:
    order = sorted(crowd.started_s, key=crowd.started_s.__getitem__)
    first, last = order.index("job 0"), order.index(f"job {crowd.jobs - 1}")
    between = [name for name in order[first:last] if name.startswith("request")]

    assert len(between) >= crowd.jobs - 1


def test_the_wait_that_a_request_was_admitted_with_is_the_wait_that_it_has(crowd: Crowd) -> None:
    errors = [
        abs(crowd.started_s[name] - at - ahead_s)
        for name, (at, ahead_s) in crowd.promised.items()
        if name in crowd.started_s
    ]

    assert errors
    # What is over its time is taken for 5 % more, so that nothing is ever nearly free.
    assert max(errors) <= 0.05 * crowd.longest_s + 1e-6
