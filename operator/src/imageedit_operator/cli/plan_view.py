"""What applying a file would do, as `plan -o json` shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from imageedit_operator.cli import assumptions, claims, nodes, recipes
from imageedit_operator.cli.children_view import Child, children_of
from imageedit_operator.cli.claims import NO_CLAIMS, Found
from imageedit_operator.cli.forecast import Forecast, Step, forecast
from imageedit_operator.cli.no_offer import nowhere
from imageedit_operator.cli.nodes import UNASKED, Nodes
from imageedit_operator.cli.pod_diff import pod_diff
from imageedit_operator.cli.recipes import Change
from imageedit_operator.core import demand, template
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.outage import warmup_s as measured_warmup_s
from imageedit_operator.core.pods import holds_card
from imageedit_operator.core.resource import ImageEditDeployment, parse
from imageedit_operator.core.revision import revision_hash

ASSUMED_WARMUP_S = 600.0
"""Where no warm-up was measured yet: a large checkpoint from a network volume."""

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanCards:
    """Cards on the way; `free` is None where nobody may know."""

    resource_name: str
    held: int
    most: int
    """Held or waited for at one time."""
    more: int
    """Free ones with which no old pod has to give way."""
    free: int | None
    message: str
    nowhere: str
    """Why no node that takes the pods offers any; empty where one does, or nobody may know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanView:
    """One resource of a file; docs/kubectl-plugin.md describes each field."""

    namespace: str
    name: str
    exists: bool
    changes: tuple[Change, ...]
    rolls: bool
    """Pods are replaced, or started for the first time."""
    revision_before: str
    revision: str
    children: tuple[Child, ...]
    pod_diff: tuple[str, ...]
    """Lines of a unified diff between the Deployments of the two revisions."""
    template: str
    """Whether spec.template fits what the operator writes; empty without one."""
    strategy: str
    chosen: str
    pods: int
    cards: PlanCards
    outcome: str
    message: str
    seconds: float
    outage_s: float | None
    fewest_warm: int
    warmup_s: float
    warmup_measured: bool
    steps: tuple[Step, ...]
    warnings: tuple[str, ...]
    """What its claims lack, or that no node takes its pods, and what to do."""
    assumed: tuple[str, ...]
    """What could not be seen, and what is taken for granted instead."""


def build(
    live: Raw | None,
    proposed: Raw,
    observed: Observed,
    *,
    now: float,
    mounted: Found = NO_CLAIMS,
    there: Nodes = UNASKED,
    health_unread: str = "",
    template_tried: bool = True,
) -> PlanView:
    """The view; `observed` was looked up for the proposed resource. Raises InvalidResource.

    `mounted` are the claims that it names, `there` the nodes. `health_unread` says why what device plugins say of
    cards could not be read; `template_tried`, that the apiserver was asked about spec.template, where there is one.
    """
    resource, status = parse(proposed), observed.status
    pods = wanted_pods(resource, observed)
    fixed = replace(resource, autoscaling=None, replicas=pods)
    measured = measured_warmup_s(status, observed.pods)
    warmup_s = ASSUMED_WARMUP_S if measured is None else measured
    unplaced = claims.unplaced_words(mounted) or nodes.unplaced_words(there)
    seen = forecast(fixed, observed, warmup_s=warmup_s, now=now, no_place=unplaced)
    hash_, before = revision_hash(resource), _revision_of(live)
    return PlanView(
        namespace=resource.namespace,
        name=resource.name,
        exists=live is not None,
        changes=_changes(live, proposed),
        rolls=hash_ != before,
        revision_before=before,
        revision=hash_,
        children=children_of(resource, observed, seen, now=now),
        pod_diff=pod_diff(live, resource) if hash_ != before else (),
        template=_template(resource, observed, tried=template_tried),
        strategy=resource.rollout.strategy,
        chosen=chosen(resource.rollout.strategy, seen, observed, wanted=pods),
        pods=pods,
        cards=_cards(resource, observed, seen),
        outcome=seen.outcome,
        message=seen.message,
        seconds=seen.seconds,
        outage_s=seen.outage_s,
        fewest_warm=seen.fewest_warm,
        warmup_s=warmup_s,
        warmup_measured=measured is not None,
        steps=seen.steps,
        warnings=(*claims.warnings(mounted), *nodes.warnings(resource, there)),
        assumed=(
            *assumptions.made(resource, observed, pods=pods, health_unread=health_unread),
            *claims.assumed(mounted),
            *nodes.assumed(resource, there),
        ),
    )


def without_queue(resource: ImageEditDeployment) -> ImageEditDeployment:
    """The same resource for an observer that shall not ask Prometheus."""
    return replace(resource, autoscaling=None)


# | autoscaling | the status has a desired number | pods                               |
# | absent      | any                             | spec.replicas                      |
# | set         | yes                             | that, within the new bounds        |
# | set         | no                              | what is there, within the bounds   |
def wanted_pods(resource: ImageEditDeployment, observed: Observed) -> int:
    """Pods that the forecast is about: the queue is taken to stay as it is."""
    scaling = resource.autoscaling
    if scaling is None:
        return resource.replicas
    desired = observed.status.get("desiredReplicas")
    there = desired if isinstance(desired, int) else sum(item.replicas for item in observed.deployments if item.owned)
    return min(max(there, scaling.min_replicas), scaling.max_replicas)


# | nothing is replaced               | None     |
# | a strategy but Auto               | itself   |
# | Auto, warm pods are never fewer   | Surge    |
# | Auto, they are                    | InPlace  |
def chosen(strategy: str, seen: Forecast, observed: Observed, *, wanted: int) -> str:
    """How Auto decides here."""
    replaced = any("drains" in step.what or "removes" in step.what for step in seen.steps)
    if not replaced:
        return "None"
    if strategy != "Auto":
        return strategy
    at_start = min(wanted, int(observed.status.get("readyReplicas") or 0) or wanted)
    return "Surge" if seen.fewest_warm >= at_start else "InPlace"


# | spec.template | the apiserver                       | said                              |
# | empty         | any                                 | nothing                           |
# | given         | was not asked                       | NotTried                          |
# | given         | refuses it                          | TemplateConflict, TemplateInvalid |
# | given         | takes it                            | Fits                              |
def _template(resource: ImageEditDeployment, observed: Observed, *, tried: bool) -> str:
    if not resource.template.given:
        return ""
    if not tried:
        return "NotTried"
    found = template.trouble(observed.template_refusal)
    return "Fits" if found is None else found.reason


def _revision_of(live: Raw | None) -> str:
    try:
        return "" if live is None else revision_hash(parse(live))
    except InvalidResource:
        return ""


def _changes(live: Raw | None, proposed: Raw) -> tuple[Change, ...]:
    return recipes.changes({} if live is None else live["spec"], proposed["spec"])


def _cards(resource: ImageEditDeployment, observed: Observed, seen: Forecast) -> PlanCards:
    name, each = resource.accelerator.extended_resource, demand.cards_per_pod(resource)
    held = sum((pod.cards or {}).get(name, 0) for pod in observed.pods if holds_card(pod))
    known = observed.cards.value if isinstance(observed.cards, Known) else None
    most = each * seen.most_pods
    return PlanCards(
        resource_name=name,
        held=held,
        most=most,
        more=max(0, most - held),
        free=None if known is None else known.free,
        message=observed.cards.message if isinstance(observed.cards, Unknown) else "",
        nowhere=nowhere(resource.accelerator, known),
    )
