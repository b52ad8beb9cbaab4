"""The process: settings, logs, health, preflight, then terms of office until SIGTERM.

Exit codes: 0 asked to stop, 1 the watches were lost or a defect, 2 a wrong setting, 3 preflight failed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
import socket
import sys
import time
import uuid
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from imageedit_operator import health, logs, nesting, preflight, settings
from imageedit_operator.election import Candidate
from imageedit_operator.errors import Deposed, PreflightFailed, SettingsInvalid
from imageedit_operator.health import Progress
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.clock import ClusterClock
from imageedit_operator.kube.connection import connect
from imageedit_operator.kube.lease import LeaseFile
from imageedit_operator.kube.patience import Patience
from imageedit_operator.settings import Settings
from imageedit_operator.supervision import sleep_unless
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.term import Stamp, Term, new_term

logger = logging.getLogger("imageedit_operator")

OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
PASS_GRACE_S = 30.0
COLLECT_AT = (20_000, 10, 10)
"""Lists of objects are no cycles and are freed without the collector, which at Python's own thresholds took most
of the time of reading them: 0.84 s of processor for parsing 14 pages of 500 metadata, and 0.21 s with these."""


def main() -> int:
    """Console script; the exit code."""
    try:
        chosen = settings.load(sys.argv[1:], os.environ)
    except SettingsInvalid as error:
        sys.stderr.write(f"imageedit-operator: {error}\n")
        return 2
    logs.configure(chosen.log_level)
    gc.set_threshold(*COLLECT_AT)
    nesting.read_what_an_apiserver_keeps()
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
    process = _Process(chosen, telemetry)
    board = health.Board(process.progress(), stopwatch=time.monotonic)
    limits = health.Limits(
        since_contact_s=60.0 + 3 * chosen.resync_s, longest_pass_s=chosen.reconcile_timeout_s + PASS_GRACE_S
    )
    async with AsyncExitStack() as stack:
        serving = health.serve(chosen.http_port, board=board, limits=limits, render=telemetry.render)
        port = await stack.enter_async_context(serving)
        logger.info("started", extra={"http_port": port, "namespaces": list(chosen.namespaces) or "all"})
        posting = asyncio.create_task(health.keep_posting(board, process.progress))
        stack.callback(posting.cancel)
        kube = await stack.enter_async_context(
            connect(
                chosen.kubeconfig,
                timeout_s=chosen.request_timeout_s,
                on_request=telemetry.requested,
                clock=process.clock,
                patience=Patience(random=random.random, pause=lambda pause_s: sleep_unless(stop, pause_s)),
            )
        )
        http = await stack.enter_async_context(aiohttp.ClientSession())
        await process.operate(kube, http, stop)


class _Process:
    """Terms of office, one after the other, and what the health of the process is judged by."""

    def __init__(self, chosen: Settings, telemetry: Telemetry) -> None:
        self._chosen = chosen
        self._telemetry = telemetry
        self._began = Stamp()
        self.clock = ClusterClock(wall=time.time, stopwatch=time.monotonic)
        self._candidate: Candidate | None = None
        self._term: Term | None = None

    def progress(self) -> Progress:
        """What was done lately; the queue's metrics are brought up to date on the way."""
        if self._term is None:
            self._telemetry.queue_seen(0, 0.0)
            waiting = self._candidate
            return Progress(
                leading=False, since_contact_s=waiting.since_contact_s() if waiting else self._began.age_s()
            )
        queue = self._term.reconciler.queue
        oldest_s = queue.oldest_s()
        self._telemetry.queue_seen(queue.depth(), oldest_s)
        return Progress(
            leading=True,
            since_contact_s=self._term.resynced.age_s(),
            since_watch_s=self._term.watching.age_s(),
            oldest_waiting_s=oldest_s,
            longest_pass_s=self._term.worker.longest_pass_s(),
            notice=self._term.definition.notice(),
        )

    async def operate(self, kube: Kube, http: aiohttp.ClientSession, stop: asyncio.Event) -> None:
        """Until `stop`. Raises PreflightFailed, or WatchesLost in a group."""
        chosen = self._chosen
        lease = (chosen.lease_namespace or _own_namespace(), chosen.lease_name) if chosen.leader_elect else None
        asked = preflight.Asked(namespaces=chosen.namespaces, lease=lease)
        if not await preflight.check(kube, asked, stop, stopwatch=time.monotonic):
            return
        if lease is not None:
            file = LeaseFile(kube, namespace=lease[0], name=lease[1], clock=self.clock.now)
            self._candidate = Candidate(file, me=_identity(), timing=chosen.timing, stopwatch=time.monotonic)
        while not stop.is_set() and (self._candidate is None or await self._candidate.win(stop)):
            logger.info("acting", extra={"lease": "/".join(lease) if lease else "none"})
            self._term = new_term(chosen, kube, http, self._telemetry, self._candidate, clock=self.clock.now)
            self._telemetry.leads(True)
            try:
                await self._term.serve(stop)
            except* Deposed as lost:
                logger.error("%s; waiting for it again", lost.exceptions[0])
            finally:
                self._telemetry.leads(False)
                self._term = None


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _identity() -> str:
    """The pod's name, and what no other process has, so that a restarted container is somebody else."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _own_namespace() -> str:
    try:
        return OWN_NAMESPACE.read_text().strip()
    except OSError:
        return "default"


if __name__ == "__main__":
    sys.exit(main())
