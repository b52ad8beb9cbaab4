"""Do the watches still tell what happens? Lists and watches are compared, version by version.

A stream can stay open and say nothing, and at rest nothing is the right thing to say. But when a
list shows a version of a resource that no event has told of, and none does for a minute, the watch
is deaf, whatever its connection looks like.
"""

from __future__ import annotations

from collections.abc import Mapping

from imageedit_operator.workqueue import Key


class Hearing:
    """What the watch of the resources told, and what lists showed; times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._told: dict[Key, str] = {}
        self._missed: dict[Key, float] = {}  # since when a list shows what the watch has not told

    def told(self, key: Key, version: str) -> None:
        """An event of the watch; whatever it says, the watch hears this resource."""
        self._told[key] = version
        self._missed.pop(key, None)

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

    def deaf_s(self, now_s: float) -> float:
        """For how long the watch owes an event; 0 while it owes none."""
        return now_s - min(self._missed.values()) if self._missed else 0.0
