"""What lies under the pods of every resource, looked at together: a change there is no change of the resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from imageedit_operator.core import ground
from imageedit_operator.core.accelerator import Accelerator
from imageedit_operator.core.ground import Ground
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.workqueue import Key, WorkQueue


@dataclass(kw_only=True, slots=True)
class Grounds:
    """What the pods of each resource asked for, and what lay under them, when a pass looked at it last."""

    cards: CardBook
    queue: WorkQueue
    telemetry: Telemetry
    _found: dict[Key, tuple[Accelerator, Ground]] = field(default_factory=dict)

    def found(self, key: Key, accelerator: Accelerator, observed: Observed) -> None:
        """A pass came to its end with this."""
        near = {pod.node for pod in observed.pods if pod.node}
        self._found[key] = (accelerator, ground.found(observed.cards, observed.nodes, near=near))
        self._count(key, observed.cards)

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._found.pop(key, None)

    async def look(self) -> None:
        """Adds the resources under whose pods something changed, and brings the metric of free cards up to date.

        Both change by what others do, of which no version of the resource's own objects tells.
        """
        seen: dict[str, tuple[Known[CardLedger] | Unknown, Known[Mapping[str, str]] | Unknown]] = {}
        for key, (accelerator, _) in list(self._found.items()):
            name, count, place = accelerator.extended_resource, accelerator.count, accelerator.place()
            alike = repr((name, count, place))
            if not name:
                self.telemetry.cards_seen(key, None)
                continue
            if alike not in seen:
                cards = await self.cards.read(resource=name, count=count, place=place)
                seen[alike] = cards, await self.cards.nodes(resource=name, count=count, place=place)
            cards, nodes = seen[alike]
            if key not in self._found:
                continue  # it went meanwhile
            before = self._found[key][1]
            self._count(key, cards)
            if ground.is_news(before, ground.found(cards, nodes, near=before.near)):
                self.queue.add(key)

    def _count(self, key: Key, cards: Known[CardLedger] | Unknown) -> None:
        self.telemetry.cards_seen(key, cards.value.free if isinstance(cards, Known) else None)
