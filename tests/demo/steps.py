"""Steps of the demo: each is announced, timed, and says what it found."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    """Prints numbered steps with the seconds that each took."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._number = 0
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step, and say how long it took when it is done."""
        self._number += 1
        began = time.monotonic()
        self.say(f"[{self._number}] {title} ...")
        yield
        self.seconds[title] = time.monotonic() - began
        self.say(f"    done in {self.seconds[title]:.1f} s")

    def note(self, text: str) -> None:
        """A line that belongs to the step at hand."""
        self.say(f"    {text}")

    def say(self, text: str) -> None:
        print(text, file=sys.stdout, flush=True)

    @property
    def total_s(self) -> float:
        return time.monotonic() - self._started
