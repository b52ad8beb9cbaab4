"""How a request is recognised by what it sends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.datastructures import Headers

from imageedit_server.api.queue import EditQueue
from imageedit_server.api.retries import Retries, identity_of, key_of
from imageedit_server.api.wishes import Digests
from imageedit_server.errors import Conflict, InvalidInput
from imageedit_server.gate.dedupe import By, Identity
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.protocol import EditJob, EditResult
from imageedit_server.worker.shapes import Size
from support.hand_worker import LOST, HandWorker, settle

JOB = EditJob(job_id="a", picture=b"picture", size=Size(32, 32), prompt="make it blue", steps=16, seed=7)
RESULT = EditResult(job_id="a", picture=b"result", seconds=1.0, steps=16)


def identity(
    job: EditJob = JOB, *, pictures: str = "p", seed_given: bool = True, part: int = 0, **headers: str
) -> Identity:
    sent = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    digests = Digests(request="r", pictures=pictures)
    return identity_of(sent, job, digests=digests, seed_given=seed_given, steps_given=True, request_id=None, part=part)


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, prompt="make it red"),
        replace(JOB, size=Size(64, 32)),
        replace(JOB, steps=24),
        replace(JOB, seed=8),
        replace(JOB, mask=b"mask"),
        replace(JOB, negative_prompt="dull"),
        replace(JOB, true_cfg_scale=4.0),
        replace(JOB, guidance_scale=2.5),
    ],
)
def test_everything_that_decides_the_result_is_content(other: EditJob) -> None:
    assert identity(other).content != identity().content
    assert identity(replace(JOB, job_id="b")).content == identity().content


def test_the_pictures_that_were_sent_are_content() -> None:
    assert identity(pictures="other").content != identity().content


def test_a_seed_that_the_client_did_not_choose_is_no_content() -> None:
    assert identity(seed_given=False).content == identity(replace(JOB, seed=8), seed_given=False).content


def test_the_pictures_of_one_request_are_not_each_other() -> None:
    first, second = (identity(seed_given=False, part=part, idempotency_key="k") for part in (0, 1))

    assert first.content != second.content
    assert first.key != second.key


def test_headers_say_who_asks_and_whether_again() -> None:
    first = identity(x_stainless_retry_count="0", x_request_id="r", authorization="Bearer one")
    again = identity(x_stainless_retry_count="1", authorization="Bearer two")

    assert (first.retry, first.may_retry, again.retry) == (False, True, True)
    assert first.request_id is not None
    assert first.scope != again.scope
    assert identity().attachable is False


def test_the_key_in_the_header_wins_over_the_one_in_the_body() -> None:
    assert key_of(Headers({"idempotency-key": "header"}), "body") == "header"
    assert key_of(Headers({}), "body") == "body"
    with pytest.raises(InvalidInput, match="255"):
        key_of(Headers({"idempotency-key": "x" * 256}))


async def started(retries: Retries, worker: HandWorker, asked: Identity) -> EditQueue:
    queue = EditQueue(edit=worker.edit, cancel=worker.cancel, now_s=lambda: 0.0)
    retries.remember(queue.submit(JOB), asked)
    return queue


async def test_a_result_is_kept_without_the_pictures_that_went_in() -> None:
    clock = [0.0]
    retries = Retries(now_s=lambda: clock[0], keep_s=60.0)
    asked = identity(idempotency_key="k")
    ticket = EditQueue(edit=HandWorker().edit, now_s=lambda: 0.0).submit(JOB)
    retries.remember(ticket, asked)
    ticket.answer.set_result(RESULT)
    await settle()

    assert retries.find(asked) == (ticket, By.IDEMPOTENCY_KEY)
    assert (ticket.job.picture, ticket.answer.result()) == (b"", RESULT)
    assert retries.kept_bytes == len(RESULT.picture)
    clock[0] = 60.0
    assert retries.find(asked) is None


async def test_a_key_with_other_content_is_a_conflict_that_is_not_retried() -> None:
    retries = Retries(now_s=lambda: 0.0)
    await started(retries, HandWorker(), identity(idempotency_key="k"))

    with pytest.raises(Conflict) as raised:
        retries.find(identity(replace(JOB, prompt="other"), idempotency_key="k"))
    assert (raised.value.status, raised.value.should_retry) == (409, False)


async def test_an_edit_that_failed_or_was_given_up_takes_no_retry_not_even_in_that_moment() -> None:
    retries = Retries(now_s=lambda: 0.0)
    for end in ("fail", "give up"):
        asked = identity(idempotency_key=end)
        queue = EditQueue(edit=HandWorker().edit, now_s=lambda: 0.0)
        ticket = queue.submit(JOB)
        retries.remember(ticket, asked)
        if end == "fail":
            ticket.answer.set_exception(WorkerError(LOST))
        else:
            queue.withdraw(ticket)

        assert retries.find(asked) is None
        await settle()
        assert retries.known == 0


async def test_what_could_not_come_again_is_not_remembered() -> None:
    retries = Retries(now_s=lambda: 0.0)
    await started(retries, HandWorker(), identity())

    assert retries.known == 0


async def test_headers_alone_tell_that_a_job_is_here() -> None:
    retries = Retries(now_s=lambda: 0.0)
    await started(retries, HandWorker(), identity(idempotency_key="k"))

    assert retries.expects(Headers({"idempotency-key": "k"}))
    assert not retries.expects(Headers({"idempotency-key": "other"}))
    assert not retries.expects(Headers({}))
