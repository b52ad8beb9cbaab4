"""One server pod as the cluster shows it, and what it says of itself; times are UTC epoch seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from imageedit_operator.core.known import Known, Unknown


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
    ends_by: float = 0.0
    """When the grace period of a terminating pod is over; 0 for others."""
    running: tuple[str, ...] = ()
    """Names of the containers of a terminating pod that still run, sorted."""
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
    prepared_at: float = 0.0
    """When its volumes and its network were there; 0 when that is not known."""
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
