"""Passes over one resource in a cluster in memory, on the loop's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from imageedit_operator.core.actions import Action, ApplyService, Plan, ScaleDeployment
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.plan import PlanMemory
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.execute import Executor
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.status import StatusWriter
from imageedit_operator.reconciler import Reconciler
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.worker import Outcome, Worker
from imageedit_operator.workqueue import Key, WorkQueue
from unit.operator_shell.builders import (
    MemoryKube,
)
from unit.operator_shell.virtual_time import now, run_virtual

KEY = Key("team", "edit")
SERVICE = ApplyService(manifest={"metadata": {"name": "edit"}})
SCALE = ScaleDeployment(name="edit-gone", uid="u", resource_version="1", replicas=2, why="w")


@dataclass(kw_only=True)
class FixedPlan:
    """A planner that always wants the same, and writes down what it was asked."""

    actions: tuple[Action, ...] = ()
    status: dict[str, Any] = field(default_factory=lambda: {"phase": "Serving", "desiredReplicas": 1})
    again_s: float = 30.0
    memories: list[PlanMemory] = field(default_factory=list)
    answered: list[PlanMemory] = field(default_factory=list)
    fails_with: Exception | None = None

    def __call__(
        self, resource: ImageEditDeployment, observed: Observed, memory: PlanMemory, at: float
    ) -> tuple[Plan, PlanMemory]:
        if self.fails_with is not None:
            raise self.fails_with
        self.memories.append(memory)
        self.answered.append(PlanMemory())
        made = Plan(actions=self.actions, status=self.status, requeue_after_s=self.again_s, reasons=("because",))
        return made, self.answered[-1]


def reconciler(
    kube: MemoryKube,
    planner: FixedPlan,
    http: aiohttp.ClientSession,
    *,
    leading: Callable[[], bool] = lambda: True,
) -> Reconciler:
    """A reconciler over a cluster in memory, on the loop's clock."""
    cards = CardBook(kube, clock=now)
    return Reconciler(
        kube=kube,
        observer=Observer(kube, http, cards, BudgetBook(kube, clock=now)),
        executor=Executor(kube, http, clock=now),
        cards=cards,
        status=StatusWriter(kube),
        queue=WorkQueue(clock=now, random=lambda: 0.0),
        telemetry=Telemetry(),
        clock=now,
        leading=leading,
        planner=planner,
    )


def worker(subject: Reconciler, *, timeout_s: float = 60, random: float = 0.5) -> Worker:
    """A worker that makes its passes."""
    return Worker(
        reconcile=subject.reconcile,
        queue=subject.queue,
        telemetry=subject.telemetry,
        kept=subject.kept,
        stopwatch=now,
        timeout_s=timeout_s,
        random=lambda: random,
    )


def passes(kube: MemoryKube, planner: FixedPlan, *, times: int = 1) -> tuple[Reconciler, list[Outcome]]:
    """Passes over the resource, one after another."""

    async def main() -> tuple[Reconciler, list[Outcome]]:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, planner, http)
            return subject, [await subject.reconcile(KEY) for _ in range(times)]

    return run_virtual(main)


def metric(subject: Reconciler, line: str) -> bool:
    """True when the exposition has this line."""
    return line in subject.telemetry.render().decode().splitlines()


SETTLED = {"phase": "Serving", "desiredReplicas": 1}
"""What `FixedPlan` writes as the status."""


def begun() -> dict[str, Any]:
    """Status of a resource for which the operator has written before."""
    return {"phase": "Starting"}


def reads(kube: MemoryKube) -> list[str]:
    """The kinds that were read, but for what many passes share: nodes, and budgets of a namespace."""
    shared = {"nodes", "poddisruptionbudgets"}
    return [plural for verb, plural, _ in kube.calls if verb in {"get", "list"} and plural not in shared]


def worked(
    kube: MemoryKube,
    planner: FixedPlan,
    *,
    for_s: float,
    timeout_s: float = 60,
    random: float = 0.5,
    prepare: Callable[[], None] = lambda: None,
) -> Reconciler:
    """A worker at work for some virtual seconds, from one add on."""

    async def main() -> Reconciler:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, planner, http)
            working = asyncio.ensure_future(worker(subject, timeout_s=timeout_s, random=random).work())
            subject.queue.add(KEY)
            prepare()
            await asyncio.sleep(for_s)
            subject.queue.close()
            await working
            return subject

    return run_virtual(main)
