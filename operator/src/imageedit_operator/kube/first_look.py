"""What the first list of a term showed of each resource, for one look at it that changes nothing.

A new leader knows nothing and looks at every resource, and nearly all of them need nothing. To read a thousand of them
one by one, each with its Deployments and pods, took half a minute; all of them together come in a few answers.
Nothing is ever written because of such a look: where it finds something to do, the resource is read anew.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from imageedit_operator.kube import kept
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kept import Kept, nothing_kept
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.wake_ups import Told, keys_for, version_of
from imageedit_operator.workqueue import Key

LONGEST_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A resource with its Deployments and pods, whoever made them; all of one list."""

    resource: Manifest
    deployments: list[Manifest] = field(default_factory=list)
    pods: list[Manifest] = field(default_factory=list)


class FirstLook:
    """The objects of each resource until its first look; `clock` is monotonic, in seconds.

    Services and budgets are not held here: they become what is `kept` of their resource.
    """

    def __init__(self, *, clock: Callable[[], float], kept: Kept, longest_s: float = LONGEST_S) -> None:
        self._clock = clock
        self._kept = kept
        self._longest_s = longest_s
        self._until_s = float("-inf")
        self._packed: dict[Key, list[tuple[Resource, bytes]]] = {}
        self._versions: dict[str, str] = {}
        self._listing = True
        self._overtaken: set[Key] = set()
        """The resources that were read, or told of, before a list came to its end."""

    def begin(self) -> None:
        """A list begins; what one that failed showed is forgotten."""
        self.forget()
        self._until_s = self._clock() + self._longest_s

    def end(self, *, whole: bool) -> None:
        """The list came to its end; what it showed counts only where nothing of it is missing."""
        if not whole:
            self.forget()
        alone = [key for key, items in self._packed.items() if all(kind != IMAGE_EDIT_DEPLOYMENTS for kind, _ in items)]
        for key in alone:  # pods with our label, of no resource: nobody would ever take them from here
            del self._packed[key]
        self._listing = False
        self._overtaken.clear()

    def forget(self) -> None:
        """The list is none, or too old."""
        self._packed.clear()
        self._versions.clear()
        self._until_s = float("-inf")

    def show(self, kind: Resource, item: Manifest) -> None:
        """An object that the list shows."""
        for key in keys_for(kind, item):
            if key in self._overtaken:
                continue
            if kind == SERVICES:
                self._versions[str(item["metadata"].get("uid"))] = version_of(item)
            if kind in kept.KINDS:
                if item["metadata"]["name"] == key.name:
                    self._kept.given(kind, key, item)
                continue
            # As parsed objects they would take ten times as much as this, and that is what a process never gives back.
            self._packed.setdefault(key, []).append((kind, zlib.compress(json.dumps(item).encode(), 1)))
            self._versions[str(item["metadata"].get("uid"))] = version_of(item)

    # | the resource                            | the look is made with |
    # | was listed, and not looked at since     | what the list showed  |
    # | was listed a minute ago                 | what is read now      |
    # | was looked at, or is not in the list    | what is read now      |
    # | is listed just now                      | what is read now      |
    # | is told of since, in another version    | what is read now      |
    def take(self, key: Key) -> Shown | None:
        """What the list showed of the resource, once; None when it has to be read."""
        if self._clock() >= self._until_s:
            self.forget()
        packed = self._packed.get(key, []) if not self._listing else []
        self._overtake(key)
        if not packed:
            return None
        items: dict[Resource, list[Manifest]] = {}
        for kind, content in packed:
            items.setdefault(kind, []).append(json.loads(zlib.decompress(content)))
        return Shown(
            resource=items[IMAGE_EDIT_DEPLOYMENTS][0],
            deployments=items.get(DEPLOYMENTS, []),
            pods=items.get(PODS, []),
        )

    def awaits(self, key: Key) -> bool:
        """Whether a look at the resource would be made with what the list showed."""
        return key in self._packed

    # | an event tells of                        | it is news |
    # | an object at the version that was listed | no         |
    # | the same, a minute after the list began  | yes        |
    # | any other version, or an object's end    | yes        |
    # | anything, before the list has ended      | yes        |
    def news(self, told: Told) -> bool:
        """Whether an event tells what the list did not show; then what it showed of the resource is too old."""
        if self._clock() >= self._until_s:
            self.forget()
        if not self._listing and not told.gone and self._versions.get(told.uid) == told.version:
            return False
        if told.key in self._packed:
            self._kept.doubt(told.key)  # it is of that list too
        self._overtake(told.key)
        return True

    def _overtake(self, key: Key) -> None:
        """Somebody knows more of the resource than the list. One that has not ended may show it later, as it was."""
        self._packed.pop(key, None)
        if self._listing:
            self._overtaken.add(key)


def nothing_shown() -> FirstLook:
    """One that no list showed anything."""
    return FirstLook(clock=lambda: 0.0, kept=nothing_kept(), longest_s=0.0)
