"""What a Deployment of ours has lost: fields and labels that somebody took away. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from imageedit_operator.core import manifests
from imageedit_operator.core.managed_fields import Path, applied_by, owns, words
from imageedit_operator.core.manifests import RENDERED
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.recipe import noted, remade
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.core.taken import away
from imageedit_operator.kube.client import FIELD_MANAGER, TEMPLATE_MANAGER

Raw = Mapping[str, Any]


def marked(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> ObservedDeployment:
    """The Deployment with what it has lost."""
    if not deployment.owned:
        return deployment
    return replace(
        deployment,
        changed=(*deployment.changed, *words({}, _taken(deployment, live, resource))),
        labels_lost=_labels_lost(deployment, live, resource),
    )


def _taken(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> tuple[Path, ...]:
    made = _made_from(deployment, live, resource)
    if made is None:
        return ()
    ours, theirs = _of_ours(deployment, live, made), _of_the_template(deployment, live, made)
    return ours if not theirs else tuple(sorted({*ours, *theirs}))


# | the Deployment                                    | was written from                     |
# | is of the spec's revision                         | the spec                             |
# | is of another one, and at rest                    | not asked: it matters to no pod, and |
# |                                                   | it is the spec's when it comes back  |
# | is of another one, and notes what makes that one  | the spec with what it notes          |
# | is of another one, and notes nothing, or other    | not known                            |
def _made_from(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> ImageEditDeployment | None:
    if deployment.name == deployment_name(resource.name, revision_hash(resource)):
        return resource
    recipe = noted(live) if deployment.replicas else None
    made = None if recipe is None else remade(resource, recipe)
    same = made is not None and deployment.name == deployment_name(made.name, revision_hash(made))
    return made if same else None


# | the part that the operator writes itself       | what somebody took away is        |
# | is of another operator, or of other settings   | not known: it is not written here |
# | is as it would be written today                | what the Deployment lacks of it   |
def _of_ours(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> tuple[Path, ...]:
    wanted = manifests.deployment(resource, deployment.revision_hash)
    if deployment.rendered != wanted["metadata"]["annotations"][RENDERED]:
        return ()
    # The rest has defaults, or came with a later version of the operator, and the annotation does not cover it.
    return away({"spec": {"template": wanted["spec"]["template"]}}, live, ours=FIELD_MANAGER)


# | spec.template | the second manager | the Deployment                  | what somebody took away of it is       |
# | empty         | any                | any                             | nothing                                |
# | given         | owns some of it    | any                             | what it lacks, and he does not own     |
# | given         | owns nothing       | the operator gave it pods, and  | all that it lacks: pods come after the |
# |               |                    | the first manager's book stands | template                               |
# | given         | owns nothing       | else                            | nothing: it is still to be applied, or |
# |               |                    |                                 | refused, or nobody knows               |
def _of_the_template(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> tuple[Path, ...]:
    """Whatever operator applied it, the revision's name stands for its text."""
    if not resource.template.given or not (deployment.templated or _was_started(deployment, live)):
        return ()
    return away({"spec": {"template": resource.template.manifest()}}, live, ours=TEMPLATE_MANAGER, written=True)


def _was_started(deployment: ObservedDeployment, live: Raw) -> bool:
    """Whether the operator scaled it up, by a book that was not cleared since."""
    metadata = live["metadata"]
    scaled = deployment.replicas > 0 and owns(metadata, ("spec", "replicas"), by=FIELD_MANAGER)
    return scaled and applied_by(metadata, FIELD_MANAGER)


def _labels_lost(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> dict[str, str]:
    wanted = manifests.revision_labels(resource, deployment.revision_hash) if deployment.revision_hash else {}
    labels = live["metadata"].get("labels") or {}
    return {name: text for name, text in wanted.items() if labels.get(name) != text}
