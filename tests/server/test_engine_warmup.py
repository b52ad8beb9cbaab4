"""Warm-up: every size is run and timed, and bad pictures are found."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.engine.base import OnStep
from imageedit_server.engine.warmup import MIN_CONTRAST, check_edit, draw_picture, grid, warm_up
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.protocol import Capabilities, EditJob, EditResult, LoadReport, WarmReport
from imageedit_server.worker.shapes import Shape, Size
from server.workers import real_settings

WIDE, SQUARE = Size(96, 64), Size(64, 64)
BLACK = bytes(3 * SQUARE.area_px)


class RecordingEngine:
    """Answers each edit with a fixed picture, or the mirrored input, and remembers the jobs."""

    def __init__(self, *, picture: bytes | None = None, error: Exception | None = None) -> None:
        self.jobs: list[EditJob] = []
        self.now_s = 10.0
        self._picture = picture
        self._error = error

    def load(self) -> LoadReport:
        return LoadReport(digest="sha256:0", pipeline="recording")

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        self.jobs.append(job)
        if self._error is not None:
            raise self._error
        for step in range(1, job.steps + 1):
            self.now_s += 0.1
            on_step(step, job.steps)
        self.now_s += 0.5
        picture = job.picture[::-1] if self._picture is None else self._picture
        return EditResult(job_id=job.job_id, picture=picture, seconds=job.steps / 10, steps=job.steps)

    def release_memory(self) -> None: ...

    def close(self) -> None: ...


def warm(
    engine: RecordingEngine,
    *,
    sizes: tuple[Size, ...] = (SQUARE,),
    steps: int = 16,
    can: Capabilities | None = None,
    **others: Any,
) -> WarmReport:
    settings = real_settings(sizes=sizes, steps=steps, **others)
    return warm_up(engine, settings, can or edits(settings.max_references), clock_s=lambda: engine.now_s)


def edits(max_references: int = 1) -> Capabilities:
    return Capabilities(max_references=max_references)


def test_every_size_is_run_briefly_and_then_timed_with_all_steps() -> None:
    engine = RecordingEngine()
    report = warm(engine, sizes=(SQUARE, WIDE))
    assert [(job.size, job.steps) for job in engine.jobs] == [(SQUARE, 2), (SQUARE, 16), (WIDE, 2), (WIDE, 16)]
    assert report.edit_s_by_size == {"64x64": 1.6, "96x64": 1.6}
    assert report.warmup_s == pytest.approx(2 * (0.2 + 0.5 + 1.6 + 0.5))
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


def test_plain_edits_at_every_size_come_first_and_the_dearest_last() -> None:
    shapes = grid(real_settings(sizes=(SQUARE, WIDE), warm_cfg=True), edits(2))
    assert [str(shape) for shape in shapes] == [
        "64x64",
        "96x64",
        "64x64 and a negative prompt",
        "96x64 and a negative prompt",
        "64x64 with 2 pictures",
        "96x64 with 2 pictures",
        "64x64 with 2 pictures and a negative prompt",
        "96x64 with 2 pictures and a negative prompt",
    ]


def test_only_plain_edits_are_warmed_unless_the_settings_allow_more() -> None:
    assert grid(real_settings(sizes=(SQUARE, WIDE)), edits()) == (Shape(size=SQUARE), Shape(size=WIDE))


def test_a_model_that_makes_pictures_from_text_alone_warms_those_alone() -> None:
    can = Capabilities(edit=False, generate=True, max_references=0)
    shapes = grid(real_settings(sizes=(SQUARE, WIDE), max_references=3, warm_cfg=True), can)
    assert [str(shape) for shape in shapes] == [
        "64x64 from text",
        "96x64 from text",
        "64x64 from text and a negative prompt",
        "96x64 from text and a negative prompt",
    ]


def test_a_model_that_does_both_warms_both_whatever_the_budget() -> None:
    can = Capabilities(generate=True, max_references=2)
    engine = RecordingEngine(picture=bytes(range(256)) * 48)
    report = warm(engine, can=can, warmup_budget_s=0.0)
    assert [warmed.shape.references for warmed in report.served] == [1, 0]
    assert [bool(job.picture) for job in engine.jobs] == [True, True, False, False]
    assert report.edit_s_by_size == {"64x64": 1.6}


def test_a_picture_from_text_has_no_input_to_differ_from() -> None:
    assert check_edit(SQUARE, b"", draw_picture(SQUARE))[0]
    assert not check_edit(SQUARE, b"", BLACK)[0]
    assert not check_edit(SQUARE, b"", b"")[0]


def test_every_shape_that_is_served_was_run_as_such_a_job() -> None:
    engine = RecordingEngine()
    report = warm(engine, max_references=2, warm_cfg=True)
    assert [warmed.shape for warmed in report.served] == [job.shape for job in engine.jobs[1::2]]
    assert [(job.shape.references, job.cfg) for job in engine.jobs[1::2]] == [
        (1, False),
        (1, True),
        (2, False),
        (2, True),
    ]
    assert report.edit_s_by_size == {"64x64": 1.6}


def test_a_budget_that_is_spent_leaves_out_all_but_the_plain_edits() -> None:
    engine = RecordingEngine()
    report = warm(engine, sizes=(SQUARE, WIDE), max_references=2, warmup_budget_s=0.0)
    assert [warmed.shape for warmed in report.served] == [Shape(size=SQUARE), Shape(size=WIDE)]
    assert report.warmed(Shape(size=SQUARE, references=2)) is None


def test_the_budget_is_looked_at_before_each_further_shape() -> None:
    report = warm(RecordingEngine(), max_references=3, warmup_budget_s=3.0)  # one shape takes 2.8 s
    assert [warmed.shape.references for warmed in report.served] == [1, 2]


def test_the_longest_silence_counts_what_comes_before_and_after_the_steps() -> None:
    (warmed,) = warm(RecordingEngine()).served
    assert warmed.silence_s == pytest.approx(0.5)
