"""A cluster in which nothing fails: ReplicaSets, scheduler and kubelet in as much detail as a plan sees. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from imageedit_operator.cli import model_cards, model_objects
from imageedit_operator.cli.model_cards import Cards
from imageedit_operator.core import drain
from imageedit_operator.core.actions import (
    Action,
    ApplyClaimTemplate,
    ApplyService,
    ApplyTemplate,
    CreateDeployment,
    CreateJob,
    DeleteDeployment,
    DeleteJob,
    DeletePod,
    DrainPod,
    LabelDeployment,
    ScaleDeployment,
    SetDeletionCost,
    SetGate,
)
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed, ObservedDeployment, ObservedJob
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.outage import GONE_S, PROPAGATION_S, handover_s, start_s, work_s
from imageedit_operator.core.pods import is_active, is_serving
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.core.unplaced import could_get_room, seeks

SOME_NODE = "of a new pod"
"""Stands for the node that a pod gets, where nobody may know them."""


_NO_BUDGETS = Unknown(reason="NotAsked", message="nobody evicts anything in a forecast")


@dataclass(kw_only=True, slots=True)
class Model:
    """The children of one resource; `now` is moved by whoever runs it."""

    resource: ImageEditDeployment
    observed: Observed
    warmup_s: float
    now: float
    no_place: str = ""
    """The scheduler's words for pods of the spec's revision that no node takes, whatever leaves; empty else."""
    status: Mapping[str, Any] = field(default_factory=dict)
    deployments: dict[str, ObservedDeployment] = field(default_factory=dict)
    pods: dict[str, ObservedPod] = field(default_factory=dict)
    jobs: dict[str, ObservedJob] = field(default_factory=dict)
    _service: bool = False
    _claims: bool = False
    _warm_at: dict[str, float] = field(default_factory=dict)
    _idle_at: dict[str, float] = field(default_factory=dict)
    _gone_at: dict[str, float] = field(default_factory=dict)
    _without: dict[str, str] = field(default_factory=dict)
    """By revision, the scheduler's words for pods that find no place whatever leaves: nobody mends that here."""
    _wanted: str = ""
    """The spec's revision."""
    _names: int = 0
    _start_s: float = 0.0
    """From its place until a new pod serves."""
    _cards: Cards = field(init=False)

    def __post_init__(self) -> None:
        self.status, self._service = self.observed.status, self.observed.service_matches
        self._claims, self._wanted = self.observed.claims_exist, revision_hash(self.resource)
        began_s = start_s(self.warmup_s, self.observed.pods) or 0.0
        self._start_s = handover_s(self.observed.pods) - GONE_S + began_s
        self._cards = model_cards.seen(self.resource, self.observed)
        self.deployments = {item.name: item for item in self.observed.deployments}
        self.pods = {pod.uid: pod for pod in self.observed.pods}
        self.jobs = {job.name: model_objects.copied(job) for job in self.observed.jobs}
        for pod in self.observed.pods:
            if seeks(pod) and not could_get_room(pod):
                self._without[pod.revision_hash] = pod.unschedulable_message
        for pod in self.pods.values():
            if pod.terminating:
                self._gone_at[pod.uid] = self.now + GONE_S
            elif pod.node and not is_serving(pod):
                self._warm_at[pod.uid] = self.now + self.warmup_s

    @property
    def serving(self) -> int:
        """Pods that get requests."""
        return sum(is_serving(pod) for pod in self.pods.values())

    @property
    def terminating(self) -> bool:
        """Whether a pod is on its way out."""
        return any(pod.terminating for pod in self.pods.values())

    def observe(self) -> Observed:
        """What the operator would see."""
        return replace(
            self.observed,
            deployments=tuple(self.deployments.values()),
            pods=tuple(self.pods.values()),
            jobs=tuple(self.jobs.values()),
            service_exists=self._service or self.observed.service_exists,
            service_matches=self._service,
            claims_exist=self._claims,
            budgets=_NO_BUDGETS,
            cards=self._cards.ledger(self.pods.values()),
            status=self.status,
        )

    def execute(self, action: Action) -> None:
        """What the write changes at once."""
        match action:
            case ApplyService():
                self._service = True
            case ApplyClaimTemplate():
                self._claims = True
            case CreateDeployment(manifest=manifest):
                made = model_objects.deployment(manifest, self.now)
                self.deployments[made.name] = made
            case ApplyTemplate(manifest=manifest):
                name = manifest["metadata"]["name"]
                self.deployments[name] = replace(self.deployments[name], templated=True)
            case ScaleDeployment(name=name, replicas=replicas):
                self.deployments[name] = replace(self.deployments[name], replicas=replicas)
            case LabelDeployment(name=name):
                self.deployments[name] = replace(self.deployments[name], labels_lost={})
            case DeleteDeployment(name=name):
                self.deployments.pop(name, None)
            case CreateJob(manifest=manifest, place=place):
                job = model_objects.job(manifest, place, self.now)
                self.jobs[job.name] = job
            case DeleteJob(name=name):
                self.jobs.pop(name, None)
            case SetGate(uid=uid) | DrainPod(uid=uid) | SetDeletionCost(uid=uid) | DeletePod(uid=uid) if (
                uid in self.pods
            ):
                self._execute_on(self.pods[uid], action)
            case _:
                pass

    def advance(self) -> bool:
        """Controllers, scheduler and kubelets do what is due; whether any pod changed or is about to go."""
        before = dict(self.pods)
        for deployment in self.deployments.values():
            self._replica_set(deployment)
        for uid in [uid for uid, at in self._gone_at.items() if at <= self.now]:
            self.pods.pop(uid, None)
            del self._gone_at[uid]
        for uid, pod in list(self.pods.items()):
            self.pods[uid] = self._kubelet(self._scheduled(pod))
        return self.pods != before or bool(self._gone_at)

    def next_due(self) -> float | None:
        """When the next pod is warm, or has finished what it accepted; None when none is on its way."""
        times = (*self._warm_at.items(), *self._idle_at.items())
        return min((at for uid, at in times if uid in self.pods and at > self.now), default=None)

    @property
    def waiting(self) -> bool:
        """Whether a pod has no place: the plan counts its grace times."""
        return any(pod.unschedulable and not pod.terminating for pod in self.pods.values())

    def _execute_on(self, pod: ObservedPod, action: SetGate | DrainPod | SetDeletionCost | DeletePod) -> None:
        match action:
            case SetGate(value=value, reason=reason, message=message):
                same = (pod.gate, pod.gate_reason) == (value, reason)
                since = pod.gate_since if same else self.now
                pod = replace(pod, gate=value, gate_reason=reason, gate_message=message, gate_since=since)
                self.pods[pod.uid] = replace(pod, ready=pod.ready and value)
            case DrainPod():
                self._drain(pod)
            case SetDeletionCost(cost=cost):
                self.pods[pod.uid] = replace(pod, deletion_cost=cost)
            case DeletePod():
                self._terminate(pod)

    def _drain(self, pod: ObservedPod) -> None:
        if isinstance(pod.report, Unknown):
            return  # nobody hears when it has finished: the plan waits for the drain timeout
        report = replace(pod.report.value, draining=True)
        busy_s = work_s(pod, self.resource.rollout.drain_timeout_s)
        self._idle_at.setdefault(pod.uid, self.now + max(PROPAGATION_S if report.warm else 0.0, busy_s))
        self.pods[pod.uid] = replace(pod, report=Known(value=report))

    def _terminate(self, pod: ObservedPod) -> None:
        self.pods[pod.uid] = replace(pod, terminating=True, ready=False)
        self._gone_at.setdefault(pod.uid, self.now + GONE_S)

    def _replica_set(self, deployment: ObservedDeployment) -> None:
        mine = [
            pod
            for pod in self.pods.values()
            if deployment.owned and pod.revision_hash == deployment.revision_hash and is_active(pod)
        ]
        for _ in range(deployment.replicas - len(mine)):
            self._names += 1
            name = f"{deployment.name}-new{self._names}"
            cards = {self._cards.name: self._cards.each}
            self.pods[name] = model_objects.pod(name, deployment.revision_hash, cards, self.now)
        mine.sort(key=lambda pod: drain.deletion_key(pod, pod.deletion_cost))
        for pod in mine[: max(0, len(mine) - deployment.replicas)]:
            self._terminate(pod)

    def _scheduled(self, pod: ObservedPod) -> ObservedPod:
        if pod.node or pod.terminating or not is_active(pod):
            return pod
        words = self._without.get(pod.revision_hash, "")
        if pod.revision_hash == self._wanted:
            words = words or self.no_place
        words = words or self._cards.scheduler_words(self.pods.values())
        if words:
            since = pod.unschedulable_since or self.now
            return replace(pod, unschedulable=True, unschedulable_since=since, unschedulable_message=words)
        self._warm_at[pod.uid] = self.now + self._start_s
        placed = replace(pod, node=self._node(), unschedulable=False, unschedulable_message="", scheduled_at=self.now)
        self.pods[pod.uid] = placed  # the next one in this look sees its card taken
        return placed

    def _node(self) -> str:
        nodes = self.observed.nodes
        return min(nodes.value, default=SOME_NODE) if isinstance(nodes, Known) else SOME_NODE

    def _kubelet(self, pod: ObservedPod) -> ObservedPod:
        if pod.terminating or not pod.node or not is_active(pod):
            return pod
        at = self._warm_at.get(pod.uid)
        if at is not None and not (isinstance(pod.report, Known) and pod.report.value.warm and pod.started):
            pod = model_objects.started(pod, warm=at <= self.now, warmup_s=self.warmup_s)
        if self._idle_at.get(pod.uid, self.now + 1) <= self.now and isinstance(pod.report, Known):
            pod = replace(pod, report=Known(value=replace(pod.report.value, accepting=False, running=0, waiting=0)))
        warm = is_serving(pod) or (isinstance(pod.report, Known) and pod.report.value.warm)
        return replace(pod, ready=pod.gate is True and warm)
