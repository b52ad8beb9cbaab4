"""What the apiserver would answer to `spec.template`: the apply of its own field manager, tried and not stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from imageedit_operator.core import template
from imageedit_operator.core.observed import ObservedDeployment, Refusal
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import TEMPLATE_MANAGER, Kube
from imageedit_operator.kube.kinds import DEPLOYMENTS

REFUSALS = frozenset({400, 403, 422})
"""A request that cannot be, an admission plugin, a value that cannot be."""

_NO_RIGHT = "cannot patch resource"
"""What RBAC says, with the same status as an admission plugin: no word about the template."""

_UNREADABLE = re.compile(r"failed to create typed patch object \(.*?\): (.+)", re.DOTALL)
"""A field that does not exist, or has another type: to apiservers this is an error of their own, 500."""


async def refusal(
    kube: Kube, resource: ImageEditDeployment, deployments: Sequence[ObservedDeployment], pods: Sequence[ObservedPod]
) -> Refusal | None:
    """The refusal while the template is still to be applied; nothing is asked when it is not. Raises ApiError."""
    bare = template.unfinished(resource, deployments, pods, revision_hash(resource))
    return None if bare is None else await over(kube, resource, bare)


# | the apiserver                              | answer                                     |
# | takes it                                   | None                                       |
# | says that others own fields of it          | Refusal with the fields                    |
# | knows no such field, or another type of it | Refusal with its words                     |
# | refuses it otherwise                       | Refusal with its words                     |
# | has no right for us                        | ApiError                                   |
# | has another version of it by now, or none  | None: the apply itself meets the same      |
# | fails, or does not answer                  | ApiError: the pass is made again           |
async def over(
    kube: Kube, resource: ImageEditDeployment, deployment: ObservedDeployment, *, force: bool = False
) -> Refusal | None:
    """The refusal of the template over this Deployment. Raises ApiError."""
    tried = template.manifest(resource, deployment)
    try:
        await kube.apply_beside(
            DEPLOYMENTS, resource.namespace, tried, manager=TEMPLATE_MANAGER, dry_run=True, force=force
        )
    except ApiError as error:
        unreadable = _UNREADABLE.search(error.message)
        if unreadable is not None:
            return Refusal(message=unreadable[1])
        about_it = error.status in REFUSALS and not error.conflict and _NO_RIGHT not in error.message
        if error.contested or about_it:
            return Refusal(message=error.message, contested=error.contested)
        if not (error.conflict or error.not_found):
            raise
    return None


async def over_another(kube: Kube, resource: ImageEditDeployment, deployment: ObservedDeployment) -> Refusal | None:
    """The refusal over the Deployment of another revision, of which fields that others wrote do not count.

    Raises ApiError.
    """
    said = await over(kube, resource, deployment)
    if said is None or not said.contested:
        return said
    own = {field: manager for field, manager in said.contested.items() if template.is_own(field, resource)}
    return replace(said, contested=own) if own else await over(kube, resource, deployment, force=True)
