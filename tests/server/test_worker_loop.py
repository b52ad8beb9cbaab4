"""When the worker goes on after a failed edit, and when it ends."""

from collections.abc import Callable, Iterator

import pytest

from imageedit_server.engine.base import OnStep
from imageedit_server.worker.loop import EXIT_STICKY_FAULT, Orders, serve
from imageedit_server.worker.protocol import CancelJob, EditJob, EditResult, FromWorker, JobFailed, LoadReport, StepDone
from server.workers import edit_job

GOOD = None
BROKEN = ValueError("bad shape")
FULL = MemoryError("NPU out of memory")
STICKY = RuntimeError("aclrtSynchronizeStream failed, error code is 507035")


class NoMoreJobs(BaseException):
    """Ends a loop that is still willing to serve."""


class ScriptedEngine:
    """Succeeds or fails in a given order."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = iter(outcomes)
        self.released = 0

    def load(self) -> LoadReport:
        return LoadReport(digest="sha256:0", pipeline="scripted")

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        on_step(1, job.steps)
        error = next(self._outcomes)
        if error is not None:
            raise error
        return EditResult(job_id=job.job_id, picture=job.picture, seconds=0.1, steps=job.steps)

    def release_memory(self) -> None:
        self.released += 1

    def close(self) -> None: ...


def jobs(count: int) -> Callable[[], EditJob]:
    numbers: Iterator[int] = iter(range(count))

    def next_job() -> EditJob:
        for number in numbers:
            return edit_job(f"job-{number}")
        raise NoMoreJobs

    return next_job


def run(*outcomes: Exception | None, cancelled: str = "") -> tuple[int | None, list[FromWorker], ScriptedEngine]:
    """Serve as many jobs as there are outcomes; the code is None when the loop would go on."""
    engine, sent = ScriptedEngine(*outcomes), list[FromWorker]()
    try:
        code = serve(engine, jobs(len(outcomes)), sent.append, cancelled=lambda job_id: job_id == cancelled)
        return code, sent, engine
    except NoMoreJobs:
        return None, sent, engine


def answers(sent: list[FromWorker]) -> list[str]:
    said = []
    for message in sent:
        if isinstance(message, EditResult):
            said.append("picture")
        elif isinstance(message, JobFailed):
            said.append(message.failure.reason + (" sticky" if message.failure.sticky else ""))
    return said


def test_a_good_edit_is_answered_after_its_steps() -> None:
    code, sent, _ = run(GOOD)
    assert code is None
    assert [type(message) for message in sent] == [StepDone, EditResult]


def test_a_failed_edit_is_answered_and_the_next_one_served() -> None:
    code, sent, engine = run(BROKEN, GOOD)
    assert code is None
    assert answers(sent) == ["EditFailed", "picture"]
    assert engine.released == 1


def test_a_sticky_fault_is_answered_and_ends_the_worker() -> None:
    code, sent, engine = run(STICKY, GOOD)
    assert code == EXIT_STICKY_FAULT
    assert answers(sent) == ["DeviceFault sticky"]
    assert engine.released == 0


def test_running_out_of_memory_once_is_survived() -> None:
    code, sent, _ = run(FULL, GOOD)
    assert code is None
    assert answers(sent) == ["OutOfMemory", "picture"]


def test_running_out_of_memory_twice_in_a_row_ends_the_worker() -> None:
    code, sent, _ = run(FULL, FULL, GOOD)
    assert code == EXIT_STICKY_FAULT
    assert answers(sent) == ["OutOfMemory", "OutOfMemory sticky"]


def test_another_answer_in_between_makes_memory_good_again() -> None:
    code, sent, _ = run(FULL, GOOD, FULL, BROKEN, FULL)
    assert code is None
    assert answers(sent) == ["OutOfMemory", "picture", "OutOfMemory", "EditFailed", "OutOfMemory"]


def test_a_cancelled_job_is_answered_and_the_next_one_served() -> None:
    code, sent, engine = run(GOOD, GOOD, cancelled="job-0")
    assert code is None
    assert answers(sent) == ["Cancelled", "picture"]
    assert engine.released == 1


def test_a_job_that_was_cancelled_before_it_began_does_not_begin() -> None:
    _, sent, _ = run(GOOD, cancelled="job-0")
    assert not [message for message in sent if isinstance(message, StepDone)]


def test_a_job_is_ended_from_inside_its_step() -> None:
    orders = Orders()
    orders.take(edit_job("a"))
    engine, sent = ScriptedEngine(GOOD, GOOD), list[FromWorker]()

    def send(message: FromWorker) -> None:
        sent.append(message)
        if isinstance(message, StepDone) and message.job_id == "a":
            orders.take(CancelJob(job_id="a"))
            orders.take(edit_job("b"))
        elif isinstance(message, EditResult):
            raise NoMoreJobs

    with pytest.raises(NoMoreJobs):
        serve(engine, orders.next_job, send, cancelled=orders.cancelled)
    assert answers(sent) == ["Cancelled", "picture"]
    assert [type(message) for message in sent] == [StepDone, JobFailed, StepDone, EditResult]


def test_a_cancelled_job_in_between_does_not_make_memory_good_again() -> None:
    code, sent, _ = run(FULL, FULL, GOOD, cancelled="job-1")
    assert code == EXIT_STICKY_FAULT
    assert answers(sent) == ["OutOfMemory", "Cancelled", "OutOfMemory sticky"]
