"""The edits that a worker has: one that it does, one in its hand, and those that wait for room."""

from __future__ import annotations

import asyncio

import pytest

from imageedit_server.worker.failures import NotStarted, WorkerError
from imageedit_server.worker.protocol import EditResult
from imageedit_server.worker.running_edit import RunningEdit
from imageedit_server.worker.sent_edits import SentEdits
from support.hand_worker import job, settle


class Sent:
    """Two edits, sent; `begun` are the names of those that the worker began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.edits = SentEdits(on_begin=lambda edit: self.begun.append(edit.job.job_id))
        self.first, self.second = (RunningEdit(job(name), None, silence_limit_s=1.0) for name in ("one", "two"))
        self.edits.add(self.first)
        self.edits.add(self.second)

    def end_first(self) -> None:
        self.edits.ended()
        self.first.answer.set_result(EditResult(job_id="one", picture=b"", seconds=1.0, steps=4))


async def test_the_second_begins_when_the_first_has_ended() -> None:
    sent = Sent()
    assert sent.begun == ["one"]
    sent.end_first()

    assert sent.begun == ["one", "two"]


async def test_a_third_has_room_when_the_first_has_ended() -> None:
    sent = Sent()
    waiting = asyncio.create_task(sent.edits.room_for("three"))
    await settle()
    assert not waiting.done()
    sent.end_first()

    await waiting


async def test_one_that_is_called_off_while_it_waits_gets_no_room() -> None:
    sent = Sent()
    waiting = asyncio.create_task(sent.edits.room_for("three"))
    await settle()
    assert sent.edits.call_off("three") is False
    sent.end_first()

    with pytest.raises(WorkerError, match="cancelled"):
        await waiting


@pytest.mark.parametrize(("name", "told"), [("one", True), ("two", True), ("three", False)])
async def test_the_worker_is_told_of_what_is_called_off_where_it_has_it(name: str, told: bool) -> None:
    assert Sent().edits.call_off(name) is told


@pytest.mark.parametrize("name", ["two", "three"])
async def test_only_the_edit_that_the_worker_does_is_heard_of(name: str) -> None:
    sent = Sent()

    assert sent.edits.heard_of(name) is None
    assert sent.edits.heard_of("one") is sent.first


async def test_with_a_lost_worker_only_what_it_had_begun_has_failed() -> None:
    sent = Sent()
    sent.edits.lost("Hung", "it hung")

    assert isinstance(sent.second.answer.exception(), NotStarted)
    failed = sent.first.answer.exception()
    assert isinstance(failed, WorkerError)
    assert not isinstance(failed, NotStarted)
    assert (failed.failure.reason, failed.failure.sticky) == ("Hung", True)


async def test_with_a_lost_worker_there_is_room_again() -> None:
    sent = Sent()
    sent.edits.lost("WorkerLost", "it is gone")

    await sent.edits.room_for("three")
