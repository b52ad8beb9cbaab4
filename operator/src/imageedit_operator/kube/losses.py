"""What a Deployment of ours has lost: fields and labels that somebody took away. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from imageedit_operator.core import manifests
from imageedit_operator.core.managed_fields import Path, words
from imageedit_operator.core.manifests import RENDERED
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.core.taken import away
from imageedit_operator.kube.client import FIELD_MANAGER

Raw = Mapping[str, Any]


def marked(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> ObservedDeployment:
    """The Deployment with what it has lost."""
    if not deployment.owned:
        return deployment
    return replace(
        deployment,
        changed=(*deployment.changed, *words({}, _taken(live, resource))),
        labels_lost=_labels_lost(deployment, live, resource),
    )


# | the Deployment                                 | what somebody took away is        |
# | is of another revision than the spec asks for  | not known: it is not written here |
# | has the pod template of another operator, or of| not known, for the same reason    |
# | other settings                                 |                                   |
# | is as it would be written today                | what it lacks of that             |
def _taken(live: Raw, resource: ImageEditDeployment) -> tuple[Path, ...]:
    metadata, hash_ = live["metadata"], revision_hash(resource)
    if metadata["name"] != deployment_name(resource.name, hash_):
        return ()
    wanted = manifests.deployment(resource, hash_)
    if (metadata.get("annotations") or {}).get(RENDERED) != wanted["metadata"]["annotations"][RENDERED]:
        return ()
    # The rest has defaults, or came with a later version of the operator, and the annotation does not cover it.
    return away({"spec": {"template": wanted["spec"]["template"]}}, live, ours=FIELD_MANAGER)


def _labels_lost(deployment: ObservedDeployment, live: Raw, resource: ImageEditDeployment) -> dict[str, str]:
    wanted = manifests.revision_labels(resource, deployment.revision_hash) if deployment.revision_hash else {}
    labels = live["metadata"].get("labels") or {}
    return {name: text for name, text in wanted.items() if labels.get(name) != text}
