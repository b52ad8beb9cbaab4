"""One pass over one resource: observe, plan, execute, write the status when it changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from imageedit_operator.core.accelerator import AutoInjection
from imageedit_operator.core.actions import DeleteBudget, DeletePod, Plan, PostEvent
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.relief import chosen_between
from imageedit_operator.core.resource import ImageEditDeployment, parse
from imageedit_operator.core.status import invalid, refused
from imageedit_operator.errors import ApiError, WorldMoved
from imageedit_operator.grounds import Grounds
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.execute import MOVES_CARDS, Executor, Subject, describe
from imageedit_operator.kube.first_look import FirstLook, Shown, nothing_shown
from imageedit_operator.kube.kept import Kept, nothing_kept
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.status import StatusWriter
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.worker import Outcome, about
from imageedit_operator.workqueue import Key, WorkQueue

logger = logging.getLogger(__name__)

MOVED_AGAIN_S = 0.3

Planner: TypeAlias = Callable[[ImageEditDeployment, Observed, PlanMemory, float], tuple[Plan, PlanMemory]]


@dataclass(kw_only=True, slots=True)
class Reconciler:
    """What a pass needs; `clock` is UTC epoch seconds."""

    kube: Kube
    observer: Observer
    executor: Executor
    cards: CardBook
    status: StatusWriter
    queue: WorkQueue
    telemetry: Telemetry
    clock: Callable[[], float]
    leading: Callable[[], bool] = lambda: True
    """Asked before every write: a process that was frozen may wake up when another one acts."""
    on_read: Callable[[Manifest], None] = lambda _resource: None
    """Gets each resource whose status was right already, as a pass read it; a pass that fails is told of by no call."""
    on_gone: Callable[[Key], None] = lambda _key: None
    """Called when a pass finds that there is no such resource any more."""
    kept: Kept = field(default_factory=nothing_kept)
    """What observer and executor know of children without reading them; a pass that goes wrong casts doubt on it."""
    first: FirstLook = field(default_factory=nothing_shown)
    """What the first list of the term showed."""
    auto: AutoInjection = field(default_factory=AutoInjection)
    planner: Planner = plan
    memories: dict[Key, tuple[str, PlanMemory]] = field(default_factory=dict)
    """What plans remember between passes, with the uid that it belongs to."""
    grounds: Grounds = field(init=False)
    """What lay under the pods of each resource when it was looked at last."""
    begun: dict[Key, str] = field(default_factory=dict)
    """Uid of each resource for which a pass began to write."""

    def __post_init__(self) -> None:
        self.grounds = Grounds(cards=self.cards, queue=self.queue, telemetry=self.telemetry)

    async def reconcile(self, key: Key) -> Outcome:
        """One pass. Raises ApiError when the apiserver refuses or does not answer."""
        shown = self.first.take(key)
        if shown is not None:
            if (outcome := await self._glance(key, shown)) is not None:
                return outcome
            self.kept.drop(key)  # it may be of that list too
        manifest = await self._read(key)
        if manifest is None:
            return self._forget(key)
        try:
            resource = parse(manifest, self.auto)
        except InvalidResource as error:
            return await self._refuse(key, manifest, str(error))
        observed = await self._observe(key, resource, manifest)
        planned, memory = self.planner(resource, observed, self._memory(key, resource.uid), self.clock())
        try:
            await self._execute(key, manifest, planned, observed)
            await self._write_status(key, manifest, planned.status)
        except WorldMoved as moved:
            logger.info("%s; planning anew", moved, extra=about(key))
            return Outcome(result="moved", again_after_s=MOVED_AGAIN_S)
        return self._rest(key, resource, observed, planned, memory)

    def _rest(
        self, key: Key, resource: ImageEditDeployment, observed: Observed, planned: Plan, memory: PlanMemory
    ) -> Outcome:
        """The end of a pass after which everything is as the plan wants it for now."""
        self.memories[key] = (resource.uid, memory)
        self._measure(key, resource, observed, planned)
        return Outcome(result="ok", again_after_s=planned.requeue_after_s)

    # | the look at what the list showed | then                                       |
    # | finds a resource without status  | the resource is read and looked at anew    |
    # | finds an invalid spec            | the same                                   |
    # | finds children to be changed     | the same                                   |
    # | finds a status to be written     | the same                                   |
    # | finds nothing to do              | that was the pass                          |
    async def _glance(self, key: Key, shown: Shown) -> Outcome | None:
        """The first look of a term, which asks the apiserver for hardly anything; None when it found work."""
        manifest = shown.resource
        live = manifest.get("status")
        if not live:
            return None
        try:
            resource = parse(manifest, self.auto)
        except InvalidResource:
            return None
        observed = await self.observer.observe(resource, manifest, shown=shown)
        planned, memory = self.planner(resource, observed, self._memory(key, resource.uid), self.clock())
        if planned.actions or self.status.needs_write(key, live, planned.status):
            return None
        self.on_read(manifest)
        return self._rest(key, resource, observed, planned, memory)

    # | status          | a pass of this process wrote for it | children are              |
    # | none yet        | no                                  | taken for absent          |
    # | none yet        | yes, perhaps in vain                | looked for                |
    # | any             | any                                 | looked for                |
    # A pass writes the status last: an operator that died before that has left children, and creating them is refused.
    async def _observe(self, key: Key, resource: ImageEditDeployment, manifest: Manifest) -> Observed:
        new = not manifest.get("status") and self.begun.get(key) != resource.uid
        self.begun[key] = resource.uid
        if new:
            return await self.observer.before_the_first_write(resource)
        return await self.observer.observe(resource, manifest)

    async def _read(self, key: Key) -> Manifest | None:
        try:
            return await self.kube.get(IMAGE_EDIT_DEPLOYMENTS, key.namespace, key.name)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def _forget(self, key: Key) -> Outcome:
        """Its children go by owner references; ours is only what we remember."""
        self.memories.pop(key, None)
        self.grounds.forget(key)
        self.begun.pop(key, None)
        self.kept.drop(key)
        self.status.forget(key)
        self.queue.forget(key)
        self.telemetry.forget(key)
        self.on_gone(key)
        return Outcome(result="gone")

    async def _refuse(self, key: Key, manifest: Manifest, why: str) -> Outcome:
        """Say what is wrong and wait: the change of the spec is an event."""
        live = manifest.get("status") or {}
        status = invalid(why, live, generation=manifest["metadata"].get("generation", 0), now=self.clock())
        try:
            await self._write_status(key, manifest, status)
        except WorldMoved:
            return Outcome(result="moved", again_after_s=MOVED_AGAIN_S)
        logger.warning("spec is invalid: %s", why, extra=about(key))
        return Outcome(result="invalid")

    def _memory(self, key: Key, uid: str) -> PlanMemory:
        known_uid, memory = self.memories.get(key, ("", PlanMemory()))
        return memory if known_uid == uid else PlanMemory()  # a resource of the same name, created anew

    async def _execute(self, key: Key, manifest: Manifest, planned: Plan, observed: Observed) -> None:
        subject = _subject(manifest)
        pods = {pod.uid: pod for pod in observed.pods}
        for action in planned.actions:
            self._must_lead()
            logger.info("%s", describe(action), extra=about(key) | {"reasons": list(planned.reasons)})
            if isinstance(action, MOVES_CARDS):
                self.cards.forget()
            if isinstance(action, DeleteBudget):
                self.kept.doubt(key)
            try:
                await self.executor.execute(action, subject, pods)
                if isinstance(action, DeletePod) and action.reason:
                    self.telemetry.removed(key, action.reason)
            except ApiError as error:
                if 400 <= error.status < 500 and error.status != 429:
                    await self._tell_refusal(error, key, manifest, planned.status)
                raise

    def _must_lead(self) -> None:
        if not self.leading():
            raise WorldMoved("the Lease is lost, another operator may act by now")

    async def _tell_refusal(self, error: ApiError, key: Key, manifest: Manifest, planned: Mapping[str, Any]) -> None:
        """A quota, a rule or an admission plugin said no: only the user can help, so the user must hear of it."""
        live, generation = manifest.get("status") or {}, manifest["metadata"].get("generation", 0)
        status = refused(error.message, planned, live, generation=generation, now=self.clock())
        told = PostEvent(type="Warning", reason="WriteRefused", message=error.message)
        try:
            await self.executor.execute(told, _subject(manifest), {})
            await self._write_status(key, manifest, status)
        except (ApiError, WorldMoved) as second:
            logger.warning("the refusal could not be told: %s", second, extra=about(key))

    async def _write_status(self, key: Key, manifest: Manifest, status: Mapping[str, Any]) -> None:
        self._must_lead()
        live = manifest.get("status") or {}
        try:
            written = await self.status.write(key, manifest["metadata"]["resourceVersion"], live, status)
        except ApiError as error:
            if error.conflict or error.not_found:
                raise WorldMoved(f"status: {error.message}") from error
            raise
        if not written:
            self.on_read(manifest)
        before, after = live.get("desiredReplicas"), status.get("desiredReplicas")
        if written and isinstance(before, int) and isinstance(after, int) and before != after:
            self.telemetry.decided(key, before, after)
        if written:
            self.telemetry.left_sick_cards(key, len(chosen_between(live, status)))

    def _measure(self, key: Key, resource: ImageEditDeployment, observed: Observed, planned: Plan) -> None:
        self.telemetry.status_seen(key, planned.status)
        self.grounds.found(key, resource.accelerator, observed)
        if resource.autoscaling is None:
            self.telemetry.forget_sample(key)
        else:
            self.telemetry.sample_seen(key, observed.queue.age_s if isinstance(observed.queue, Known) else None)


def _subject(manifest: Manifest) -> Subject:
    metadata = manifest["metadata"]
    return Subject(
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
    )
