"""What one look at the cluster found, as frozen values.

`kube/observe.py` fills these, `plan.py` decides on them. Everything that can be
unavailable is `Known` or `Unknown`: a plan never sees a number that nobody measured.
Times are UTC epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Known(Generic[T]):
    """A value that was measured, and how old the measurement is."""

    value: T
    age_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """Why a value is not known: a CamelCase reason and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmReport:
    """A pod's answer to `GET /warmz` (docs/reference/pod-contract.md)."""

    warm: bool
    revision_hash: str
    digest: str
    instance: str
    warmup_s: float
    edit_s_by_size: Mapping[str, float]
    check_ok: bool
    check_message: str
    draining: bool
    accepting: bool
    running: int
    waiting: int
    error_reason: str = ""
    error_message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedDeployment:
    """One revision's Deployment."""

    name: str
    uid: str
    resource_version: str
    revision_hash: str
    replicas: int
    created_at: float
    rendered: str = ""
    """Digest of the pod template that was written; empty when an earlier operator wrote it."""
    templated: bool = False
    """`spec.template` was applied to it, by its own field manager."""
    refused: str = ""
    """Why its ReplicaSet cannot create pods, in the apiserver's words; may be old."""
    changed: tuple[str, ...] = ()
    """Fields of its spec that others wrote, and who, or that somebody took away, in words; not `replicas`."""
    labels_lost: Mapping[str, str] = field(default_factory=dict)
    """Labels of ours that it lacks or has otherwise, as they should be."""
    scaled_by: str = ""
    """Who wrote `replicas`, when it was not the operator."""
    owned: bool = True
    """False when an object of this name exists that another owner controls."""
    foreign_owner: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The apiserver's no to `spec.template`."""

    message: str
    contested: Mapping[str, str] = field(default_factory=dict)
    """Fields that another manager owns with another value, and its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedPod:
    """One server pod of the resource, terminating ones included."""

    name: str
    uid: str
    revision_hash: str
    node: str = ""
    ip: str = ""
    phase: str = "Pending"
    created_at: float = 0.0
    terminating: bool = False
    unschedulable: bool = False
    """The scheduler said PodScheduled=False, reason Unschedulable."""
    unschedulable_since: float = 0.0
    unschedulable_message: str = ""
    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims that it mounts, sorted."""
    ready: bool = False
    """The kubelet's Ready condition: probes and gate together."""
    container_id: str = ""
    """Of the server container that runs now; empty while none does."""
    started: bool = False
    """The server container runs (its process may still be cold)."""
    started_at: float = 0.0
    """Since when it runs; 0 when that is not known."""
    restarts: int = 0
    waiting_reason: str = ""
    """Reason of a container that cannot start: CrashLoopBackOff, ImagePullBackOff, ..."""
    waiting_message: str = ""
    mount_words: str = ""
    """What its node says of volumes that it cannot give to the pod; asked only after a minute in which nothing ran."""
    last_exit_code: int | None = None
    last_exit_reason: str = ""
    """The runtime's word for it: Error, OOMKilled, ..."""
    last_exit_message: str = ""
    """The termination log of the last exit, `Reason: message`."""
    failed_reason: str = ""
    """`status.reason` of a Failed pod: Evicted, UnexpectedAdmissionError, ..."""
    failed_message: str = ""
    """Its words."""
    gate: bool | None = None
    """Status of the warm gate condition; None when it was never written."""
    gate_reason: str = ""
    gate_message: str = ""
    gate_since: float = 0.0
    deletion_cost: int = 0
    scheduled_at: float = 0.0
    """When it got its node; 0 when that is not known."""
    cards: Mapping[str, int] | None = None
    """Extended resources that it asks for; None when they are not known."""
    held_cards: tuple[str, ...] = ()
    """Names of the physical cards that it holds; empty when nobody says."""
    unhealthy_cards: tuple[str, ...] = ()
    """Those of them that the kubelet calls unhealthy."""
    sick_card: str = ""
    """One that is known to be sick, filled in by the plan; empty while all are well or nobody says."""
    sick_words: str = ""
    """Why, filled in by the plan."""
    expected_digest: str = ""
    """Digest that its revision's files had before, filled in by the plan; empty when there is none."""
    overdue_s: float = 0.0
    """The deadline that it was not warm within, filled in by the plan; 0 while it has time."""
    lost: bool = False
    """Its node is not ready or gone, and nobody hears of it, filled in by the plan."""
    report: Known[WarmReport] | Unknown = field(
        default_factory=lambda: Unknown(reason="NotAsked", message="the pod was not asked")
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedBudget:
    """The PodDisruptionBudget of the resource's name."""

    uid: str
    resource_version: str
    max_unavailable: int | None
    """None when it says something else."""
    intact: bool
    """As the operator writes it, whatever its number."""
    foreign_owner: str = ""
    changed: tuple[str, ...] = ()
    """Fields of its spec that others wrote, and who, in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budgets:
    """The PodDisruptionBudgets that matter to the server pods."""

    named: ObservedBudget | None = None
    others: tuple[str, ...] = ()
    """Names of those of others that select the server pods."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SickNode:
    """A node with sick cards of the wanted resource."""

    sick: Mapping[str, str] = field(default_factory=dict)
    """The cards that the device plugin names, with its words."""
    capacity: int
    allocatable: int
    """Cards that the kubelet gives out: without those that it knows to be sick."""
    requested: int
    """By every pod on the node, those on sick cards included."""
    sick_held: int = 0
    """Of the named cards, those that pods hold."""
    takes_pods: bool = True

    @property
    def healthy(self) -> int:
        """Cards that are well. What kubelet and plugin call sick are the same cards, as far as they can be."""
        return max(0, min(self.allocatable, self.capacity - len(self.sick)))

    @property
    def free(self) -> int:
        """Healthy cards that a new pod could get now.

        The scheduler counts a pod on a sick card as if it held a healthy one, so its view is a limit too.
        """
        if not self.takes_pods:
            return 0
        return max(0, min(self.allocatable - self.requested, self.healthy - self.requested + self.sick_held))

    def without(self, cards: int, *, named_sick: int) -> SickNode:
        """The node once a pod of so many cards has left it, of which `named_sick` are in `sick`."""
        return replace(self, requested=self.requested - cards, sick_held=max(0, self.sick_held - named_sick))


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedJob:
    """A Job that makes a local copy of the model."""

    name: str
    uid: str
    revision_hash: str
    copy_key: str
    """Which files it copies where."""
    place: str
    """The node's name; empty for a claim."""
    node_uid: str
    """Of the node as it was known; empty where it was not. A new machine may come under an old name."""
    state: str
    """Active, Complete, Failed or Leaving."""
    message: str = ""
    """Why it failed, or what it waits for."""
    ended_at: float = 0.0
    """When it was complete."""
    owned: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CardLedger:
    """Cards of the wanted resource on the nodes that could run our pods."""

    allocatable: int
    requested: int
    """By every pod that holds or was given a card, foreign and terminating ones included."""
    claimed: int = 0
    """Of the free ones, those that waiting pods of other ImageEditDeployments are about to take."""
    sick_nodes: Mapping[str, SickNode] = field(default_factory=dict)
    """By name; nodes whose cards are all well are not listed."""
    holders: tuple[str, ...] = ()
    """Who else holds cards, in words, sorted."""
    ready_nodes: frozenset[str] | None = None
    """Names of all nodes that are ready, with cards or without; None when they are not known."""

    @property
    def free(self) -> int:
        """Cards that a new pod could get now; never below zero."""
        return max(0, self.allocatable - self.requested)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSample:
    """Requests of one resource as Prometheus saw them last."""

    waiting: float
    running: float
    pods: int
    """Number of pods that had a series."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observed:
    """Everything a plan may look at, besides the resource itself and the time."""

    deployments: tuple[ObservedDeployment, ...] = ()
    pods: tuple[ObservedPod, ...] = ()
    template_refusal: Refusal | None = None
    """What a try of `spec.template` was answered with; asked only while it is still to be applied."""
    service_exists: bool = False
    service_uid: str = ""
    service_matches: bool = False
    """The Service is ours and equals what the plan would write."""
    service_foreign_owner: str = ""
    service_changed: tuple[str, ...] = ()
    """Fields that the operator applies and others wrote, and who, or that somebody took away, in words."""
    claims_exist: bool = False
    """The template of claims on cards is there; read only where cards are claimed."""
    claims_foreign_owner: str = ""
    budgets: Known[Budgets] | Unknown = field(
        default_factory=lambda: Unknown(reason="NotAsked", message="budgets were not read")
    )
    cards: Known[CardLedger] | Unknown = field(
        default_factory=lambda: Unknown(reason="NotAsked", message="nodes were not read")
    )
    jobs: tuple[ObservedJob, ...] = ()
    """Read only where copies are wanted, or were."""
    nodes: Known[Mapping[str, str]] | Unknown = field(
        default_factory=lambda: Unknown(reason="NotAsked", message="nodes were not read")
    )
    """Nodes that have such cards and take our pods, whether or not a card is free now: uid by name."""
    queue: Known[QueueSample] | Unknown = field(
        default_factory=lambda: Unknown(reason="NotAsked", message="Prometheus was not asked")
    )
    status: Mapping[str, Any] = field(default_factory=dict)
    """The resource's status as it stands, the plan's memory across restarts."""
