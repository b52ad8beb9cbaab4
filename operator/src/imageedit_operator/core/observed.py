"""What one look at the cluster found, as frozen values.

`kube/observe.py` fills these, `plan.py` decides on them. Everything that can be unavailable is
`Known` or `Unknown`. Times are UTC epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod


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
