"""Do the watches still tell what happens? Lists and watches are compared, version by version.

A stream can stay open and say nothing, and at rest nothing is the right thing to say. But when a
list shows a version of a resource that no event has told of, and none does for a minute, the watch
is deaf, whatever its connection looks like.

The same comparison says after each list which resources need a look: those of which anything, the
resource or a child, is at a version that was neither told of nor listed before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imageedit_operator.kube.versions import Family
from imageedit_operator.workqueue import Key


class Hearing:
    """What the watch of the resources told, and what lists showed; times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._told: dict[Key, str] = {}
        self._versions: dict[str, str] = {}
        self._gone: set[str] = set()
        self._missed: dict[Key, float] = {}  # since when a list shows what the watch has not told

    def told(self, key: Key, version: str) -> None:
        """An event of the watch; whatever it says, the watch hears this resource."""
        self._told[key] = version
        self._missed.pop(key, None)

    def heard(self, uid: str, version: str) -> None:
        """An event told of this version of a child, and asked for the look that it needs."""
        self._versions[uid] = version

    def read(self, manifest: Mapping[str, Any]) -> None:
        """A pass came to its end with this resource; or it read or wrote this child, as it does those it keeps."""
        metadata = manifest["metadata"]
        self._versions[str(metadata.get("uid"))] = str(metadata.get("resourceVersion"))

    def knows(self, uid: str, version: str) -> bool:
        """This version was read or written by a pass, or heard of already."""
        return self._versions.get(uid) == version

    def heard_gone(self, uid: str) -> None:
        """An event told that the object is gone."""
        self._versions.pop(uid, None)
        self._gone.add(uid)

    # | of a family the list shows                         | it is unheard |
    # | a resource that the list before did not show       | yes           |
    # | an object at a version of that list                | no            |
    # | an object at the version that was heard last       | no            |
    # | an object at another version, or a new one         | yes           |
    # | no object any more whose end was heard             | no            |
    # | no object any more that the list before showed     | yes           |
    def unheard(self, before: Mapping[Key, Family], now: Mapping[Key, Family]) -> set[Key]:
        """The resources to look at after a list, and what was heard of objects that are not listed is forgotten."""
        found = {key for key, family in now.items() if (old := before.get(key)) is None or self._is_news(old, family)}
        listed = {uid for family in now.values() for uid, _ in family}
        self._versions = {uid: version for uid, version in self._versions.items() if uid in listed}
        self._gone.clear()
        return found

    def vanished(self, before: Mapping[Key, Family], now: Mapping[Key, Family]) -> set[Key]:
        """The resources of which an object is gone since the list before and nothing told of it; told by this, once."""
        listed = {uid for family in now.values() for uid, _ in family}
        gone = {key: {uid for uid, _ in family} - listed - self._gone for key, family in before.items() if key in now}
        for uids in gone.values():
            self._gone |= uids
        return {key for key, uids in gone.items() if uids}

    def _is_news(self, before: Family, now: Family) -> bool:
        if any(self._versions.get(uid) != version for uid, version in now - before):
            return True
        return not {uid for uid, _ in before} - {uid for uid, _ in now} <= self._gone

    def listed(self, versions: Mapping[Key, str], now_s: float) -> None:
        """A whole list."""
        for known in (self._told, self._missed):
            for key in known.keys() - versions.keys():
                del known[key]
        for key, version in versions.items():
            if self._told.get(key) == version:
                self._missed.pop(key, None)
            else:
                self._missed.setdefault(key, now_s)

    def no_resource(self, key: Key) -> None:
        """A pass found that there is none any more: what went before a watch began is told by nobody."""
        self._told.pop(key, None)
        self._missed.pop(key, None)

    def owed(self, now_s: float, *, for_s: float) -> set[Key]:
        """The resources of which an event is owed for so long."""
        return {key for key, since_s in self._missed.items() if now_s - since_s >= for_s}

    def deaf_s(self, now_s: float) -> float:
        """For how long the watch owes an event; 0 while it owes none."""
        return now_s - min(self._missed.values()) if self._missed else 0.0
