"""One term of office: watches, resync and workers, from winning the Lease until it is lost or given back.

Everything in here is made anew for each term. A standby watches nothing: a pass reads live state
anyway, so what a new leader needs is one list of the resources, which is the first thing it does.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import aiohttp

from imageedit_operator import supervision, watching
from imageedit_operator.calls import Calls
from imageedit_operator.definition import Definition
from imageedit_operator.election import Candidate
from imageedit_operator.hearing import Hearing
from imageedit_operator.kopf_setup import Scope
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.device_book import DeviceBook
from imageedit_operator.kube.execute import Executor
from imageedit_operator.kube.first_look import FirstLook
from imageedit_operator.kube.kept import Kept
from imageedit_operator.kube.kinds import Resource
from imageedit_operator.kube.mounts import MountBook
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.status import StatusWriter
from imageedit_operator.reconciler import Reconciler
from imageedit_operator.settings import Settings
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.worker import Worker
from imageedit_operator.workqueue import Key, WorkQueue

logger = logging.getLogger(__name__)

LIST_FIRST_S = 10.0
"""For so long the watches wait for the first list, which is read within seconds or not at all."""


class Stamp:
    """When something was done last; the start counts as the first time."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def now(self) -> None:
        self._at = time.monotonic()

    def age_s(self) -> float:
        return time.monotonic() - self._at


