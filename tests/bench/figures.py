"""Figures, what they should be, and whether they are. Pure, but for asking the machine and writing the file."""

from __future__ import annotations

import importlib.metadata
import json
import operator
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

AT_LEAST, AT_MOST = ">=", "<="
COMPARED: dict[str, Callable[[float, float], bool]] = {AT_LEAST: operator.ge, AT_MOST: operator.le}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number, how it was taken, and its repeats. A value of None was not reached: it fails every target."""

    name: str
    value: float | None
    how: str
    target: tuple[str, float] | None = None
    repeats: Sequence[float] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether the target is met; a figure without one is for comparison."""
        if self.target is None:
            return True
        comparison, wanted = self.target
        return self.value is not None and COMPARED[comparison](self.value, wanted)

    def __str__(self) -> str:
        value = "none" if self.value is None else f"{self.value:g}"
        if self.target is None:
            return f"{self.name} = {value}"
        return (
            f"{self.name} = {value} (target {self.target[0]} {self.target[1]:g}): {'ok' if self.passed else 'MISSED'}"
        )

    def as_json(self) -> dict[str, object]:
        """Everything, for the file."""
        target = None if self.target is None else f"{self.target[0]} {self.target[1]:g}"
        return {
            "value": self.value,
            "target": target,
            "passed": self.passed,
            "how": self.how,
            "repeats": list(self.repeats),
        }


def median(
    name: str, repeats: Sequence[float], *, how: str, digits: int = 4, target: tuple[str, float] | None = None
) -> Figure:
    """The median of several runs, and the runs."""
    rounded = [round(value, digits) for value in repeats]
    value = round(statistics.median(repeats), digits) if repeats else None
    return Figure(name=name, value=value, how=how, target=target, repeats=rounded)


def machine(*packages: str) -> dict[str, object]:
    """What the figures were taken on, with the versions of these Python packages.

    A load near the number of cores before anything ran means: others run here.
    """
    return {
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "nice": os.nice(0),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
    }


def write(path: Path, facts: dict[str, object], taken: Sequence[Figure], **about: object) -> None:
    """The file of a run: the machine, what was asked for, and every figure with how it was taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = {"machine": facts, **about, "figures": {figure.name: figure.as_json() for figure in taken}}
    path.write_text(json.dumps(said, indent=1) + "\n")
