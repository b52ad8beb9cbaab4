"""A value that was measured, or why there is none.

A plan never sees a number that nobody measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Known(Generic[T]):
    """A value that was measured, and how old the measurement is."""

    value: T
    age_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """Why a value is not known: a CamelCase reason and a message for people."""

    reason: str
    message: str
