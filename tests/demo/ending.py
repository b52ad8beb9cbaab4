"""How the demo ends before its end, and what is left of it then."""

from __future__ import annotations


def broken_off(*, left: bool) -> str:
    """A cluster whose start is broken off removes itself; one that is up stays, with whatever runs on it."""
    if left:
        return "demo broken off; run it again, or remove what it started: make demo-down"
    return "demo broken off; nothing that it started is left. Run it again: make demo"
