"""The life of the process: two listeners and one worker, from start to an exit code that means something."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from imageedit_server.api.app import api_app
from imageedit_server.api.connections import Connection
from imageedit_server.api.doors import Bounds, Door, within_descriptors
from imageedit_server.api.envelope import AnswersHead
from imageedit_server.api.jobs import Jobs
from imageedit_server.api.observed import Observed
from imageedit_server.api.probes import probes_app
from imageedit_server.api.service import Service
from imageedit_server.errors import ApiError, SettingsInvalid, exit_code
from imageedit_server.logs import fields
from imageedit_server.settings import Settings

log = logging.getLogger("imageedit.lifecycle")

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Longer than most clients and proxies keep idle connections: the server should not be the side that closes one,
# because a request that is under way at that moment is lost.
KEEP_ALIVE_S = 75
# Beside those that wait in the queue. Each port has its own, so that a flood on one does not close the other.
API_CONNECTIONS = 1000
PROBE_CONNECTIONS = 100
ACCEPTED_AT_ONCE = 128
# After the drain only answers under way are left; a client that does not read its answer may not hold up the end.
LAST_ANSWERS_S = 10
# A tenth of the weight that the event loop and the worker have with the scheduler.
YIELDING_NICE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why the process ends; no reason means that it was asked to."""

    reason: str | None = None
    message: str = ""

    @property
    def code(self) -> int:
        """The exit code of the contract."""
        return 0 if self.reason is None else exit_code(self.reason)


class _Listener(uvicorn.Server):
    """One of two servers in one process: signals belong to the process, not to it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: Settings) -> Ending:
    """Serve until a signal or a failure.

    Raises:
        SettingsInvalid: a port cannot be listened on.
    """
    with (
        _listening(settings.host, settings.port, "--port") as api_socket,
        _listening(settings.host, settings.probe_port, "--probe-port") as probe_socket,
    ):
        asyncio.get_running_loop().set_default_executor(_yielding_threads())
        service = Service(settings)
        jobs = await _opened_jobs(service)
        front = Observed(api_app(service, jobs), service)
        api = _listener(front, _door(service, API_CONNECTIONS + settings.queue_hard_limit))
        probes = _listener(probes_app(service), _door(service, PROBE_CONNECTIONS))
        async with asyncio.TaskGroup() as tasks:
            api_task = tasks.create_task(api.serve([api_socket]))
            probes_task = tasks.create_task(probes.serve([probe_socket]))
            queue_task = tasks.create_task(service.queue.run())
            jobs_task = None if jobs is None else tasks.create_task(jobs.run())
            terminated = _watch_signals(service)
            await service.worker.start()
            service.safety.start()
            log.info(
                "started", extra=fields(port=settings.port, probe_port=settings.probe_port, instance=service.instance)
            )

            ending = await _ending(service, terminated)

            # The order matters. First the API: its last answers still need the worker's results, which are there.
            api.should_exit = True
            await api_task
            if jobs is not None and jobs_task is not None:
                await jobs.settle()
                jobs_task.cancel()
                await asyncio.wait([jobs_task])
                await jobs.close()
            # Then the worker: nobody can ask it any more, and it gives the card back.
            queue_task.cancel()
            await service.worker.stop()
            await service.safety.stop()
            # The probes last: until here kubelet and operator can see what goes on.
            probes.should_exit = True
            await probes_task
            await service.traces.close()
    log.info("ended", extra=fields(reason=ending.reason, code=ending.code))
    return ending


def _yielding_threads() -> ThreadPoolExecutor:
    """Threads for decoding and encoding that let the event loop and the worker go first where processors are scarce:
    the card waits for those two, and for the threads only when nothing is ready."""

    def yield_to_others() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), YIELDING_NICE)

    return ThreadPoolExecutor(thread_name_prefix="pictures", initializer=yield_to_others)


async def _opened_jobs(service: Service) -> Jobs | None:
    if not service.settings.jobs_dir:
        return None
    jobs = Jobs(service, Path(service.settings.jobs_dir))
    await jobs.load()
    return jobs


def report(ending: Ending, termination_log: str) -> None:
    """Write `Reason: message` where Kubernetes looks for it; outside of a container that file does not exist."""
    if ending.reason is None:
        return
    log.error("cannot_serve", extra=fields(reason=ending.reason, message=ending.message))
    with contextlib.suppress(OSError), open(termination_log, "w", encoding="utf-8") as file:
        file.write(f"{ending.reason}: {' '.join(ending.message.split())}\n")


async def _ending(service: Service, terminated: asyncio.Event) -> Ending:
    async def drained() -> None:
        await terminated.wait()
        await service.wait_drained()

    waits = [asyncio.create_task(drained()), asyncio.create_task(service.worker_failed.wait())]
    if service.safety.classifier is not None:
        waits.append(asyncio.create_task(service.safety.classifier.failed.wait()))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    failure = service.worker.failure
    if failure is not None:
        return Ending(reason=failure.reason, message=failure.message)
    unsafe = None if service.safety.classifier is None else service.safety.classifier.failure
    return Ending() if unsafe is None else Ending(reason=unsafe[0].value, message=unsafe[1])


def _watch_signals(service: Service) -> asyncio.Event:
    terminated = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if terminated.is_set() and number is not signal.SIGINT:
            # Whoever ends processes may say it twice; what was accepted gets its answer all the same.
            return
        if terminated.is_set():
            log.warning(
                "ended_at_once",
                extra=fields(signal=number.name, running=service.load.running, waiting=service.load.waiting),
            )
            os._exit(128 + number)
        service.drain.begin(why=number.name, for_good=True)
        terminated.set()

    for number in ENDING_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return terminated


@contextlib.contextmanager
def _listening(host: str, port: int, argument: str) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, TypeError) as error:  # the second is what bind says of a host that can be no name
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsInvalid(f"{argument} {port} on --host {host} cannot be listened on: {why}") from error
    # Inherited by each connection. asyncio sets it only on sockets that it made itself, and without it every answer
    # on a kept connection waits 40 ms for the client's delayed acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        yield listening


def _door(service: Service, connections: int) -> Door:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = within_descriptors(
        connections,
        of_all=API_CONNECTIONS + service.settings.queue_hard_limit + PROBE_CONNECTIONS,
        descriptors=None if soft == resource.RLIM_INFINITY else soft,
    )

    def on_refused(error: ApiError) -> None:
        service.telemetry.requests.labels("unknown", str(error.status)).inc()
        service.count_refusal(error)

    return Door(Bounds(connections=allowed), on_refused=on_refused)


def _listener(app: ASGIApp, door: Door) -> _Listener:
    return _Listener(
        uvicorn.Config(
            AnswersHead(app),
            # uvicorn only ever calls it.
            http=cast("type[asyncio.Protocol]", partial(Connection, door)),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            # Of the listening socket, and accepted in one go: a flood of them must not keep everything else waiting.
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
        )
    )
