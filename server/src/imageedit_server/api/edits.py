"""One request: receive (read, check, decode), then run (wait for the card, finish the file), once for each picture.

Two steps, because what was received can be sixty megabytes and what waits in the queue is only the small picture.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from starlette.requests import Request

from imageedit_server.api import results
from imageedit_server.api.body import read_body
from imageedit_server.api.limits import Limits
from imageedit_server.api.preparing import Received, prepared
from imageedit_server.api.requests import Reader
from imageedit_server.api.service import Service
from imageedit_server.api.ticket import Ticket
from imageedit_server.api.turn import Done, check_early, turn
from imageedit_server.api.wishes import Wish
from imageedit_server.errors import InvalidInput
from imageedit_server.logs import fields
from imageedit_server.worker.protocol import Capabilities, EditJob, WarmReport
from imageedit_server.worker.shapes import Size

log = logging.getLogger("imageedit.edits")

OnPlace = Callable[[int, Ticket], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """One finished picture as a file, and what made it.

    `seconds` is the time on the card; `pictures` and `text_tokens` were read at the candidate size `at`.
    """

    file: bytes = field(repr=False)
    at: Size
    seed: int
    pictures: int
    steps: int
    seconds: float
    text_tokens: int


def limits_of(service: Service) -> Limits:
    """What settings and model take now."""
    settings, load = service.settings, service.worker.load
    can = Capabilities() if load is None else load.capabilities
    return Limits(
        model_name=settings.model_name,
        steps=settings.steps,
        steps_high=settings.steps_high,
        files=service.files is not None,
        max_references=can.max_references,
        edit=can.edit,
        mask_required=can.mask_required,
        max_prompt_tokens=can.max_prompt_tokens,
        count_tokens=service.count_tokens,
        guidance=can.guidance,
        negative_prompt=can.negative_prompt,
        generate=can.generate,
    )


async def receive(service: Service, request: Request, read: Reader) -> Received:
    """Read and decode one request; `read` makes a checked request of its body, in a thread.

    Raises:
        ApiError: no place for it, or something in it is wrong.
        ClientGone: the client left before the end.
    """
    # Before the body is read: a full server must not spend memory on what it refuses.
    check_early(service, request)
    with service.counting_refusals(), service.uploads.room() as room:
        with service.stage("receive"):
            body = await read_body(request, room)
        return await decoded(service, body, read)


async def decoded(service: Service, body: bytes, read: Reader) -> Received:
    """Check and decode one body.

    Raises:
        ApiError: something in it is wrong.
    """
    async with service.decoding:
        # Within the bound too: parsing tens of megabytes is work like decoding them.
        with service.stage("parse"):
            wanted = await asyncio.to_thread(read, body, limits_of(service))
        if service.safety.denylist is not None:
            await asyncio.to_thread(service.safety.check_prompt, wanted.wish.prompt)
        with service.stage("decode"):
            load = service.worker.load
            to_model = load is not None and load.capabilities.mask
            received = await asyncio.to_thread(prepared, wanted, service.settings, mask_to_model=to_model)
    _check_warmed(received.job, service.worker.warm)
    await service.safety.check_inputs(received.job)
    return received


def start(
    service: Service, request: Request, received: Received, *, on_place: OnPlace = lambda _number, _ticket: None
) -> list[asyncio.Task[Edited]]:
    """Put every picture of a request into the queue at once, so that all of them are admitted or none is.

    `on_place` is called with the number of a picture and its place in the queue, once there is one.
    """
    return [
        asyncio.create_task(_run_one(service, request, received, number, on_place), name="edit")
        for number in range(received.wish.n)
    ]


async def run(service: Service, request: Request, received: Received) -> list[Edited]:
    """Wait for the card, edit and encode: all pictures of a request, in their order.

    Raises:
        ApiError: an edit is not admitted, or it failed.
        ClientGone: the client left while an edit waited or ran.
    """
    runs = start(service, request, received)
    try:
        return list(await asyncio.gather(*runs))
    finally:
        for task in runs:
            task.cancel()


async def _run_one(service: Service, request: Request, received: Received, number: int, on_place: OnPlace) -> Edited:
    wish = received.wish
    with service.kept.room() as kept:
        if received.masked is not None:
            with service.counting_refusals():
                kept.grow_to(received.masked.size_bytes)
        done = await turn(
            service,
            request,
            _job(received.job, wish, number),
            digests=received.digests,
            seed_given=wish.seed_given,
            steps_given=wish.steps_given,
            request_id=wish.request_id,
            part=number,
            on_place=lambda ticket: on_place(number, ticket),
        )
        edited = await finished(service, received, done)
    log.debug(
        "edit_finished",
        extra=fields(
            request_id=request.state.request_id,
            job_id=done.job.job_id,
            asked_by=wish.asked_by,
            size=str(done.job.size),
            steps=done.result.steps,
            seconds=round(done.result.seconds, 3),
        ),
    )
    return edited


async def finished(service: Service, received: Received, done: Done) -> Edited:
    """Make the file of a result."""
    result = done.result
    async with service.encoding:
        with service.stage("encode"):
            file = await asyncio.to_thread(
                results.finished,
                result.picture,
                received.plan,
                masked=received.masked,
                kind=received.wish.format,
                compression=received.wish.compression,
            )
    await service.safety.check_result(file)
    return Edited(
        file=file,
        at=done.job.size,
        seed=done.job.seed,
        pictures=(1 if received.job.picture else 0) + len(received.job.references),
        steps=result.steps,
        seconds=result.seconds,
        text_tokens=result.text_tokens,
    )


def _job(first: EditJob, wish: Wish, number: int) -> EditJob:
    if number == 0:
        return first
    return replace(first, job_id=uuid.uuid4().hex, seed=wish.seed_of(number))


def _check_warmed(job: EditJob, report: WarmReport | None) -> None:
    """Refuse what no warm-up has run: its first user would wait for kernels, for minutes on some cards."""
    if report is not None and report.warmed(job.shape) is None:
        served = ", ".join(str(one.shape) for one in report.served)
        raise InvalidInput(f"An edit at {job.shape} is not served here; served are: {served}.", code="not_served")