@dataclass(kw_only=True)
class Term:
    """What works while this process acts; `candidate` is None without leader election."""

    chosen: Settings
    kube: Kube
    reconciler: Reconciler
    worker: Worker
    candidate: Candidate | None
    budgets: BudgetBook
    resynced: Stamp = field(default_factory=Stamp)
    watching: Stamp = field(default_factory=Stamp)
    hearing: Hearing = field(default_factory=Hearing)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    """A list came to its end, or nobody waits for one any more."""
    began: asyncio.Event = field(default_factory=asyncio.Event)
    """The watches began since the last list."""
    calls: Calls = field(init=False)
    definition: Definition = field(init=False)

    def __post_init__(self) -> None:
        of = self.reconciler
        self.calls = Calls(queue=of.queue, hearing=self.hearing, first=of.first, kept=of.kept)
        self.definition = Definition(self.kube, on_alive=self.watching.now)

    async def serve(self, stop: asyncio.Event) -> None:
        """Until `stop`; then no new pass begins, the running ones may finish, and the Lease is given back.

        Raises, in a group, Deposed, or WatchesLost, or a defect; the passes are then cut off where they are.
        """
        idle = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as tasks:
                workers = [
                    tasks.create_task(self.worker.work(), name=f"worker-{n}") for n in range(self.chosen.workers)
                ]
                tasks.create_task(self._watch(stop), name="watches")
                tasks.create_task(self._list(stop), name="resync")
                tasks.create_task(self._look_at_nodes(stop), name="nodes")
                tasks.create_task(self._finish(stop, workers, idle), name="finish")
                if self.candidate is not None:
                    tasks.create_task(_in_office(self.candidate, idle), name="lease")
        finally:
            for key in list(self.reconciler.memories):
                self.reconciler.telemetry.forget(key)

    async def _watch(self, stop: asyncio.Event) -> None:
        scope = Scope(namespaces=self.chosen.namespaces, kubeconfig=self.chosen.kubeconfig)
        watch = partial(
            watching.watch,
            scope,
            self.calls.told,
            on_alive=self.watching.now,
        )
        look = self.reconciler.queue.add

        async def run(stopping: asyncio.Event) -> None:
            self.began.set()
            await supervision.unless_deaf(watch, self.hearing, stopping, stopwatch=time.monotonic, look=look)

        restarted = self.reconciler.telemetry.watch_restarted
        # After the list the events with which the watches begin are no news; before it each would be a look for itself.
        await supervision.sleep_unless(self.listed, LIST_FIRST_S)
        await supervision.supervise(
            run, stop, stopwatch=time.monotonic, on_restart=restarted, ready=self.definition.wait
        )
        self.watching.now()

    async def _list(self, stop: asyncio.Event) -> None:
        def on_complete(listed: Mapping[Key, str]) -> None:
            self.definition.found()
            self.resynced.now()
            self.budgets.forget()  # what the list told of those of others is to be read at the looks that follow
            self.hearing.listed(listed, time.monotonic())
            self.reconciler.telemetry.resynced(time.time())
            self.listed.set()

        def on_missing() -> None:
            self.definition.gone()
            self.resynced.now()  # the apiserver answers, and what it says is all there is to know
            self.hearing.listed({}, time.monotonic())

        await supervision.resync(
            self.kube,
            self.chosen.namespaces,
            stop,
            period_s=self.chosen.resync_s,
            random=random.random,
            known=lambda: self.reconciler.memories,
            unheard=self.calls.unheard,
            on_key=self.calls.listed,
            on_complete=on_complete,
            on_missing=on_missing,
            first=self.reconciler.first,
            vanished=self.hearing.vanished,
            began=self.began,
        )

    async def _look_at_nodes(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.reconciler.grounds.look()
            await supervision.sleep_unless(stop, self.chosen.resync_s)

    async def _finish(self, stop: asyncio.Event, workers: list[asyncio.Task[None]], idle: asyncio.Event) -> None:
        await stop.wait()
        self.listed.set()
        self.reconciler.queue.close()
        _, late = await asyncio.wait(workers, timeout=self.chosen.shutdown_s)
        for worker in late:
            logger.warning("%s is cancelled in the middle of a pass", worker.get_name())
            worker.cancel()
        if late:
            await asyncio.wait(late)
        idle.set()


async def _in_office(candidate: Candidate, idle: asyncio.Event) -> None:
    """Holds the Lease until no pass runs any more, and gives it back without waiting for the watches to close."""
    await candidate.hold(idle)
    await candidate.resign()


def new_term(
    chosen: Settings,
    kube: Kube,
    http: aiohttp.ClientSession,
    telemetry: Telemetry,
    candidate: Candidate | None,
    *,
    clock: Callable[[], float],
) -> Term:
    """A term with the real stopwatch; `clock` is UTC epoch seconds."""
    queue = WorkQueue(clock=time.monotonic, random=random.random)
    hearing = Hearing()
    cards = CardBook(kube, clock=time.monotonic, devices=DeviceBook(kube, clock=time.monotonic, wall=clock))
    mounts = MountBook(kube, clock=time.monotonic, wall=clock)
    kept = Kept(clock=time.monotonic)
    budgets = BudgetBook(kube, clock=time.monotonic, on_read=hearing.read, kept=kept)

    def applied(kind: Resource, resource: Key, stored: Manifest) -> None:
        hearing.read(stored)
        kept.given(kind, resource, stored)

    reconciler = Reconciler(
        kube=kube,
        observer=Observer(kube, http, cards, budgets, mounts=mounts, on_read=hearing.read, kept=kept),
        executor=Executor(kube, http, clock=clock, on_applied=applied),
        cards=cards,
        status=StatusWriter(kube, on_written=hearing.read, clock=time.monotonic),
        queue=queue,
        telemetry=telemetry,
        clock=clock,
        on_read=hearing.read,
        on_gone=hearing.no_resource,
        kept=kept,
        first=FirstLook(clock=time.monotonic, kept=kept),
        auto=chosen.auto,
        leading=candidate.leading if candidate is not None else lambda: True,
    )
    worker = Worker(
        reconcile=reconciler.reconcile,
        queue=queue,
        telemetry=telemetry,
        kept=kept,
        stopwatch=time.monotonic,
        timeout_s=chosen.reconcile_timeout_s,
        random=random.random,
    )
    return Term(
        chosen=chosen,
        kube=kube,
        reconciler=reconciler,
        worker=worker,
        candidate=candidate,
        budgets=budgets,
        hearing=hearing,
    )
