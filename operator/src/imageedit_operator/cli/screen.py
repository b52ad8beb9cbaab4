"""Text for a terminal: colours, columns, and trees that are wrapped to its width. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

NARROWEST = 24
"""Columns that wrapped words get, however narrow the terminal is."""

_CODES = {"good": "32", "warn": "33", "bad": "31", "dim": "2", "bold": "1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """Where text goes; by default a file: no colours, and lines of any length."""

    width: int | None = None
    colour: bool = False

    def paint(self, text: str, tone: str) -> str:
        """The text in its colour, where there are colours; what pods and files say must not steer a terminal."""
        text = printable(text)
        return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if self.colour and tone and text else text


# | stdout     | NO_COLOR | TERM | colours | width                       |
# | a terminal | unset    | any  | yes     | that of the terminal        |
# | a terminal | set      | any  | no      | that of the terminal        |
# | a terminal | any      | dumb | no      | that of the terminal        |
# | else       | any      | any  | no      | lines as long as they come  |
def screen_for(*, terminal: bool, columns: int, environment: Mapping[str, str]) -> Screen:
    """How to write to where stdout goes."""
    if not terminal:
        return Screen()
    plain = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
    return Screen(width=columns, colour=not plain)


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and its tone: good, warn, bad, dim, bold, or plain."""

    text: str
    tone: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """A line of a tree: columns, words that may be wrapped, and what hangs below."""

    cells: tuple[Cell, ...] = ()
    words: str = ""
    tone: str = ""
    """Of the words."""
    below: tuple[Branch, ...] = ()


def aligned(branches: Iterable[Branch]) -> tuple[Branch, ...]:
    """The same branches, with the columns of their cells one below the other."""
    listed = tuple(branches)
    rows = padded([branch.cells for branch in listed])
    return tuple(
        Branch(cells=cells, words=branch.words, tone=branch.tone, below=branch.below)
        for cells, branch in zip(rows, listed, strict=True)
    )


def padded(rows: Sequence[Sequence[Cell]]) -> list[tuple[Cell, ...]]:
    """Rows whose columns are as wide as their longest text; columns that are empty in all rows are left out."""
    count = max((len(row) for row in rows), default=0)
    widths = [max((len(row[at].text) for row in rows if at < len(row)), default=0) for at in range(count)]
    return [
        tuple(Cell(cell.text.ljust(widths[at]), cell.tone) for at, cell in enumerate(row) if widths[at]) for row in rows
    ]


def printable(text: str) -> str:
    """The text with a space in place of each control character."""
    return "".join(character if character.isprintable() else " " for character in text)


def table(rows: Sequence[Sequence[Cell]], screen: Screen) -> list[str]:
    """Columns two spaces apart; what is beyond the width is cut."""
    return [_painted(_cut(row, screen.width), screen).rstrip() for row in padded(rows)]


def tree(root: Branch, screen: Screen) -> list[str]:
    """The root, and below it its branches, joined by lines."""
    return [*_wrapped(root, screen, first="", rest=""), *_grown(root.below, screen, "")]


def _grown(branches: Sequence[Branch], screen: Screen, prefix: str) -> list[str]:
    lines: list[str] = []
    for at, branch in enumerate(branches):
        last = at == len(branches) - 1
        deeper = prefix + ("   " if last else "│  ")
        first = prefix + ("└─ " if last else "├─ ")
        lines += _wrapped(branch, screen, first=first, rest=deeper + ("│  " if branch.below else "   "))
        lines += _grown(branch.below, screen, deeper)
    return lines


def _wrapped(branch: Branch, screen: Screen, *, first: str, rest: str) -> list[str]:
    room = None if screen.width is None else screen.width - len(first)
    cells = _cut(branch.cells, room)
    head = screen.paint(first, "dim") + _painted(cells, screen)
    if not branch.words:
        return [head.rstrip()]
    gap = "  " if cells else ""
    used = len(first) + sum(len(cell.text) + 2 for cell in cells)
    lines = [printable(branch.words).strip()]
    if screen.width is not None:
        lines = textwrap.wrap(lines[0], max(NARROWEST, screen.width - used), break_on_hyphens=False) or [""]
    hang = screen.paint(rest, "dim") + " " * (used - len(rest))
    painted = [screen.paint(line, branch.tone) for line in lines]
    return [head + gap + painted[0], *(hang + line for line in painted[1:])]


def _cut(cells: Sequence[Cell], room: int | None) -> tuple[Cell, ...]:
    if room is None:
        return tuple(cells)
    kept: list[Cell] = []
    for cell in cells:
        if room < 2:
            break
        fits = len(cell.text.rstrip()) <= room
        kept.append(cell if fits else Cell(cell.text[: room - 1] + "…", cell.tone))
        room -= len(cell.text) + 2
    return tuple(kept)


def _painted(cells: Sequence[Cell], screen: Screen) -> str:
    return "  ".join(screen.paint(cell.text, cell.tone) for cell in cells)


def duration(seconds: float) -> str:
    """`45s`, `12m`, `3h`, `6d`: one unit, as kubectl shows ages."""
    whole = max(0, int(seconds))
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if whole >= 2 * length:
            return f"{whole // length}{unit}"
    return f"{whole}s"
