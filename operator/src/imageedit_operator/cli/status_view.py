"""The state of one resource as `status -o json` shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imageedit_operator.cli import condition_view
from imageedit_operator.cli.condition_view import ConditionView
from imageedit_operator.cli.decision_view import DecisionView, decisions
from imageedit_operator.cli.looking import NOT_LOOKED_AT, Children, Report
from imageedit_operator.cli.no_offer import nowhere
from imageedit_operator.cli.pod_view import PodView, pod_view
from imageedit_operator.cli.roles import role
from imageedit_operator.core import demand
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import holds_card, is_active
from imageedit_operator.core.recipe import noted
from imageedit_operator.core.resource import ImageEditDeployment, parse
from imageedit_operator.core.stored import find
from imageedit_operator.kube.parsing import REVISION_LABEL, parse_pod

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RevisionView:
    """A revision that pods are of, or that the spec asks for."""

    hash: str
    model: str
    """Its `spec.model.revision`; empty where it is not known."""
    role: str
    pods: tuple[PodView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CardsView:
    """Cards of the resource; `free` and `allocatable` are None where nobody may know them."""

    resource_name: str
    needed: int
    """By all wanted pods together."""
    held: int
    missing: int
    """By pods that have no place yet."""
    free: int | None
    allocatable: int | None
    message: str
    nowhere: str
    """Why no node that takes the pods offers any; empty where one does, or nobody may know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusView:
    """One resource; docs/kubectl-plugin.md describes each field."""

    namespace: str
    name: str
    phase: str
    ready: bool
    """The condition Ready, for the spec as it stands."""
    warm_pods: int
    desired_pods: int | None
    summary: str
    """What is going on, in one sentence."""
    conditions: tuple[ConditionView, ...]
    """Those that are not fine first."""
    revisions: tuple[RevisionView, ...]
    cards: CardsView
    decisions: tuple[DecisionView, ...]
    """What the operator did or said last, newest first."""


def build(
    manifest: Raw,
    children: Children,
    reports: Mapping[str, Report],
    cards: Known[CardLedger] | Unknown,
    *,
    now: float,
) -> StatusView:
    """The view at `now`, UTC epoch seconds; `reports` are those of pods, by name."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    pods = [parse_pod(raw, report=_known(reports.get(raw["metadata"]["name"]))) for raw in children.pods]
    current = status.get("observedGeneration") == metadata.get("generation")
    return StatusView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        phase=str(status.get("phase") or "Unknown"),
        ready=current and find(status, "Ready").get("status") == "True",
        warm_pods=int(status.get("readyReplicas") or 0),
        desired_pods=status.get("desiredReplicas"),
        summary=_summary(manifest, status, current=current),
        conditions=condition_view.build(status, now=now),
        revisions=_revisions(children.deployments, pods, status, now=now),
        cards=_cards(_parsed(manifest), pods, status, cards),
        decisions=decisions(children.events, status, now=now),
    )


def _known(report: Report | None) -> Report:
    return NOT_LOOKED_AT if report is None else report


def _parsed(manifest: Raw) -> ImageEditDeployment | None:
    try:
        return parse(manifest)
    except InvalidResource:
        return None


# | first that fits                       | the sentence                                |
# | it is being deleted                   | says so                                     |
# | no operator ever wrote its status     | asks whether one runs                       |
# | the status answers an older spec      | says that the last change was not seen yet  |
# | RolloutStuck is True                  | its message                                 |
# | else                                  | Progressing's message                       |
def _summary(manifest: Raw, status: Raw, *, current: bool) -> str:
    if manifest["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    if not status.get("conditions"):
        return "no operator has looked at it yet; is one running, and does it serve this namespace?"
    if not current:
        return "the operator has not seen the last change of the spec yet"
    stuck = find(status, "RolloutStuck")
    said = stuck if stuck.get("status") == "True" else find(status, "Progressing")
    return str(said.get("message", ""))


def _revisions(
    deployments: Sequence[Raw], pods: Sequence[ObservedPod], status: Raw, *, now: float
) -> tuple[RevisionView, ...]:
    models = {str(entry.get("hash")): str(entry.get("model", "")) for entry in status.get("revisions") or ()}
    for deployment in deployments:
        recipe = noted(deployment)
        if recipe is not None:
            models[_hash(deployment)] = str(recipe["model"].get("revision", ""))
    hashes = {pod.revision_hash for pod in pods}
    hashes |= {
        str(status[name]) for name in ("currentRevision", "updateRevision", "failedRevision") if status.get(name)
    }
    made = [
        RevisionView(
            hash=hash_,
            model=models.get(hash_, ""),
            role=role(hash_, status, pods=sum(pod.revision_hash == hash_ for pod in pods)),
            pods=tuple(pod_view(pod, now=now) for pod in _sorted(pods) if pod.revision_hash == hash_),
        )
        for hash_ in hashes
    ]
    return tuple(sorted(made, key=lambda item: (_ORDER.index(item.role), item.hash)))


_ORDER = ("serves", "comes", "leaves", "failed", "last good", "kept")


def _hash(deployment: Raw) -> str:
    return str((deployment["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _sorted(pods: Sequence[ObservedPod]) -> list[ObservedPod]:
    return sorted(pods, key=lambda pod: (pod.created_at, pod.name))


def _cards(
    resource: ImageEditDeployment | None,
    pods: Sequence[ObservedPod],
    status: Raw,
    cards: Known[CardLedger] | Unknown,
) -> CardsView:
    each = 0 if resource is None else demand.cards_per_pod(resource)
    name = "" if resource is None else resource.accelerator.extended_resource
    known = cards.value if isinstance(cards, Known) else None
    return CardsView(
        resource_name=name,
        needed=each * int(status.get("desiredReplicas") or 0),
        held=sum((pod.cards or {}).get(name, 0) for pod in pods if holds_card(pod)),
        missing=sum((pod.cards or {}).get(name, 0) for pod in pods if is_active(pod) and not pod.node),
        free=None if known is None else known.free,
        allocatable=None if known is None else known.allocatable,
        message=cards.message if isinstance(cards, Unknown) else "",
        nowhere="" if resource is None else nowhere(resource.accelerator, known),
    )
