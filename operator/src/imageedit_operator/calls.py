"""What asks for looks: events of the watches, and lists. Between them no change may go by unseen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from imageedit_operator.hearing import Hearing
from imageedit_operator.kube.first_look import FirstLook
from imageedit_operator.kube.kept import KINDS, Kept
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.kube.versions import Family
from imageedit_operator.wake_ups import Told
from imageedit_operator.workqueue import Key, WorkQueue


@dataclass(frozen=True, kw_only=True, slots=True)
class Calls:
    """Each becomes a key in the queue, and makes what is known of the resource older than what is told."""

    queue: WorkQueue
    hearing: Hearing
    first: FirstLook
    kept: Kept

    def told(self, told: Told) -> None:
        """An event."""
        news = self.first.news(told)
        if told.kind in KINDS:
            self.kept.told(told.kind, told.key, told.uid, "" if told.gone else told.version)
            news = news and (told.gone or not self.hearing.knows(told.uid, told.version))
        if news and told.delay_s is not None:
            self.queue.add_after(told.key, told.delay_s)
        if told.kind == IMAGE_EDIT_DEPLOYMENTS:
            self.hearing.told(told.key, told.version)
        elif told.gone:
            self.hearing.heard_gone(told.uid)
        else:
            self.hearing.heard(told.uid, told.version)

    def unheard(self, before: Mapping[Key, Family], now: Mapping[Key, Family]) -> set[Key]:
        """The resources to look at after a list: of which the watches did not tell what it shows."""
        return self.hearing.unheard(before, now) | self.kept.lost(now)

    def listed(self, key: Key) -> None:
        """A list says that the resource is to be looked at."""
        if not self.first.awaits(key):  # else what is kept of it is of this very list
            self.kept.doubt(key)
        self.queue.add(key)
