"""The writes a plan may ask for, as frozen values; `kube/execute.py` carries them out.

Every action is idempotent and carries what it needs to be refused when the world moved
on: a uid or a resourceVersion. Order within a plan is the order of execution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplyService:
    """Server-side apply of the Service; refused when there is another one than with this uid."""

    manifest: Mapping[str, Any]
    uid: str = ""
    """Empty: there is none yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplyClaimTemplate:
    """Server-side apply of the template of claims on cards, only when it does not exist yet: it never changes."""

    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplyBudget:
    """Server-side apply of the PodDisruptionBudget; refused when there is another one than with this uid."""

    manifest: Mapping[str, Any]
    uid: str = ""
    """Empty: there is none yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteBudget:
    """Delete the PodDisruptionBudget; uid and resourceVersion must match."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateDeployment:
    """A revision's Deployment, only when it does not exist yet."""

    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplyTemplate:
    """Server-side apply of `spec.template` as the second field manager, without force.

    Only over the Deployment of the uid and resourceVersion in its metadata, which has no pods.
    """

    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleDeployment:
    """Set `spec.replicas`; refused when uid or resourceVersion differ."""

    name: str
    uid: str
    resource_version: str
    replicas: int
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelDeployment:
    """Put labels of ours back; its pods do not notice. Refused when the uid differs."""

    name: str
    uid: str
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteDeployment:
    """Delete a revision that is out of the history, or written anew; uid and resourceVersion must match."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SetGate:
    """Write the pod condition `imageedit.dev/warm`."""

    pod: str
    uid: str
    value: bool
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DrainPod:
    """`POST /drain` to the pod; repeated until the pod reports that it drains."""

    pod: str
    uid: str
    ip: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SetDeletionCost:
    """Annotate the pod, so that the ReplicaSet removes it first."""

    pod: str
    uid: str
    cost: int


REMOVED_FOR = ("UnexpectedAdmission", "Evicted", "PodFailed", "DeviceUnhealthy")


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletePod:
    """Delete one pod, uid must match."""

    pod: str
    uid: str
    why: str
    reason: str = ""
    """What it is counted by: one of REMOVED_FOR; empty for a pod that has finished its drain."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateJob:
    """A Job that copies the model, only when it does not exist yet."""

    manifest: Mapping[str, Any]
    place: str
    """The node's name; empty for a claim."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteJob:
    """Delete such a Job with its pods; what it copied stays."""

    name: str
    uid: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PostEvent:
    """A Kubernetes Event on the resource, on a transition only."""

    type: str
    reason: str
    message: str
    occasion: str = ""
    """What tells it from an earlier one of the same words; the same where an operator that died decides it again."""


Action: TypeAlias = (
    ApplyService
    | ApplyClaimTemplate
    | ApplyBudget
    | DeleteBudget
    | CreateDeployment
    | ApplyTemplate
    | ScaleDeployment
    | LabelDeployment
    | DeleteDeployment
    | SetGate
    | DrainPod
    | SetDeletionCost
    | DeletePod
    | CreateJob
    | DeleteJob
    | PostEvent
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to do now, what to say about it, and when to look again."""

    actions: tuple[Action, ...]
    status: Mapping[str, Any]
    """The whole wanted status; written by the shell only when it differs from the present one."""
    requeue_after_s: float
    reasons: tuple[str, ...] = ()
    """One sentence for each decision, in order, for logs and `explain`."""
