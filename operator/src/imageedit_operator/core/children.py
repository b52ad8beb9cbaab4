"""The children that are no pods: the Service, and a new Deployment."""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core import manifests
from imageedit_operator.core.actions import Action, ApplyClaimTemplate, ApplyService, CreateDeployment, LabelDeployment
from imageedit_operator.core.observed import Observed, ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pod_template import claim_template_name
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import deployment_name


def name_conflict(resource: ImageEditDeployment, observed: Observed, hash_: str) -> Trouble | None:
    """An object of a name that we need belongs to somebody else."""
    name = deployment_name(resource.name, hash_)
    foreign = next((item for item in observed.deployments if item.name == name and not item.owned), None)
    if foreign is not None:
        return _taken(resource, f"Deployment {name}", foreign.foreign_owner)
    if observed.service_foreign_owner:
        return _taken(resource, f"Service {resource.name}", observed.service_foreign_owner)
    if observed.claims_foreign_owner:
        return _taken(resource, f"ResourceClaimTemplate {claim_template_name(resource)}", observed.claims_foreign_owner)
    return None


def _taken(resource: ImageEditDeployment, what: str, owner: str) -> Trouble:
    message = f"{what} exists and belongs to {owner or 'nobody'}; delete or rename it, or this resource"
    if owner == f"ImageEditDeployment {resource.name}":
        message = f"{what} belongs to an earlier ImageEditDeployment of this name; this one starts when it is collected"
    return Trouble(reason="NameConflict", message=message)


def service(resource: ImageEditDeployment, observed: Observed) -> tuple[Action, ...]:
    """Write the Service where it is absent or not as it should be."""
    if observed.service_foreign_owner or (observed.service_exists and observed.service_matches):
        return ()
    return (ApplyService(manifest=manifests.service(resource), uid=observed.service_uid),)


# | a Deployment of the resource's                     | its labels    |
# | lacks one of ours, or has another value for it     | are put back  |
# | has more labels                                    | stay          |
# | belongs to somebody else                           | stay          |
def labels(observed: Observed) -> tuple[Action, ...]:
    """By its labels a Deployment is found, by us and by people; no pod notices that they come back."""
    lost = (item for item in observed.deployments if item.owned and item.labels_lost)
    return tuple(LabelDeployment(name=item.name, uid=item.uid, labels=item.labels_lost) for item in lost)


def claims(resource: ImageEditDeployment, observed: Observed) -> tuple[Action, ...]:
    """What the claims of the spec's pods are made from, where it is absent: without it no pod of theirs can start."""
    template = manifests.claim_template(resource)
    if template is None or observed.claims_exist or observed.claims_foreign_owner:
        return ()
    return (ApplyClaimTemplate(manifest=template),)


def create(resource: ImageEditDeployment, hash_: str, *, replicas: int) -> tuple[Action, ...]:
    """The Deployment of the spec's revision."""
    return (CreateDeployment(manifest=manifests.deployment(resource, hash_, replicas=replicas)),)


# | of this resource there is             | the start is held | the new Deployment's replicas |
# | a Deployment, or a pod, of any kind   | any               | none: the rollout decides     |
# | nothing                               | paused, no copies,| none                          |
# |                                       | spec.template     |                               |
# | nothing                               | no                | all that are wanted           |
def first_replicas(owned: Sequence[ObservedDeployment], pods: Sequence[ObservedPod], *, held: bool, wanted: int) -> int:
    """With nothing to replace there is nothing to weigh, so the first revision need not be scaled by a later plan."""
    return 0 if owned or pods or held else wanted


# | the Deployment of the spec's revision                | is written anew                       |
# | has replicas or pods, terminating ones included      | never: it would restart them          |
# | is not the one that the pods go to (a roll back)     | no                                    |
# | has today's pod template                             | no                                    |
# | does not say which one it has                        | no                                    |
# | is at rest, and has the template of another operator,| yes: its pods would be what they were |
# | setting or drain timeout                             | before those changed                  |
def outdated(
    resource: ImageEditDeployment, observed: Observed, hash_: str, *, target: str
) -> ObservedDeployment | None:
    """The Deployment that is kept from before and must not be scaled up as it is."""
    if target != hash_ or any(pod.revision_hash == hash_ for pod in observed.pods):
        return None
    for item in observed.deployments:
        if item.owned and item.revision_hash == hash_ and not item.replicas:
            return item if item.rendered not in ("", manifests.rendered(resource, hash_)) else None
    return None
