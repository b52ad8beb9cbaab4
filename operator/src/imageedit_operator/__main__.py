"""The process: settings, logs, health, preflight, then watches, resync and workers until SIGTERM.

Exit codes: 0 asked to stop, 1 the watches were lost or a defect, 2 a wrong setting, 3 preflight failed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import time
from contextlib import AsyncExitStack
from functools import partial

import aiohttp

from imageedit_operator import health, logs, preflight, settings, supervision, watching
from imageedit_operator.errors import PreflightFailed, SettingsInvalid
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Kube, connect
from imageedit_operator.kube.execute import Executor
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.status import StatusWriter
from imageedit_operator.reconciler import Reconciler
from imageedit_operator.settings import Settings
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.workqueue import WorkQueue

logger = logging.getLogger("imageedit_operator")

OLDEST_WAITING_S = 300.0


def main() -> int:
    """Console script; the exit code."""
    try:
        chosen = settings.load(sys.argv[1:], os.environ)
    except SettingsInvalid as error:
        sys.stderr.write(f"imageedit-operator: {error}\n")
        return 2
    logs.configure(chosen.log_level)
    try:
        asyncio.run(run(chosen))
    except PreflightFailed as error:
        logger.error("%s", error)
        return 3
    except Exception:
        logger.exception("the operator ends")
        return 1
    logger.info("stopped")
    return 0


async def run(chosen: Settings) -> None:
    """The operator until SIGTERM or SIGINT. Raises PreflightFailed, OSError (port taken) or WatchesLost in a group."""
    stop = _stop_on_signals()
    telemetry = Telemetry()
    queue = WorkQueue(clock=time.monotonic, random=random.random)
    telemetry.watch_queue(queue)
    resynced = _Stamp()

    def progress() -> health.Progress:
        return health.Progress(since_resync_s=resynced.age_s(), oldest_waiting_s=queue.oldest_s())

    limits = health.Limits(since_resync_s=60.0 + 3 * chosen.resync_s, oldest_waiting_s=OLDEST_WAITING_S)
    async with AsyncExitStack() as stack:
        serving = health.serve(chosen.http_port, progress=progress, limits=limits, render=telemetry.render)
        port = await stack.enter_async_context(serving)
        logger.info("started", extra={"http_port": port, "namespaces": list(chosen.namespaces) or "all"})
        kube = await stack.enter_async_context(
            connect(chosen.kubeconfig, timeout_s=chosen.request_timeout_s, on_request=telemetry.requested)
        )
        http = await stack.enter_async_context(aiohttp.ClientSession())
        if not await preflight.check(kube, chosen.namespaces, stop, stopwatch=time.monotonic):
            return
        reconciler = build_reconciler(kube, http, queue, telemetry, timeout_s=chosen.reconcile_timeout_s)
        await _operate(chosen, kube, reconciler, resynced, stop)


async def _operate(chosen: Settings, kube: Kube, reconciler: Reconciler, resynced: _Stamp, stop: asyncio.Event) -> None:
    """Watches, resync and workers; when one of them fails, all end and the process with them."""
    queue, telemetry = reconciler.queue, reconciler.telemetry
    scope = watching.Scope(namespaces=chosen.namespaces, kubeconfig=chosen.kubeconfig)

    def on_resync() -> None:
        resynced.now()
        telemetry.resynced(time.time())

    watches = supervision.supervise(
        partial(watching.watch, scope, queue.add),
        stop,
        stopwatch=time.monotonic,
        on_restart=telemetry.watch_restarted,
    )
    lists = supervision.resync(
        kube,
        chosen.namespaces,
        stop,
        period_s=chosen.resync_s,
        random=random.random,
        known=lambda: reconciler.memories,
        on_key=queue.add,
        on_complete=on_resync,
    )
    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(reconciler.work(), name=f"worker-{n}") for n in range(chosen.workers)]
        tasks.create_task(watches, name="watches")
        tasks.create_task(lists, name="resync")
        tasks.create_task(_finish(stop, queue, workers, chosen.shutdown_s), name="finish")


async def _finish(stop: asyncio.Event, queue: WorkQueue, workers: list[asyncio.Task[None]], longest_s: float) -> None:
    """After `stop`: no new pass begins, those that run may finish, the rest is cancelled."""
    await stop.wait()
    queue.close()
    _, late = await asyncio.wait(workers, timeout=longest_s)
    for worker in late:
        logger.warning("%s is cancelled in the middle of a pass", worker.get_name())
        worker.cancel()


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def build_reconciler(
    kube: Kube, http: aiohttp.ClientSession, queue: WorkQueue, telemetry: Telemetry, *, timeout_s: float
) -> Reconciler:
    """The reconciler with the real clocks."""
    cards = CardBook(kube, clock=time.monotonic)
    return Reconciler(
        kube=kube,
        observer=Observer(kube, http, cards),
        executor=Executor(kube, http, clock=time.time),
        cards=cards,
        status=StatusWriter(kube),
        queue=queue,
        telemetry=telemetry,
        clock=time.time,
        stopwatch=time.monotonic,
        timeout_s=timeout_s,
    )


class _Stamp:
    """When something was done last; the start counts as the first time."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def now(self) -> None:
        self._at = time.monotonic()

    def age_s(self) -> float:
        return time.monotonic() - self._at


if __name__ == "__main__":
    sys.exit(main())
