"""A term without kopf, in which lists, events and looks meet in the order that a test gives."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp

from imageedit_operator.calls import Calls
from imageedit_operator.core.actions import Plan
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.plan import PlanMemory
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.errors import ApiError
from imageedit_operator.hearing import Hearing
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.execute import Executor
from imageedit_operator.kube.first_look import FirstLook
from imageedit_operator.kube.kept import Kept
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.status import StatusWriter
from imageedit_operator.reconciler import Reconciler
from imageedit_operator.supervision import resync
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.wake_ups import WATCHED, Sights, Told, keys_for, version_of
from imageedit_operator.workqueue import Key, WorkQueue
from unit.operator_shell.builders import MemoryKube, custom_resource, deployment, owner, pod
from unit.operator_shell.passes import SETTLED, worker
from unit.operator_shell.virtual_time import now

NAMES = ("edit", "more")
CHILDREN = (DEPLOYMENTS, PODS, SERVICES)
PERIOD_S = 300.0
LATER_S = 1e6
"""No look comes by itself."""
STRIDE_S = 2.0
AT_REST_S = 30.0
"""After it a key that anything asked for was looked at."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a look made of a resource and its children."""

    resource: tuple[str, int]
    deployments: dict[str, str]
    pods: dict[str, str]
    service: dict[str, tuple[str, ...]]
    """What others wrote into it."""


@dataclass(kw_only=True)
class Looks:
    """A planner that finds nothing to do and writes down what it was shown."""

    last: dict[str, Seen] = field(default_factory=dict)

    def __call__(
        self, resource: ImageEditDeployment, observed: Observed, _memory: PlanMemory, _at: float
    ) -> tuple[Plan, PlanMemory]:
        self.last[resource.name] = Seen(
            resource=(resource.uid, resource.replicas),
            deployments={item.uid: item.resource_version for item in observed.deployments},
            pods={item.uid: item.waiting_reason for item in observed.pods},
            service={observed.service_uid: observed.service_changed} if observed.service_exists else {},
        )
        return Plan(actions=(), status=SETTLED, requeue_after_s=LATER_S, reasons=()), PlanMemory()


