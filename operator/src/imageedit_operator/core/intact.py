"""Whether the children are as the operator wrote them, and what it says when somebody else writes to them.

Nothing is fought over in silence: what cannot be put back without restarting pods is left and shown in a
condition; what is put back is answered by an Event that names who changed it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from imageedit_operator.core import contest
from imageedit_operator.core.actions import (
    Action,
    ApplyBudget,
    ApplyService,
    CreateDeployment,
    DeleteDeployment,
    LabelDeployment,
    PostEvent,
    ScaleDeployment,
)
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed, ObservedDeployment
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.progress import Answer
from imageedit_operator.core.resource import ImageEditDeployment

INTACT = Answer(status=True, reason="AsWritten", message="the objects of this resource are as the operator wrote them")


# | first that fits                                                | status | reason        |
# | a name that the operator needs belongs to somebody else        | False  | NameConflict  |
# | the budget's name does, and no other budget covers the pods    | False  | NameConflict  |
# | a Deployment has this resource's labels and another owner      | False  | Orphaned      |
# | others wrote fields of a Deployment with pods, or of the spec's| False  | FieldsChanged |
# | somebody took fields of such a one away                        | False  | FieldsChanged |
# | else                                                           | True   | AsWritten     |
def answer(resource: ImageEditDeployment, observed: Observed, spec_hash: str, conflict: Trouble | None) -> Answer:
    """The condition ChildrenIntact."""
    if conflict is not None:
        return Answer(status=False, reason=conflict.reason, message=conflict.message)
    named = observed.budgets.value.named if isinstance(observed.budgets, Known) else None
    if named is not None and named.foreign_owner and not _others(observed):
        words = f"PodDisruptionBudget {resource.name} exists, belongs to {named.foreign_owner} and covers other pods"
        advice = "evictions may take all server pods at once; rename it"
        return Answer(status=False, reason="NameConflict", message=f"{words}: {advice}")
    orphan = next((item for item in observed.deployments if not item.owned), None)
    if orphan is not None:
        words = f"Deployment {orphan.name} has this resource's labels and belongs to {orphan.foreign_owner}"
        advice = "its pods get requests, but nobody drains, scales or proves them: delete it, or give it its owner back"
        return Answer(status=False, reason="Orphaned", message=f"{words}; {advice}")
    changed = next((item for item in observed.deployments if item.changed and _counts(item, spec_hash)), None)
    if changed is not None:
        words = f"Deployment {changed.name} was changed: {', '.join(changed.changed)}"
        advice = "it stays so, for putting it back would restart pods; set imageedit.dev/restarted-at to replace them"
        return Answer(status=False, reason="FieldsChanged", message=f"{words}; {advice}")
    return INTACT


# | action                               | somebody else had written, or taken | Event           |
# | ScaleDeployment                      | spec.replicas                       | Warning PutBack |
# | LabelDeployment                      | labels of ours                      | Warning PutBack |
# | ApplyService over one that is there  | fields that we apply                | Warning PutBack |
# | ApplyService where there is none     | all of it, by the next table        | Warning PutBack |
# | ApplyBudget over one that is there   | fields that we apply                | Warning PutBack |
# | CreateDeployment                     | all of it, by the table after that  | Warning PutBack |
# | other                                | any                                 | none            |
def put_back(observed: Observed, actions: Sequence[Action], often: Collection[str] = ()) -> tuple[PostEvent, ...]:
    """Events for changes of others that these actions undo; `often`: the children that they change again and again."""
    found: list[str] = []
    for action in actions:
        told = len(found)
        match action:
            case ScaleDeployment(name=name, uid=uid, replicas=replicas):
                by = next((item.scaled_by for item in observed.deployments if item.uid == uid), "")
                if by:
                    found.append(
                        f"Deployment {name} was scaled by {by} and goes to {replicas} replicas: "
                        "scale the ImageEditDeployment instead"
                    )
            case LabelDeployment(name=name, labels=labels):
                found.append(_undone("Deployment", name, (f"the labels {', '.join(sorted(labels))}",)))
            case ApplyService(manifest=manifest) if action.uid and observed.service_changed:
                found.append(_undone("Service", manifest["metadata"]["name"], observed.service_changed))
            case ApplyService(manifest=manifest) if _service_was_taken(observed):
                found.append(f"Service {manifest['metadata']['name']} was deleted and is made anew")
            case CreateDeployment(manifest=manifest) if _deployment_was_taken(manifest, observed, actions):
                found.append(
                    f"Deployment {manifest['metadata']['name']} was deleted and is made anew: "
                    "to replace its pods, set imageedit.dev/restarted-at instead"
                )
            case ApplyBudget(manifest=manifest) if action.uid and _budget_changed(observed):
                found.append(_undone("PodDisruptionBudget", manifest["metadata"]["name"], _budget_changed(observed)))
        if contest.of(action) in often:
            found[told:] = (f"{words}; {_AGAIN}" for words in found[told:])
    return tuple(PostEvent(type="Warning", reason="PutBack", message=message) for message in found)


_AGAIN = (
    f"somebody does so again and again, so it is written with pauses of up to {contest.LONGEST_PAUSE_S:.0f} s: "
    "find the program that does it, and stop it"
)


# | a Service that is to be written                            | was deleted by others                             |
# | is there                                                   | no                                                |
# | is not, and the stored status names no revision            | no: perhaps it is the first one                   |
# | is not, and the stored status names one                    | yes: a Service comes before the first Deployment, |
# |                                                            | and the operator deletes none                     |
def _service_was_taken(observed: Observed) -> bool:
    return not observed.service_exists and bool(observed.status.get("revisions"))


# The operator deletes a Deployment only at no replicas and without pods: outside the history, or to write it anew.
# First that fits.
# | a Deployment that is to be made                              | was deleted by others                          |
# | the stored status does not name its revision                 | no: it is the first one, or went with history  |
# | this plan deletes it                                         | no: it is written anew                         |
# | pods of it are there                                         | yes                                            |
# | the stored status wants its revision, and counts pods of it  | yes                                            |
# | else                                                         | nobody knows: an operator may have died, or    |
# |                                                              | been refused, while it wrote it anew           |
def _deployment_was_taken(manifest: Mapping[str, Any], observed: Observed, actions: Sequence[Action]) -> bool:
    hash_, status = manifest["metadata"]["labels"]["imageedit.dev/revision"], observed.status
    if all(entry.get("hash") != hash_ for entry in status.get("revisions", ())):
        return False
    if any(isinstance(one, DeleteDeployment) and one.name == manifest["metadata"]["name"] for one in actions):
        return False
    counted = status.get("updatedReplicas", 0) if status.get("updateRevision") == hash_ else 0
    return counted > 0 or any(pod.revision_hash == hash_ for pod in observed.pods)


def _undone(kind: str, name: str, changed: tuple[str, ...]) -> str:
    return f"{kind} {name} was changed and is put back: {', '.join(changed)}"


def _others(observed: Observed) -> tuple[str, ...]:
    return observed.budgets.value.others if isinstance(observed.budgets, Known) else ()


def _budget_changed(observed: Observed) -> tuple[str, ...]:
    named = observed.budgets.value.named if isinstance(observed.budgets, Known) else None
    return named.changed if named is not None else ()


def _counts(deployment: ObservedDeployment, spec_hash: str) -> bool:
    return deployment.replicas > 0 or deployment.revision_hash == spec_hash
