"""Where a rollout or a start is: the situation of one look, and the form of an answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from imageedit_operator.core.hold import Hold
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.scaling import Decision
from imageedit_operator.core.target import Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What the conditions are derived from."""

    name: str
    """Of the resource."""
    wanted: int
    hash: str
    """The revision that the pods go to."""
    spec_hash: str
    """The revision that the spec asks for; another one after a roll back."""
    serving: int
    """Warm, ready pods of every revision."""
    complete: bool
    """All wanted pods serve, all of the revision `hash`, nothing old left."""
    rolling: bool
    proven: bool
    """The revision `hash` was complete before."""
    failure: Failure | None
    """Why the spec's revision was given up."""
    hold: Hold | None
    still: bool
    """Nothing has moved for the progress deadline."""
    strategy: str
    mode: str
    outage: bool
    expected_drain_s: float
    expected_handover_s: float
    expected_start_s: float | None
    """From the start of the container until the pod is in the Service."""
    expected_warmup_s: float | None
    trouble: Trouble | None
    cardless: ObservedPod | None
    """A pod of the wanted revision that finds no card."""
    unschedulable: ObservedPod | None
    """A pod of the wanted revision that the scheduler finds no place for, for another reason than card or volume."""
    lost: ObservedPod | None
    """A pod of the wanted revision whose node is not ready or gone."""
    resource_name: str
    holders: tuple[str, ...]
    """Who holds cards of that name, as far as it is known: pods of ours that are terminating, then everybody else."""
    shrinking: bool
    decision: Decision | None
    """None without autoscaling."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Those that pods of the wanted revision ask of a node, where the spec is of that revision."""
    nowhere: str = ""
    """Why no node offers such a pod any card, and what to look at; empty where one does, or nobody knows."""
    unbegun: ObservedPod | None = None
    """A pod of the wanted revision that has a node, and for a minute no container."""
    unmounted: ObservedPod | None = None
    """A pod of the wanted revision that its node cannot give its volumes, or no node, for its claims have none."""
    placed: bool = True
    """A pod of the wanted revision has a node."""
    scaled_by: str = ""
    """Who writes `spec.replicas` through the scale subresource."""
    children: Answer = field(
        default_factory=lambda: Answer(status=True, reason="AsWritten", message="nobody else wrote to the children")
    )
    """Whether the children are as the operator wrote them."""
    handed: str = ""
    """Whose card the pods without one get, who leaves or soon will; empty where none of ours comes free for them."""
    degraded: Trouble | None = None
    """What is wrong although pods may serve: a sick card, a kubelet that refuses pods."""


NO_ROLLOUT = "NoRollout"
"""Reason of RolloutStuck while none is under way; the status remembers by it that one was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Status, reason and message of one condition."""

    status: bool
    reason: str
    message: str
