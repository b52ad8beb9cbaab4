"""A small model of a cluster that carries plans out: ReplicaSets, scheduler, kubelet, load.

It is written against Kubernetes' own rules and shares no code with the plan, so that a
wrong assumption of the plan shows as a broken invariant here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core import resource as resources
from imageedit_operator.core.actions import (
    Action,
    ApplyBudget,
    ApplyClaimTemplate,
    ApplyService,
    ApplyTemplate,
    CreateDeployment,
    CreateJob,
    DeleteBudget,
    DeleteDeployment,
    DeleteJob,
    DeletePod,
    DrainPod,
    LabelDeployment,
    Plan,
    PostEvent,
    ScaleDeployment,
    SetDeletionCost,
    SetGate,
)
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.manifests import RENDERED
from imageedit_operator.core.observed import Observed, ObservedDeployment, ObservedJob, QueueSample
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.revision import revision_hash

TICK_S = 2.0

NO_PLACE = {
    "claim": '0/1 nodes are available: persistentvolumeclaim "models" not found. preemption: '
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    "labels": "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: "
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
}
"""What the scheduler says of pods that no node takes, by their behaviour."""


@dataclass(kw_only=True)
class Deployment:
    name: str
    uid: str
    hash: str
    created_at: float
    replicas: int = 0
    version: int = 1
    rendered: str = ""
    templated: bool = False


@dataclass(kw_only=True)
class Pod:
    name: str
    uid: str
    hash: str
    created_at: float
    node: str = ""
    container: int = 0
    started: bool = False
    warm_in: int = 3
    gone_in: int = 2
    terminating: bool = False
    failed: bool = False
    ready: bool = False
    gate: bool | None = None
    gate_reason: str = ""
    gate_message: str = ""
    gate_since: float = 0.0
    cost: int = 0
    unschedulable_since: float | None = None
    draining: bool = False
    accepting: bool = True
    running: int = 0
    job_left: int = 0
    restarts: int = 0
    scheduled_at: float = 0.0
    digest: str = ""
    card: int | None = None

    @property
    def active(self) -> bool:
        return not self.terminating and not self.failed

    @property
    def warm(self) -> bool:
        return self.started and self.warm_in <= 0

    @property
    def container_id(self) -> str:
        return f"c-{self.uid}-{self.container}" if self.started else ""


@dataclass(kw_only=True)
class Job:
    manifest: dict[str, Any]
    uid: str
    place: str
    ticks_left: int
    ended_at: float = 0.0
    failed: bool = False

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@dataclass(kw_only=True)
class Cluster:
    """One resource, its children and the cards of one node."""

    manifest: dict[str, Any]
    cards: int
    cards_known: bool = True
    load: bool = False
    job_ticks: int = 2
    behaviour: dict[str, str] = field(default_factory=dict)
    """By model revision: good (default), crash, image, check, never (gets warm), or what keeps it from any node."""
    files: str = "sha256:ab"
    """Digest of the files that a pod reads which is created now."""
    queue: Known[QueueSample] | Unknown = field(default_factory=lambda: Unknown(reason="NoSeries", message="none"))
    seed: int = 0
    sick: set[int] = field(default_factory=set)
    told_by: str = "kubelet"
    """Who says that a card is sick: kubelet (it no longer gives it out), plugin (it still does), nobody."""
    sick_kills: bool = False
    """A pod on a sick card loses its process."""
    left_for_sickness: list[tuple[str, int]] = field(default_factory=list)
    """Pods that the plan drained or deleted while their card was sick, with the card."""
    lazy_controllers: bool = False
    """Controllers and kubelet act in some ticks only."""
    dies: float = 0.0
    """How likely it is that the operator dies in a tick, between any two of its writes."""
    nodes: tuple[str, ...] = ("node-1",)
    """All of them have cards; pods land on any of them."""
    nodes_known: bool = True
    machines: dict[str, str] = field(default_factory=dict)
    """Uid of a node that was made anew under its name."""
    copy_ticks: int = 5
    bad_nodes: frozenset[str] = frozenset()
    """A copy fails there."""
    jobs: dict[str, Job] = field(default_factory=dict)
    copies: set[tuple[str, str]] = field(default_factory=set)
    """Name of a copy and the node that has it."""
    wanted_copies: dict[str, str] = field(default_factory=dict)
    """Name of the copy that pods of a revision mount, by hash."""
    two_operators: bool = False
    """Two of them act on the same look."""
    now: float = 1_000_000.0
    status: dict[str, Any] = field(default_factory=dict)
    deployments: dict[str, Deployment] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    service: bool = False
    memory: PlanMemory = field(default_factory=PlanMemory)
    events: list[PostEvent] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    dark_ticks: int = 0
    most_pods: int = 0
    last: Plan | None = None
    _names: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    # -- what tests do ---------------------------------------------------------------------

    def change(self, **spec: Any) -> None:
        self.manifest["spec"].update(spec)
        self.manifest["metadata"]["generation"] += 1

    def upgrade_operator(self) -> None:
        """The next operator renders other pods than those of every Deployment that is there."""
        for item in self.deployments.values():
            item.rendered = "by an earlier operator"

    def annotate(self, name: str, value: str) -> None:
        self.manifest["metadata"].setdefault("annotations", {})[f"imageedit.dev/{name}"] = value

    def roll_to(self, revision: str) -> None:
        self.change(model={**self.manifest["spec"]["model"], "revision": revision})

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()

    def settle(self, limit: int = 800) -> int:
        """Tick until the plan does nothing twice in a row; the number of ticks."""
        quiet = 0
        for count in range(limit):
            before = self.status
            self.tick()
            assert self.last is not None
            same = not self.last.actions and self.status == before and not any(pod.terminating for pod in self.pods)
            waiting = any(self._may_become_ready(pod) for pod in self.pods)
            waiting = waiting or any(job.ticks_left > 0 for job in self.jobs.values())
            quiet = quiet + 1 if same and not waiting else 0
            # Grace times pass quietly, so a state that is not ready must stay for longer.
            if quiet >= (3 if self.condition("Ready")["status"] == "True" else 120):
                return count + 1
        raise AssertionError(f"no rest after {limit} ticks: {self.status}\n{self.pods}")

    def _may_become_ready(self, pod: Pod) -> bool:
        refused = self._broken(pod) or pod.gate_reason == "DigestMismatch"
        return pod.active and pod.started and not pod.ready and not refused

    def delete(self, pod: Pod) -> None:
        """By hand: the server drains on SIGTERM."""
        pod.terminating, pod.ready, pod.draining = True, False, pod.started

    def restart_operator(self) -> None:
        self.memory = PlanMemory()

    def restart_container(self, pod: Pod) -> None:
        pod.container += 1
        pod.restarts += 1
        pod.warm_in, pod.ready, pod.running, pod.draining, pod.accepting = 3, False, 0, False, True

    @property
    def hash(self) -> str:
        return revision_hash(resources.parse(self.manifest))

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.active]

    @property
    def serving(self) -> list[Pod]:
        return [pod for pod in self.active if pod.ready]

    def condition(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = next(item for item in self.status["conditions"] if item["type"] == kind)
        return found

    # -- one tick --------------------------------------------------------------------------

    def tick(self) -> None:
        made, self.memory = plan(resources.parse(self.manifest), self.observe(), self.memory, self.now)
        self.last = made
        self._carry_out(made)
        if self._acts():
            self._replica_sets()
        self._job_controller()
        self._schedule()
        for pod in list(self.pods):
            if self._acts():
                self._kubelet(pod)
            self._work(pod)
        self.most_pods = max(self.most_pods, len(self.active))
        self.dark_ticks = 0 if self.serving else self.dark_ticks + 1
        self.now += TICK_S

    def _carry_out(self, made: Plan) -> None:
        actions = made.actions * 2 if self.two_operators else made.actions
        if self._random.random() < self.dies:
            for action in actions[: self._random.randint(0, len(actions))]:
                self._execute(action)
            self.restart_operator()
            return
        for action in actions:
            self._execute(action)
        self.status = dict(made.status)

    def observe(self) -> Observed:
        return Observed(
            deployments=tuple(
                ObservedDeployment(
                    name=item.name,
                    uid=item.uid,
                    resource_version=str(item.version),
                    revision_hash=item.hash,
                    replicas=item.replicas,
                    created_at=item.created_at,
                    rendered=item.rendered,
                    templated=item.templated,
                )
                for item in self.deployments.values()
            ),
            pods=tuple(self._observe_pod(pod) for pod in self.pods),
            service_exists=self.service,
            service_matches=self.service,
            cards=self._ledger(),
            jobs=tuple(map(self._observe_job, self.jobs.values())),
            nodes=self._nodes(),
            queue=self.queue,
            status=self.status,
        )

    def _nodes(self) -> Known[Mapping[str, str]] | Unknown:
        if not self.nodes_known:
            return Unknown(reason="Forbidden", message="nodes may not be read")
        return Known(value={name: self.machines.get(name, f"uid-{name}") for name in self.nodes})

    def _observe_job(self, job: Job) -> ObservedJob:
        labels = job.manifest["metadata"]["labels"]
        state = "Active" if job.ticks_left > 0 else "Failed" if job.failed else "Complete"
        return ObservedJob(
            name=job.name,
            uid=job.uid,
            revision_hash=labels["imageedit.dev/revision"],
            copy_key=labels["imageedit.dev/copy"],
            place=job.place,
            node_uid=job.manifest["metadata"]["annotations"]["imageedit.dev/node-uid"],
            state=state,
            message="ModelInvalid: transformer/x is not the file of the manifest" if state == "Failed" else "",
            ended_at=job.ended_at,
        )

    def _job_controller(self) -> None:
        for job in self.jobs.values():
            if job.ticks_left > 0 and self._acts():
                job.ticks_left -= 1
                job.failed = job.ticks_left == 0 and job.place in self.bad_nodes
                if job.ticks_left == 0 and not job.failed:
                    job.ended_at = self.now
                    self._copy(job)

    def _copy(self, job: Job) -> None:
        (container,) = job.manifest["spec"]["template"]["spec"]["containers"]
        _, _, target, *options = container["args"]
        name = target.rpartition("/")[2]
        given = dict(option.removeprefix("--").split("=", 1) for option in options)
        if "remove-others" in given:
            stay = {name, *given["keep"].split(",")}
            self.copies = {(copy, node) for copy, node in self.copies if node != job.place or copy in stay}
        self.copies.add((name, job.place))

    def _has_files(self, pod: Pod) -> bool:
        """Whether the kubelet can mount the folder that the pod's template names."""
        wanted = self.wanted_copies.get(pod.hash, "")
        return not wanted or (wanted, pod.node) in self.copies

    def _ledger(self) -> Known[CardLedger] | Unknown:
        if not self.cards_known:
            return Unknown(reason="Forbidden", message="nodes may not be read")
        held = {pod.card for pod in self.pods if pod.card is not None and not pod.failed}
        well = self.cards - len(self.sick)
        free = min(self._allocatable() - self._taken(), len(set(range(self.cards)) - self.sick - held))
        node = SickNode(
            sick={f"card-{card}": "fault 80E01801" for card in self.sick if self.told_by == "plugin"},
            capacity=self.cards,
            allocatable=self._allocatable(),
            requested=self._taken(),
            sick_held=len(held & self.sick) if self.told_by == "plugin" else 0,
        )
        return Known(
            value=CardLedger(
                allocatable=well, requested=well - max(0, free), sick_nodes={"node-1": node} if self.sick else {}
            )
        )

    def _allocatable(self) -> int:
        """Cards that the kubelet gives out."""
        return self.cards - (0 if self.told_by == "plugin" else len(self.sick))

    def _give_card(self) -> int | None:
        held = {pod.card for pod in self.pods if pod.node and not pod.failed}
        sick = set() if self.told_by == "plugin" else self.sick
        return min(set(range(self.cards)) - held - sick, default=None)

    def _taken(self) -> int:
        return sum(bool(pod.node) and not pod.failed for pod in self.pods)

    def _observe_pod(self, pod: Pod) -> ObservedPod:
        broken = self._broken(pod)
        phase = "Failed" if pod.failed else "Running" if pod.started or broken == "crash" else "Pending"
        return ObservedPod(
            name=pod.name,
            uid=pod.uid,
            revision_hash=pod.hash,
            node=pod.node,
            ip="10.0.0.1" if pod.node else "",
            phase=phase,
            created_at=pod.created_at,
            terminating=pod.terminating,
            unschedulable=pod.unschedulable_since is not None,
            unschedulable_since=pod.unschedulable_since or 0.0,
            unschedulable_message=self._why_no_place(pod) if pod.unschedulable_since else "",
            ready=pod.ready,
            container_id=pod.container_id,
            started=pod.started,
            restarts=pod.restarts,
            waiting_reason={"crash": "CrashLoopBackOff", "image": "ImagePullBackOff"}.get(broken, ""),
            last_exit_code=65 if broken == "crash" else None,
            last_exit_message="ModelMissing: no checkpoint" if broken == "crash" else "",
            failed_reason="UnexpectedAdmissionError" if pod.failed else "",
            gate=pod.gate,
            gate_reason=pod.gate_reason,
            gate_message=pod.gate_message,
            gate_since=pod.gate_since,
            deletion_cost=pod.cost,
            scheduled_at=pod.scheduled_at,
            held_cards=(f"card-{pod.card}",) if pod.card is not None and self.told_by != "nobody" else (),
            unhealthy_cards=(f"card-{pod.card}",) if pod.card in self.sick and self.told_by == "kubelet" else (),
            report=self._report(pod),
        )

    def _why_no_place(self, pod: Pod) -> str:
        return NO_PLACE.get(self.behaviour.get(pod.hash, ""), "1 Insufficient huawei.com/Ascend910")

    def _broken(self, pod: Pod) -> str:
        if self.sick_kills and pod.card in self.sick:
            return "crash"
        return self.behaviour.get(pod.hash, "") if pod.node else ""

    def _report(self, pod: Pod) -> Known[WarmReport] | Unknown:
        if not pod.started or self._random.random() < 0.1:
            return Unknown(reason="Unreachable", message="no answer")
        return Known(
            value=WarmReport(
                warm=pod.warm,
                revision_hash=pod.hash,
                digest=pod.digest,
                instance=pod.container_id,
                warmup_s=6.0,
                edit_s_by_size={},
                check_ok=pod.warm and self._broken(pod) != "check",
                check_message="the picture is flat",
                draining=pod.draining,
                accepting=pod.accepting and pod.warm,
                running=pod.running,
                waiting=0,
            )
        )

    def _acts(self) -> bool:
        return not self.lazy_controllers or self._random.random() < 0.6

    def _execute(self, action: Action) -> None:
        match action:
            case ApplyService():
                self.service = True
            case ApplyClaimTemplate() | ApplyBudget() | DeleteBudget():
                pass  # these pods request their cards as numbers, and nobody evicts them
            case CreateDeployment():
                meta = action.manifest["metadata"]
                if meta["name"] not in self.deployments:
                    self._names += 1
                    self.deployments[meta["name"]] = Deployment(
                        name=meta["name"],
                        uid=f"d-{self._names}",
                        hash=meta["labels"]["imageedit.dev/revision"],
                        created_at=self.now,
                        replicas=action.manifest["spec"]["replicas"],
                        rendered=meta["annotations"][RENDERED],
                    )
                    for volume in action.manifest["spec"]["template"]["spec"]["volumes"]:
                        if volume["name"] == "models" and "/copies/" in volume.get("hostPath", {}).get("path", ""):
                            folder = volume["hostPath"]["path"].rpartition("/")[2]
                            self.wanted_copies[meta["labels"]["imageedit.dev/revision"]] = folder
                    revision = self.manifest["spec"]["model"]["revision"]
                    if revision in self.behaviour:
                        self.behaviour[meta["labels"]["imageedit.dev/revision"]] = self.behaviour[revision]
            case ApplyTemplate():
                meta = action.manifest["metadata"]
                item = self.deployments.get(meta["name"])
                if item is not None and (item.uid, str(item.version)) == (meta["uid"], meta["resourceVersion"]):
                    assert not item.replicas, "a template under pods restarts them"
                    assert not [pod for pod in self.pods if pod.hash == item.hash]
                    item.templated, item.version = True, item.version + 1
            case ScaleDeployment():
                item = self.deployments.get(action.name)
                if item is not None and (item.uid, str(item.version)) == (action.uid, action.resource_version):
                    item.replicas, item.version = action.replicas, item.version + 1
            case DeleteDeployment() if action.name in self.deployments:
                item = self.deployments[action.name]
                assert item.replicas == 0
                assert not [pod for pod in self.pods if pod.hash == item.hash]
                del self.deployments[action.name]
            case DeleteDeployment():
                pass
            case CreateJob(manifest=manifest, place=place):
                name = manifest["metadata"]["name"]
                if name not in self.jobs:
                    self._names += 1
                    made = Job(manifest=dict(manifest), uid=f"j{self._names}", place=place, ticks_left=self.copy_ticks)
                    self.jobs[name] = made
            case DeleteJob(name=name, uid=uid) if name in self.jobs and self.jobs[name].uid == uid:
                del self.jobs[name]
            case DeleteJob():
                pass
            case LabelDeployment():
                pass  # nobody here takes labels away
            case PostEvent():
                assert "was deleted" not in action.message, "nobody here deletes a Service or a Deployment"
                self.events.append(action)
            case _:
                for pod in [pod for pod in self.pods if pod.uid == action.uid]:
                    self._execute_on(pod, action)

    def _execute_on(self, pod: Pod, action: SetGate | DrainPod | SetDeletionCost | DeletePod) -> None:
        self._note_sickness(pod, action)
        match action:
            case SetGate():
                if pod.gate_reason == "Draining" and action.value:
                    self.violations.append(f"gate of draining {pod.name} opened")
                if pod.gate is not action.value:
                    pod.gate_since = self.now
                pod.gate, pod.gate_reason, pod.gate_message = action.value, action.reason, action.message
            case DrainPod():
                pod.draining = pod.draining or pod.started
            case SetDeletionCost():
                pod.cost = action.cost
            case DeletePod():
                self._terminate(pod, "named")

    def _note_sickness(self, pod: Pod, action: SetGate | DrainPod | SetDeletionCost | DeletePod) -> None:
        begins = isinstance(action, SetGate) and action.reason == "Draining" and pod.gate_reason != "Draining"
        removed = isinstance(action, DeletePod) and pod.gate_reason != "Draining" and pod.active
        if pod.card in self.sick and pod.card is not None and (begins or removed):
            self.left_for_sickness.append((pod.name, pod.card))

    def _terminate(self, pod: Pod, how: str) -> None:
        if pod.terminating:
            return
        if pod.failed:
            self.pods.remove(pod)
            return
        if pod.running:
            self.violations.append(f"busy {pod.name} removed ({how})")
        pod.terminating, pod.ready = True, False

    def _replica_sets(self) -> None:
        for item in self.deployments.values():
            pods = [pod for pod in self.active if pod.hash == item.hash]
            for _ in range(item.replicas - len(pods)):
                self._names += 1
                name = f"{item.name}-{self._names}"
                self.pods.append(
                    Pod(name=name, uid=f"u{self._names}", hash=item.hash, created_at=self.now, digest=self.files)
                )
            self._random.shuffle(pods)  # ties fall as they like
            phases = {"Pending": 0, "Unknown": 1, "Running": 2}
            pods.sort(key=lambda pod: (bool(pod.node), phases[self._observe_pod(pod).phase], pod.ready, pod.cost))
            for pod in pods[: max(0, len(pods) - item.replicas)]:
                self._terminate(pod, "scaled away")

    def _schedule(self) -> None:
        needs_card = bool(resources.parse(self.manifest).accelerator.resource_name)
        for pod in self.active:
            if pod.node:
                continue
            refused = self.behaviour.get(pod.hash) in NO_PLACE
            if not refused and (not needs_card or self._taken() < self._allocatable()):
                pod.card = self._give_card() if needs_card else None
                node = self._random.choice(self.nodes)
                pod.node, pod.unschedulable_since, pod.scheduled_at = node, None, self.now
            elif pod.unschedulable_since is None:
                pod.unschedulable_since = self.now

    def _kubelet(self, pod: Pod) -> None:
        if pod.terminating:
            pod.gone_in -= 1
            if (pod.gone_in <= 0 and not pod.running) or not pod.node:
                self.pods.remove(pod)
            return
        if self.sick_kills and pod.card in self.sick and pod.started:
            pod.started, pod.ready, pod.running, pod.restarts = False, False, 0, pod.restarts + 1
        if not pod.node or pod.failed or self._broken(pod) in ("crash", "image"):
            return
        if not pod.started and not self._has_files(pod):
            return
        if not pod.started:
            pod.started, pod.container = True, pod.container + 1
            return
        pod.warm_in -= self._broken(pod) != "never"
        pod.ready = pod.gate is True and pod.warm and not pod.draining
        if pod.ready and pod.container_id not in pod.gate_message:
            self.violations.append(f"{pod.name} is ready by the gate of another container")

    def _work(self, pod: Pod) -> None:
        if pod.running:
            pod.job_left -= 1
            pod.running = int(pod.job_left > 0)
        if self.load and pod.ready and pod.accepting and not pod.running:
            pod.running, pod.job_left = 1, self.job_ticks
        if pod.draining:
            pod.accepting = False
