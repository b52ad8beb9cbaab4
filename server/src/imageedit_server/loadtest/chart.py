"""A sweep as a picture, in three panels: throughput, latency, and what was not answered. Pure: shapes, no format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from imageedit_server.loadtest.report import SHARES, verdict
from imageedit_server.loadtest.statistics import Level, plateau

WIDTH_PX = 760
HEIGHT_PX = 640
LEFT_PX, RIGHT_PX = 70, 640
PANEL_PX = 130
TOPS_PX = (70, 260, 450)

INK, FAINT = "#222222", "#d0d0d0"
# Distinct for people who see colours differently.
BLUE, GREEN, ORANGE, RED = "#0072b2", "#009e73", "#e69f00", "#d55e00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points, or a dot where there is only one."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width_px: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Text whose baseline starts, ends or is centred at a point."""

    x_px: float
    y_px: float
    text: str
    colour: str = INK
    anchor: Literal["start", "middle", "end"] = "start"


Shape = Line | Label
Series = tuple[str, str, Sequence[float | None]]


def shapes(levels: Sequence[Level], *, title: str) -> Iterator[Shape]:
    """Everything to draw, back to front."""
    yield Label(x_px=LEFT_PX, y_px=24, text=title)
    yield Label(x_px=LEFT_PX, y_px=44, text=verdict(levels))
    colours = (GREEN, BLUE, ORANGE)
    latency: list[Series] = [
        (name, colour, [level.latency_s(share) for level in levels])
        for (name, share), colour in zip(SHARES.items(), colours, strict=True)
    ]
    unanswered: list[Series] = [
        ("refused", ORANGE, [float(level.refused_count) for level in levels]),
        ("failed", RED, [float(level.failed_count) for level in levels]),
    ]
    throughput: list[Series] = [("edits/s", BLUE, [level.throughput_per_s for level in levels])]
    panels = (("edits a second", throughput), ("seconds", latency), ("requests", unanswered))
    for top_px, (unit, series) in zip(TOPS_PX, panels, strict=True):
        yield from _panel(top_px, unit, series, [level.concurrency for level in levels])
    yield from _plateau_mark(levels)
    yield Label(x_px=(LEFT_PX + RIGHT_PX) / 2, y_px=HEIGHT_PX - 12, text="clients", anchor="middle")


def _panel(top_px: float, unit: str, series: Sequence[Series], concurrencies: Sequence[int]) -> Iterator[Shape]:
    highest = max((value for _, _, values in series for value in values if value is not None), default=0.0)
    top_value = _round_up(highest)
    bottom_px = top_px + PANEL_PX
    yield Label(x_px=LEFT_PX, y_px=top_px - 6, text=unit)
    for share in (0.0, 0.5, 1.0):
        y_px = bottom_px - share * PANEL_PX
        yield Line(points=((LEFT_PX, y_px), (RIGHT_PX, y_px)), colour=FAINT, width_px=1)
        yield Label(x_px=LEFT_PX - 8, y_px=y_px + 4, text=f"{share * top_value:g}", anchor="end")
    for index, concurrency in enumerate(concurrencies):
        x_px = _x_px(index, len(concurrencies))
        yield Label(x_px=x_px, y_px=bottom_px + 16, text=str(concurrency), anchor="middle")
    for number, (name, colour, values) in enumerate(series):
        points = tuple(
            (_x_px(index, len(values)), bottom_px - value / top_value * PANEL_PX)
            for index, value in enumerate(values)
            if value is not None
        )
        if points:
            yield Line(points=points, colour=colour)
            yield from (Line(points=(point,), colour=colour, width_px=6) for point in points)
        yield Label(x_px=RIGHT_PX + 14, y_px=top_px + 14 + 18 * number, text=name, colour=colour)


def _plateau_mark(levels: Sequence[Level]) -> Iterator[Shape]:
    found = plateau(levels)
    if found is None:
        return
    index = [level.concurrency for level in levels].index(found.concurrency)
    x_px = _x_px(index, len(levels))
    yield Line(points=((x_px, TOPS_PX[0]), (x_px, TOPS_PX[0] + PANEL_PX)), colour=GREEN, width_px=1)
    yield Label(x_px=x_px + 4, y_px=TOPS_PX[0] + PANEL_PX - 6, text="plateau", colour=GREEN)


def _x_px(index: int, count: int) -> float:
    """Levels stand side by side, evenly: their numbers usually double."""
    inner_px = RIGHT_PX - LEFT_PX
    return LEFT_PX + inner_px * (index + 0.5) / count


def _round_up(value: float) -> float:
    """The next 1, 2, 4, 5 or 10 times a power of ten: a scale that people can read."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 4, 5, 10, 20) if factor * power >= value)
