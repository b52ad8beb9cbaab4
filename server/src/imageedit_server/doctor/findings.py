"""One line of the report."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How bad it is: `fail` means that the server would not serve."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report. A message that is not ok says what to change."""

    name: str
    level: Level
    message: str


def ok(name: str, message: str) -> Finding:
    """As it should be."""
    return Finding(name=name, level=Level.OK, message=message)


def warn(name: str, message: str) -> Finding:
    """It may work."""
    return Finding(name=name, level=Level.WARN, message=message)


def fail(name: str, message: str) -> Finding:
    """It cannot work."""
    return Finding(name=name, level=Level.FAIL, message=message)
