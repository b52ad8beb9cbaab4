"""Which objects are watched, which resource an event on one of them concerns, and whether it needs a look.

While a resource starts, a dozen events come of it and its children. Most of them only echo our own
writes, or count what nobody acts on; a look for each would be most of the operator's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from imageedit_operator.core.pods import is_over
from imageedit_operator.kube.client import FIELD_MANAGER
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL, applied_annotations, parse_deployment, parse_pod
from imageedit_operator.workqueue import Key

WATCHED = (IMAGE_EDIT_DEPLOYMENTS, DEPLOYMENTS, PODS, SERVICES)
SELECTOR = f"app.kubernetes.io/managed-by={FIELD_MANAGER},{DEPLOYMENT_LABEL}"
"""Labels of the Deployments, pods and Services that are watched."""

SOON_S = 1.0
"""So much later is what nobody waits for: a pod that is created and placed, and then started, is looked at once."""


def keys_for(resource: Resource, manifest: Mapping[str, Any]) -> tuple[Key, ...]:
    """The resources to look at after an event on this object.

    | object                                | key                                  |
    | ------------------------------------- | ------------------------------------ |
    | ImageEditDeployment                   | its own                              |
    | Service of another name than the label| none: no pass reads it               |
    | any other object with our label       | its namespace, the label's value     |
    | anything else                         | none                                 |
    """
    metadata = manifest.get("metadata") or {}
    labels = metadata.get("labels") or {}
    name = metadata.get("name") if resource == IMAGE_EDIT_DEPLOYMENTS else labels.get(DEPLOYMENT_LABEL)
    namespace = metadata.get("namespace")
    if not namespace or not name or (resource == SERVICES and metadata.get("name") != name):
        return ()
    return (Key(namespace, name),)


def version_of(manifest: Mapping[str, Any]) -> str:
    """The object's resourceVersion, which differs after every change; only equality means anything."""
    return str((manifest.get("metadata") or {}).get("resourceVersion") or "")


class Told(NamedTuple):
    """What an event told of."""

    key: Key
    kind: Resource
    uid: str
    version: str
    gone: bool
    delay_s: float | None
    """Seconds until the resource should be looked at; None when the event is no news."""


class Sight(NamedTuple):
    """What a pass would read of one object."""

    acting: object
    """What a plan may act on at once."""
    telling: object = None
    """What it only reports, or has ordered itself."""


class Sights:
    """What the watches told of each object last, to tell news from repetitions."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Sight] = {}

    # | the event                                              | the look |
    # | the object is gone                                     | at once  |
    # | what a plan acts on differs from the last event        | at once  |
    # | only what it reports differs, or it is a new child     | soon     |
    # | neither: a status that we wrote, a Deployment's count  | none     |
    # Whether this process itself wrote the version is not known here.
    def delay_s(self, resource: Resource, manifest: Mapping[str, Any], *, gone: bool) -> float | None:
        """Seconds until its resource should be looked at; None when the event is no news."""
        metadata = manifest["metadata"]
        key = (resource.plural, str(metadata.get("uid")))
        before = self._last.pop(key, _UNSEEN[resource])
        if gone:
            return 0.0
        self._last[key] = now = sight(resource, manifest)
        if now.acting != before.acting:
            return 0.0
        return None if now == before else SOON_S


# | of                  | acting                                         | telling                          |
# | ImageEditDeployment | generation, annotations, deletion              |                                  |
# | Deployment          |                                                | all that plans read, generation  |
# | Pod                 | container, readiness, its end, what it lacks   | all else that plans read, labels |
# | Service             |                                                | all that plans read              |
# The status of a resource is ours: somebody else's change of it is put right after the next list of versions.
def sight(resource: Resource, manifest: Mapping[str, Any]) -> Sight:
    """What a pass would read of this object."""
    metadata = manifest["metadata"]
    if resource == IMAGE_EDIT_DEPLOYMENTS:
        annotations = metadata.get("annotations") or {}
        return Sight((metadata.get("generation"), annotations, metadata.get("deletionTimestamp")))
    if resource == DEPLOYMENTS:
        # Of whom it is depends on the resource, so the owners count whole; the version is another one each time.
        read = replace(parse_deployment(manifest, owner_uid=""), resource_version="")
        owners = metadata.get("ownerReferences") or []
        return Sight(None, (read, owners, metadata.get("generation"), metadata.get("labels") or {}))
    if resource == SERVICES:
        # Its status counts for nothing, nor who wrote a field and when.
        parts = [metadata.get(part) or None for part in _READ_OF_SERVICES]
        return Sight(None, (manifest.get("spec"), parts, applied_annotations(manifest)))
    pod = parse_pod(manifest)
    lacks = (pod.waiting_reason, pod.unschedulable)
    return Sight(
        (pod.container_id, pod.started, pod.ip, pod.ready, pod.terminating, is_over(pod), *lacks),
        (pod, metadata.get("labels") or {}),
    )


_UNSEEN = {
    IMAGE_EDIT_DEPLOYMENTS: Sight(None),
    DEPLOYMENTS: Sight(None),
    PODS: Sight(("", False, "", False, False, False, "", False)),
    SERVICES: Sight(None),
}
"""A pod that was just created, a Deployment, and a Service, are nothing to act on."""

_READ_OF_SERVICES = ("labels", "annotations", "ownerReferences")
