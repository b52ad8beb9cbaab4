"""The simulated cards: how many there are and which are sick, in a file that the device plugin follows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster.errors import LocalClusterError


@dataclass(frozen=True, kw_only=True, slots=True)
class Cards:
    """Cards 0 to count - 1; those in `unhealthy` may not be given to pods."""

    count: int
    unhealthy: tuple[int, ...] = ()


def read(file: Path) -> Cards:
    """The cards as the file has them."""
    data = json.loads(file.read_text())
    return Cards(count=int(data["count"]), unhealthy=tuple(data["unhealthy"]))


def write(file: Path, cards: Cards) -> None:
    """Replace the file in one step; the kubelet learns of it within about a second."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(asdict(cards)))
    unfinished.replace(file)


def set_count(file: Path, count: int) -> Cards:
    """So many cards, all healthy."""
    if count < 0:
        raise LocalClusterError(f"{count} cards: the number of cards is 0 or more")
    cards = Cards(count=count)
    write(file, cards)
    return cards


def set_health(file: Path, card: int, *, healthy: bool) -> Cards:
    """One card made sick or well."""
    now = read(file)
    if not 0 <= card < now.count:
        raise LocalClusterError(f"there is no card {card}: the node has cards 0 to {now.count - 1}")
    cards = Cards(count=now.count, unhealthy=_with(now.unhealthy, card, present=not healthy))
    write(file, cards)
    return cards


def _with(numbers: Iterable[int], number: int, *, present: bool) -> tuple[int, ...]:
    others = set(numbers) - {number}
    return tuple(sorted(others | {number} if present else others))
