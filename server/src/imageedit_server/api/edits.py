"""One edit: receive (read, check, decode), then run (admit, wait in the queue, encode).

Two steps, because what was received can be sixty megabytes and what waits in the queue is only the small picture.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from imageedit_server.api import images
from imageedit_server.api.body import read_body
from imageedit_server.api.geometry import Placement
from imageedit_server.api.queue import Ticket
from imageedit_server.api.requests import EditRequest
from imageedit_server.api.service import Service
from imageedit_server.errors import ApiError, ClientGone, EditFailed, Unavailable
from imageedit_server.gate.admission import NOT_READY_RETRY_AFTER_S
from imageedit_server.logs import fields
from imageedit_server.worker.protocol import EditJob, EditResult, Size, WorkerError, WorkerFailure

log = logging.getLogger("imageedit.edits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A checked request, ready for the queue, and where the picture lies in the job's candidate size."""

    job: EditJob = field(repr=False)
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A finished edit; `size` is the size of the picture that is returned, `seconds` the time on the card."""

    png_base64: str = field(repr=False)
    size: Size
    seed: int
    seconds: float


async def receive(service: Service, request: Request, read: Callable[[bytes], EditRequest]) -> Received:
    """Read and decode one request; `read` makes a checked request of its body, in a thread.

    Raises:
        ApiError: no place for it, or something in it is wrong.
        ClientGone: the client left before the end.
    """
    # Before the body is read: a full server must not spend memory on what it refuses.
    service.check_admission()
    with service.counting_refusals(), service.uploads.room() as room:
        wanted = await asyncio.to_thread(read, await read_body(request, room))
        async with service.decoding:
            prepared = await asyncio.to_thread(
                images.prepare,
                wanted.picture,
                param=wanted.param,
                candidates=service.settings.sizes,
                max_pixels=service.settings.max_pixels,
            )
    job = EditJob(
        job_id=uuid.uuid4().hex,
        picture=prepared.pixels,
        size=prepared.placement.candidate,
        prompt=wanted.prompt,
        steps=service.settings.steps,
        seed=wanted.seed,
    )
    return Received(job=job, placement=prepared.placement)


async def run(service: Service, request: Request, received: Received) -> Edited:
    """Wait for the card, edit and encode.

    Raises:
        ApiError: the edit is not admitted, or it failed.
        ClientGone: the client left while the edit waited or ran.
    """
    # Asked a second time: the queue may have filled while the picture was read. No await until the job is in.
    service.check_admission()
    ticket = service.queue.submit(received.job)
    result = await _answer(service, request, ticket)
    log.debug(
        "edit_finished",
        extra=fields(
            request_id=request.state.request_id, size=str(received.job.size), seconds=round(result.seconds, 3)
        ),
    )
    encoded = await asyncio.to_thread(lambda: images.to_base64(images.finished_png(result.picture, received.placement)))
    return Edited(png_base64=encoded, size=received.placement.working, seed=received.job.seed, seconds=result.seconds)


# | failure              | answer                                                    |
# | -------------------- | --------------------------------------------------------- |
# | WorkerLost           | 503 worker_lost: a new worker comes, another try is right |
# | sticky, any reason   | 503 worker_lost                                           |
# | any other            | 500 edit_failed: the worker goes on, this edit did not    |
def answer_to(failure: WorkerFailure) -> ApiError:
    """What the client is told about a failure of its edit."""
    if failure.reason == "WorkerLost" or failure.sticky:
        return Unavailable(
            "The worker process was lost during this edit and is being replaced; send the request again.",
            code="worker_lost",
            retry_after_s=NOT_READY_RETRY_AFTER_S,
        )
    return EditFailed(f"The edit failed: {failure.message}", code="edit_failed")


async def _answer(service: Service, request: Request, ticket: Ticket) -> EditResult:
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait((gone, ticket.answer), return_when=asyncio.FIRST_COMPLETED)
        if not ticket.answer.done():
            raise ClientGone
        return ticket.answer.result()
    except WorkerError as error:
        failure = error.failure
        log.warning(
            "edit_failed",
            extra=fields(request_id=request.state.request_id, reason=failure.reason, message=failure.message),
        )
        raise answer_to(failure) from error
    finally:
        gone.cancel()
        service.queue.withdraw(ticket)


async def _disconnected(request: Request) -> None:
    """The body is read, so the only message that is left says that the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
