"""Pods that the apiserver does not let a ReplicaSet create: a missing RuntimeClass, a quota, a policy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.resize import Group

LONGEST_WORDS = 1000

_NO_CLASS = re.compile(r'RuntimeClass "([^"]{1,253})" not found')


# | the Deployment                            | its condition ReplicaFailure says | reason              |
# | has all its pods                          | anything: it is old               | none                |
# | lacks pods                                | nothing                           | none                |
# | lacks pods                                | RuntimeClass "..." not found      | RuntimeClassMissing |
# | lacks pods                                | anything else                     | FailedCreate        |
def of(group: Group) -> Trouble | None:
    """Why pods of this revision are not created."""
    deployment = group.deployment
    said = deployment.refused[:LONGEST_WORDS].strip().rstrip(".")
    if not group.missing or not said:
        return None
    found = _NO_CLASS.search(said)
    if found is not None:
        advice = (
            "create it, correct accelerator.runtimeClassName, or leave the class away where the Ascend runtime is the "
            "nodes' default (the chart's accelerator.runtimeClassName)"
        )
        message = f"the cluster has no RuntimeClass {found.group(1)}, so no pod is created; {advice}"
        return Trouble(reason="RuntimeClassMissing", message=message)
    advice = "raise the quota or change the policy that it names, or lower spec.replicas"
    message = (
        f"no pod of Deployment {deployment.name} is created: {said}; {advice}: its ReplicaSet tries again by itself"
    )
    return Trouble(reason="FailedCreate", message=message)


def first(groups: Iterable[Group]) -> Trouble | None:
    """The first refusal, by the Deployments' order."""
    return next((found for group in groups if (found := of(group)) is not None), None)
