"""`spec.template` on its way into a revision's Deployment: a second apply, by a field manager of its own.

The apiserver merges by key what the two managers say, and refuses what both set. No merge code of our own: what it
would answer is asked before (a dry run), so that a refusal is something that was observed, like any other fault.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from imageedit_operator.core import manifests
from imageedit_operator.core.actions import Action, ApplyTemplate
from imageedit_operator.core.observed import ObservedDeployment, Refusal
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, is_serving
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.taken import KEYS

MOST_NAMED = 3
"""Fields that a message names."""
LONGEST_WORDS = 1000

_INSIDE = ".spec.template."


def manifest(resource: ImageEditDeployment, deployment: ObservedDeployment) -> dict[str, Any]:
    """What the second manager applies over exactly the Deployment that was seen."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": deployment.name,
            "namespace": resource.namespace,
            "uid": deployment.uid,
            # Somebody may have scaled it up since: then the apply would restart pods.
            "resourceVersion": deployment.resource_version,
        },
        "spec": {"template": resource.template.manifest()},
    }


# | spec.template | the Deployment of the spec's revision                      | is unfinished                    |
# | empty         | any                                                        | no                               |
# | given         | absent, or another owner's                                 | no: there is nothing to finish   |
# | given         | the second manager has applied to it                       | no                               |
# | given         | it has not, and no pod of it serves                        | yes                              |
# | given         | it has not, by its managedFields, and a pod of it serves   | no: nothing that serves restarts |
def unfinished(
    resource: ImageEditDeployment,
    deployments: Sequence[ObservedDeployment],
    pods: Sequence[ObservedPod],
    hash_: str,
) -> ObservedDeployment | None:
    """The Deployment that must have no pods before `spec.template` is in it."""
    if not resource.template.given:
        return None
    if any(pod.revision_hash == hash_ and is_serving(pod) for pod in pods):
        return None
    found = (item for item in deployments if item.owned and item.revision_hash == hash_ and not item.templated)
    return next(found, None)


# | the unfinished Deployment                          | action          |
# | there is none                                      | none            |
# | the apiserver would refuse the template            | none: a trouble |
# | has replicas, or pods, terminating ones included   | none, before they are gone |
# | else                                               | ApplyTemplate   |
def finish(
    resource: ImageEditDeployment,
    deployment: ObservedDeployment | None,
    pods: Sequence[ObservedPod],
    refusal: Refusal | None,
) -> tuple[Action, ...]:
    """Apply the template while that restarts nothing."""
    if deployment is None or refusal is not None or deployment.replicas:
        return ()
    if any(pod.revision_hash == deployment.revision_hash for pod in pods):
        return ()
    return (ApplyTemplate(manifest=manifest(resource, deployment)),)


# | the apiserver says                    | reason           |
# | other managers own fields of it       | TemplateConflict |
# | anything else                         | TemplateInvalid  |
def trouble(refusal: Refusal | None) -> Trouble | None:
    """Why the template cannot be applied, and what to do."""
    if refusal is None:
        return None
    if not refusal.contested:
        said = refusal.message[:LONGEST_WORDS].strip().rstrip(".")
        return Trouble(reason="TemplateInvalid", message=f"spec.template is refused: {said}; correct spec.template")
    named = [f"{_short(field)}, which {manager} sets" for field, manager in sorted(refusal.contested.items())]
    more = [f"{len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    words = f"spec.template sets {' and '.join([*named[:MOST_NAMED], *more])} to another value"
    advice = "take it out of spec.template; what the operator sets has a field of its own in spec, or stays as it is"
    return Trouble(reason="TemplateConflict", message=f"{words}: {advice}")


# | a field of the answer to a try                      | is the operator's own  |
# | the operator's manifest sets it, or what it is in   | yes                    |
# | it holds a field that the manifest sets             | yes                    |
# | else                                                | no: an edit by hand    |
def is_own(field: str, resource: ImageEditDeployment) -> bool:
    """Whether the operator itself sets it, in every Deployment, and not somebody in the one that was asked about."""
    whole = manifests.deployment(resource, "")["spec"]["template"]
    return any(_touch(path, field) for path in _paths(whole, ".spec.template"))


def _paths(value: Any, above: str) -> Iterator[str]:
    """Every field as the apiserver calls it: `.spec.containers[name="server"].image`."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            keys = KEYS.get(name)
            if keys is None or not isinstance(below, list):
                yield from _paths(below, f"{above}.{name}")
                continue
            for item in below:
                called = ",".join(f"{key}={json.dumps(item[key])}" for key in keys if key in item)
                yield from _paths(item, f"{above}.{name}[{called}]")
    else:
        yield above


def _touch(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))


def _short(field: str) -> str:
    return field.removeprefix(_INSIDE) if field.startswith(_INSIDE) else field.lstrip(".")
