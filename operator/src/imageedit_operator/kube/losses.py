"""What a Deployment of ours has lost: fields and labels that somebody took away. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from imageedit_operator.core import manifests
from imageedit_operator.core.managed_fields import Path, applied_by, owns, words
from imageedit_operator.core.manifests import RENDERED
from imageedit_operator.core.observed import ObservedDeployment
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


# | the Deployment                                 | what somebody took away is        |
# | is of another revision than the spec asks for  | not known: it is not written here |
# | is of the spec's                               | what it lacks of both its parts   |
def _taken(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> tuple[Path, ...]:
    hash_ = revision_hash(resource)
    if deployment.name != deployment_name(resource.name, hash_):
        return ()
    ours, theirs = _of_ours(live, resource, hash_), _of_the_template(deployment, live, resource)
    return ours if not theirs else tuple(sorted({*ours, *theirs}))


# | the part that the operator writes itself       | what somebody took away is        |
# | is of another operator, or of other settings   | not known: it is not written here |
# | is as it would be written today                | what the Deployment lacks of it   |
def _of_ours(live: Raw, resource: ImageEditDeployment, hash_: str) -> tuple[Path, ...]:
    wanted = manifests.deployment(resource, hash_)
    if (live["metadata"].get("annotations") or {}).get(RENDERED) != wanted["metadata"]["annotations"][RENDERED]:
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
