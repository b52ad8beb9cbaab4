"""Warm-up: every size is run and timed, and bad pictures are found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.engine.base import OnStep
from imageedit_server.engine.warmup import MIN_CONTRAST, check_edit, draw_picture, warm_up
from imageedit_server.worker.protocol import EditJob, EditResult, LoadReport, Size, WarmReport, WorkerError
from server.workers import real_settings

WIDE, SQUARE = Size(96, 64), Size(64, 64)
BLACK = bytes(3 * SQUARE.area_px)


class RecordingEngine:
    """Answers each edit with a fixed picture, or the mirrored input, and remembers the jobs."""

    def __init__(self, *, picture: bytes | None = None, error: Exception | None = None) -> None:
        self.jobs: list[EditJob] = []
        self._picture = picture
        self._error = error

    def load(self) -> LoadReport:
        return LoadReport(digest="sha256:0", pipeline="recording")

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        self.jobs.append(job)
        if self._error is not None:
            raise self._error
        on_step(job.steps, job.steps)
        picture = job.picture[::-1] if self._picture is None else self._picture
        return EditResult(job_id=job.job_id, picture=picture, seconds=job.steps / 10)

    def release_memory(self) -> None: ...

    def close(self) -> None: ...


def warm(engine: RecordingEngine, *, sizes: tuple[Size, ...] = (SQUARE,), steps: int = 16) -> WarmReport:
    clock = iter((10.0, 17.5))
    return warm_up(engine, real_settings(sizes=sizes, steps=steps), clock_s=lambda: next(clock))


def test_every_size_is_run_briefly_and_then_timed_with_all_steps() -> None:
    engine = RecordingEngine()
    report = warm(engine, sizes=(SQUARE, WIDE))
    assert [(job.size, job.steps) for job in engine.jobs] == [(SQUARE, 2), (SQUARE, 16), (WIDE, 2), (WIDE, 16)]
    assert report.edit_s_by_size == {"64x64": 1.6, "96x64": 1.6}
    assert report.warmup_s == 7.5
    assert report.check_ok


def test_a_model_that_paints_everything_black_fails_the_check() -> None:
    report = warm(RecordingEngine(picture=BLACK))
    assert not report.check_ok
    assert "one colour" in report.check_message


def test_a_model_that_returns_its_input_fails_the_check() -> None:
    report = warm(RecordingEngine(picture=draw_picture(SQUARE)))
    assert not report.check_ok
    assert "gave its input back" in report.check_message


def test_one_bad_size_fails_the_check_and_is_named() -> None:
    report = warm(RecordingEngine(picture=bytes(range(256)) * 48), sizes=(SQUARE, WIDE))
    assert not report.check_ok
    assert "96x64" in report.check_message


def test_an_error_while_warming_names_the_size_and_the_cause() -> None:
    with pytest.raises(WorkerError, match="warm-up at 64x64 failed") as caught:
        warm(RecordingEngine(error=MemoryError("NPU out of memory")))
    assert caught.value.failure.reason == "WarmupFailed"
    assert "out of memory" in caught.value.failure.message


@given(st.binary(min_size=3, max_size=3))
def test_no_picture_of_one_colour_passes(colour: bytes) -> None:
    assert MIN_CONTRAST > 0
    ok, _ = check_edit(SQUARE, draw_picture(SQUARE), colour * SQUARE.area_px)
    assert not ok


def test_the_warm_up_picture_is_itself_a_picture() -> None:
    ok, message = check_edit(WIDE, bytes(3 * WIDE.area_px), draw_picture(WIDE))
    assert ok, message
