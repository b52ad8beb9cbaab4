"""What passes need not read again, as the apiserver gave it last: the Service and the budget of each resource.

A resource that starts is looked at three times within seconds, and one that scales every few seconds for ever.
What others do to a Service is told by its watch; what they do to a budget, by the next list of versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import BUDGETS, SERVICES, Resource
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL, foreign_owner
from imageedit_operator.kube.versions import Family
from imageedit_operator.workqueue import Key

LONGEST_S = 60.0
KINDS = (SERVICES, BUDGETS)
"""Each has the name of its resource."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Object:
    """An object as it was given, as text, which takes a fraction of what its parts take."""

    at_s: float
    uid: str
    version: str
    label: str
    text: str


class Kept:
    """The objects by resource; `clock` is monotonic, in seconds."""

    def __init__(self, *, clock: Callable[[], float], longest_s: float = LONGEST_S) -> None:
        self._clock = clock
        self._longest_s = longest_s
        self._known: dict[tuple[Key, Resource], _Object] = {}
        self._doubted: set[Key] = set()
        self._told: dict[tuple[Key, Resource], dict[str, str]] = {}
        """Version of each object that the watches told of since the last pass began, by uid; none when it is gone."""

    # | the object that was given last | is known by the next pass |
    # | is the resource's own          | yes                       |
    # | is the same, a minute ago      | no                        |
    # | is doubted, or told of, since  | no, by the table below    |
    # | is somebody else's             | no                        |
    def get(self, kind: Resource, resource: ImageEditDeployment) -> Manifest | None:
        """The resource's own object; None when it has to be read."""
        known = self._known.get((Key(resource.namespace, resource.name), kind))
        if known is None or self._clock() - known.at_s >= self._longest_s:
            return None
        found: Manifest = json.loads(known.text)
        return None if foreign_owner(found, owner_uid=resource.uid) else found

    def given(self, kind: Resource, resource: Key, found: Manifest) -> None:
        """The apiserver's answer to a read or a write."""
        metadata = found["metadata"]
        label = str((metadata.get("labels") or {}).get(DEPLOYMENT_LABEL) or "")
        uid, version = str(metadata.get("uid")), str(metadata.get("resourceVersion") or "")
        self._known[resource, kind] = _Object(
            at_s=self._clock(), uid=uid, version=version, label=label, text=json.dumps(found)
        )

    def told(self, kind: Resource, resource: Key, uid: str, version: str) -> None:
        """A watch told of the object, or with no version of its end; perhaps before the answer to our own write."""
        self._told.setdefault((resource, kind), {})[uid] = version

    def doubt(self, resource: Key) -> None:
        """A list told of a change, or a pass did not go as it was planned."""
        self._doubted.add(resource)

    def begin(self, resource: Key) -> None:
        """A pass begins. Only now what is doubted is dropped: the pass before it may have read after the doubt came."""
        if resource in self._doubted or any(self._is_old(resource, kind) for kind in KINDS):
            self.drop(resource)
        for kind in KINDS:
            self._told.pop((resource, kind), None)

    # | the watch tells of             | what is kept is old |
    # | the object at its version      | no                  |
    # | the object at another version  | yes                 |
    # | the object's end               | yes                 |
    # | another object of its name     | yes                 |
    # | another object's end           | no                  |
    def _is_old(self, resource: Key, kind: Resource) -> bool:
        known = self._known.get((resource, kind))
        if known is None:
            return False
        told = self._told.get((resource, kind), {})
        return any(version != (known.version if uid == known.uid else "") for uid, version in told.items())

    # | what is kept                                 | a list of versions      | the resource is looked at |
    # | has our label                                | shows it                | no                        |
    # | has our label                                | does not show it        | yes                       |
    # | has none: somebody else's                    | any                     | no                        |
    # An object that came and went between two lists is in neither of them.
    def lost(self, listed: Mapping[Key, Family]) -> set[Key]:
        """The resources of which a list does not show what is kept; what is too old is forgotten."""
        found = {
            key
            for (key, _), known in self._known.items()
            if key in listed and known.label == key.name and known.uid not in {uid for uid, _ in listed[key]}
        }
        now_s = self._clock()
        self._known = {one: kept for one, kept in self._known.items() if now_s - kept.at_s < self._longest_s}
        return found

    def drop(self, resource: Key) -> None:
        """Nothing is known any more."""
        self._doubted.discard(resource)
        for kind in KINDS:
            self._known.pop((resource, kind), None)
            self._told.pop((resource, kind), None)


def nothing_kept() -> Kept:
    """One whose objects are too old at once."""
    return Kept(clock=lambda: 0.0, longest_s=0.0)