@dataclass(kw_only=True)
class SlowKube(MemoryKube):
    """Answers a request when it is let; all pages of a list are of the moment of the first."""

    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def _turn(self) -> None:
        self.waiting.append(asyncio.get_running_loop().create_future())
        await self.waiting[-1]

    async def get(self, resource: Resource, namespace: str, name: str) -> Manifest:
        if resource in {IMAGE_EDIT_DEPLOYMENTS, DEPLOYMENTS}:
            await self._turn()
        return await super().get(resource, namespace, name)

    async def pages(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", bare: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        slow = bool(labels) or resource == IMAGE_EDIT_DEPLOYMENTS
        if slow:
            await self._turn()
        found = [page async for page in super().pages(resource, namespace, labels=labels, fields=fields)]
        for number, page in enumerate(found):
            if slow and number:
                await self._turn()
            yield page

    def answer(self, which: int, *, error: ApiError | None = None) -> None:
        """One of the requests that wait gets its answer."""
        waiting = [one for one in self.waiting if not one.done()]
        self.waiting = waiting
        if not waiting:
            return
        chosen = waiting[which % len(waiting)]
        if error is None:
            chosen.set_result(None)
        else:
            chosen.set_exception(error)


class Scene:
    """A term without kopf: a cluster, what its watches would say, a resync, and one worker for whom resources wait."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.kube = SlowKube()
        self.looks = Looks()
        self._numbers = count(1)
        self._streams: dict[Resource, deque[tuple[str | None, Manifest]]] = {}
        self._sights = Sights()
        self.kept = Kept(clock=now)
        hearing = Hearing()
        cards = CardBook(self.kube, clock=now)
        budgets = BudgetBook(self.kube, clock=now, kept=self.kept, on_read=hearing.read)
        self.reconciler = Reconciler(
            kube=self.kube,
            observer=Observer(self.kube, http, cards, budgets, on_read=hearing.read, kept=self.kept),
            executor=Executor(self.kube, http, clock=now),
            cards=cards,
            status=StatusWriter(self.kube, on_written=hearing.read),
            queue=WorkQueue(clock=now, random=lambda: 0.0),
            telemetry=Telemetry(),
            clock=now,
            on_read=hearing.read,
            kept=self.kept,
            first=FirstLook(clock=now, kept=self.kept),
            planner=self.looks,
        )
        self.calls = Calls(queue=self.reconciler.queue, hearing=hearing, first=self.reconciler.first, kept=self.kept)
        self.stop, self.began = asyncio.Event(), asyncio.Event()
        for name in NAMES:
            self.create(name)

    async def lists(self) -> None:
        await resync(
            self.kube,
            (),
            self.stop,
            period_s=PERIOD_S,
            random=lambda: 0.5,
            known=lambda: self.reconciler.memories,
            unheard=self.calls.unheard,
            on_key=self.calls.listed,
            on_complete=lambda _listed: None,
            first=self.reconciler.first,
            vanished=self.calls.hearing.vanished,
            began=self.began,
        )

    def create(self, name: str) -> None:
        """A resource with a Service, a Deployment and a pod; nothing where there is one."""
        if (IMAGE_EDIT_DEPLOYMENTS, "team", name) in self.kube.objects:
            return
        resource = custom_resource(name, uid=f"uid-{name}-{next(self._numbers)}", status=SETTLED, replicas=1)
        self._store(IMAGE_EDIT_DEPLOYMENTS, resource, "ADDED")
        for kind in CHILDREN:
            self.add(name, kind)

    def add(self, name: str, kind: Resource) -> None:
        """A child more."""
        resource = self.kube.objects.get((IMAGE_EDIT_DEPLOYMENTS, "team", name))
        if resource is None or (kind == SERVICES and (kind, "team", name) in self.kube.objects):
            return
        number = next(self._numbers)
        made = pod(f"{name}-{number}", podIP="") if kind == PODS else deployment(f"{name}-{number}")
        about = made["metadata"]
        about["labels"] = {"imageedit.dev/deployment": name, "imageedit.dev/revision": "abc"}
        about["ownerReferences"] = [owner(resource["metadata"]["uid"])]
        if kind == SERVICES:
            about["name"] = name
        self._store(kind, made, "ADDED")

    def change(self, name: str, kind: Resource, which: int) -> None:
        """What a plan reads of an object becomes another."""
        found = self._pick(name, kind, which)
        if found is None:
            return
        changed = copy.deepcopy(found)
        changed["metadata"]["generation"] = number = next(self._numbers)
        if kind == IMAGE_EDIT_DEPLOYMENTS:
            changed["spec"]["replicas"] = number % 60
        if kind == PODS:
            changed["status"]["containerStatuses"] = [{"name": "server", "state": {"waiting": {"reason": f"{number}"}}}]
        if kind == SERVICES:
            changed["spec"] = {"selector": {"by": f"{number}"}}
            fields: dict[str, Any] = {"f:spec": {"f:selector": {}}}
            changed["metadata"]["managedFields"] = [
                {"manager": f"by-{number}", "operation": "Update", "fieldsV1": fields}
            ]
        self._store(kind, changed, "MODIFIED")

    def delete(self, name: str, kind: Resource, which: int) -> None:
        """An object goes, with what it owns."""
        found = self._pick(name, kind, which)
        if found is None:
            return
        if kind == IMAGE_EDIT_DEPLOYMENTS:
            for below in CHILDREN:
                while self._pick(name, below, 0) is not None:
                    self.delete(name, below, 0)
        del self.kube.objects[kind, "team", found["metadata"]["name"]]
        gone = copy.deepcopy(found)
        gone["metadata"]["resourceVersion"] = str(next(self._numbers))
        self._tell(kind, gone, "DELETED")

    def watch(self, kind: Resource) -> None:
        """The watch of a kind begins with a list."""
        if kind not in self._streams:
            listed = [item for (one, _, _), item in self.kube.objects.items() if one == kind]
            self._streams[kind] = deque((None, copy.deepcopy(item)) for item in listed)
            self.began.set()

    def hear(self, kind: Resource) -> bool:
        """The next event of a kind; False where there is none."""
        stream = self._streams.get(kind)
        if not stream:
            return False
        event, item = stream.popleft()
        gone = event == "DELETED"
        for key in keys_for(kind, item):
            delay_s = self._sights.delay_s(kind, item, gone=gone)
            self.calls.told(Told(key, kind, item["metadata"]["uid"], version_of(item), gone, delay_s))
        return True

    def there(self, name: str) -> Seen | None:
        """What a look would see now."""
        resource = self._pick(name, IMAGE_EDIT_DEPLOYMENTS, 0)
        if resource is None:
            return None
        services = self._all(name, SERVICES)
        return Seen(
            resource=(resource["metadata"]["uid"], resource["spec"]["replicas"]),
            deployments={item["metadata"]["uid"]: version_of(item) for item in self._all(name, DEPLOYMENTS)},
            pods={item["metadata"]["uid"]: _reason(item) for item in self._all(name, PODS)},
            service={item["metadata"]["uid"]: _writers(item) for item in services},
        )

    async def rest(self, seconds: float) -> None:
        """Time passes in which everything is answered and told."""
        until = now() + seconds
        while now() < until:
            for kind in WATCHED:
                self.watch(kind)
                while self.hear(kind):
                    pass
            await breathe()
            while any(not one.done() for one in self.kube.waiting):
                self.kube.answer(0)
                await breathe()
            await asyncio.sleep(STRIDE_S)

    def _all(self, name: str, kind: Resource) -> list[Manifest]:
        found = [item for (one, _, _), item in self.kube.objects.items() if one == kind]
        return [item for item in found if Key("team", name) in keys_for(kind, item)]

    def _pick(self, name: str, kind: Resource, which: int) -> Manifest | None:
        found = self._all(name, kind)
        return found[which % len(found)] if found else None

    def _store(self, kind: Resource, item: Manifest, event: str) -> None:
        item["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.kube.put(kind, item)
        self._tell(kind, item, event)

    def _tell(self, kind: Resource, item: Manifest, event: str) -> None:
        if kind in self._streams:
            self._streams[kind].append((event, copy.deepcopy(item)))


def _reason(item: Manifest) -> str:
    waiting: dict[str, Any] = item["status"]["containerStatuses"][0]["state"].get("waiting") or {}
    return str(waiting.get("reason") or "")


def _writers(service: Manifest) -> tuple[str, ...]:
    return tuple(f"spec.selector by {entry['manager']}" for entry in service["metadata"].get("managedFields", ()))


async def breathe() -> None:
    """Everybody who can goes on."""
    for _ in range(12):
        await asyncio.sleep(0)


@asynccontextmanager
async def serving() -> AsyncIterator[Scene]:
    """A scene in which the first list was asked for."""
    async with aiohttp.ClientSession() as http:
        scene = Scene(http)
        tasks = [asyncio.ensure_future(each) for each in (scene.lists(), worker(scene.reconciler).work())]
        await breathe()
        try:
            yield scene
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
