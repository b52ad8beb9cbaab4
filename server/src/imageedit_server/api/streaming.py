"""Answers as server-sent events: signs of life while an edit waits and runs, then one event for each picture.

What is wrong before the edit is in the queue is an ordinary error; afterwards the status is out, and an event says it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import StreamingResponse

from imageedit_server.api.answers import CLIENT_CLOSED_REQUEST, Told, error_object
from imageedit_server.api.edits import Edited, start
from imageedit_server.api.pieces import File, json_pieces
from imageedit_server.api.preparing import Received
from imageedit_server.api.responses import facts
from imageedit_server.api.service import Service
from imageedit_server.api.standing import Standing, standing_of
from imageedit_server.api.ticket import Ticket
from imageedit_server.errors import ApiError, ClientGone, EditFailed
from imageedit_server.logs import fields

log = logging.getLogger("imageedit.streaming")

# Admission answers within milliseconds; what fails this early gets a status of its own.
FIRST_LOOK_S = 0.25
# How often a stream looks whether its edit has moved: a step takes longer on any card.
LOOK_S = 0.25
# Proxies must pass each event on as it comes.
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

EventOf = Callable[[Edited], dict[str, object]]


async def stream(service: Service, request: Request, received: Received, *, kind: str) -> StreamingResponse:
    """Put the edits of a request into the queue, and answer by events of the type `kind`.

    Raises:
        ApiError: an edit is not admitted.
        ClientGone: the client left already.
    """
    places: dict[int, Ticket] = {}
    runs = start(service, request, received, on_place=places.__setitem__)
    try:
        done, _ = await asyncio.wait(runs, timeout=FIRST_LOOK_S, return_when=asyncio.FIRST_EXCEPTION)
        for run in done:
            run.result()
    except BaseException:
        await _end(runs)
        raise

    def event_of(edited: Edited) -> dict[str, object]:
        picture = {"type": kind, "b64_json": File(data=edited.file), "created_at": int(time.time())}
        return picture | facts(service, received, [edited])

    def standing(number: int) -> Standing:
        return standing_of(service.queue, places.get(number))

    events = _events(runs, event_of, standing, heartbeat_s=service.settings.stream_heartbeat_s, request=request)
    return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


async def _events(
    runs: list[asyncio.Task[Edited]],
    event_of: EventOf,
    standing: Callable[[int], Standing],
    *,
    heartbeat_s: float,
    request: Request,
) -> AsyncIterator[bytes]:
    told: Told = request.state.told
    # Until the last event is out, nobody has been told how it went.
    told.status = CLIENT_CLOSED_REQUEST
    try:
        for number, run in enumerate(runs):
            async for sign in _signs_of_life(run, partial(standing, number), heartbeat_s=heartbeat_s):
                yield sign
            event = event_of(run.result())
            for piece in await asyncio.to_thread(_event, str(event["type"]), event):
                yield piece
                await asyncio.sleep(0)
        told.status = 200
    except ApiError as error:
        told.status = error.status
        yield b"".join(_event("error", error_object(error)))
    except ClientGone:
        return
    except Exception:
        told.status = EditFailed.status
        request_id = request.state.request_id
        log.exception("stream_crashed", extra=fields(request_id=request_id))
        message = f"An unexpected error; the log has it under {request_id}."
        yield b"".join(_event("error", error_object(EditFailed(message, code="internal_error"))))
    finally:
        await _end(runs)


async def _signs_of_life(
    run: asyncio.Task[Edited], standing: Callable[[], Standing], *, heartbeat_s: float
) -> AsyncIterator[bytes]:
    """Comments, which clients skip, until the run has ended: one at once, so that the client has the head of the
    answer, then one when the edit has moved, and one when `heartbeat_s` have passed without any."""
    said: Standing | None = None
    clock, said_s = asyncio.get_running_loop(), 0.0
    while True:
        now = standing()
        if said is None or now.moved_from(said) or clock.time() - said_s >= heartbeat_s:
            yield now.comment()
            said, said_s = now, clock.time()
        if (await asyncio.wait([run], timeout=min(LOOK_S, heartbeat_s)))[0]:
            return


async def _end(runs: list[asyncio.Task[Edited]]) -> None:
    for run in runs:
        run.cancel()
    # Looked at, so that asyncio does not report the errors of those that nobody waits for any more.
    await asyncio.gather(*runs, return_exceptions=True)


def _event(kind: str, body: dict[str, object]) -> list[bytes]:
    return [f"event: {kind}\ndata: ".encode(), *json_pieces(body), b"\n\n"]
