"""How many steps may an edit have whose client did not choose? Pure."""

from __future__ import annotations

# With this many edits behind it, an edit gets no more steps than it must.
BUSY_WAITING = 2


# | others that wait | steps                          |
# | ---------------- | ------------------------------ |
# | 0                | high                           |
# | 1                | halfway, rounded down          |
# | 2 or more        | standard                       |
def dynamic_steps(*, waiting: int, standard: int, high: int) -> int:
    """Steps of the edit that starts now: more while the queue is short, never above `high` or below `standard`."""
    extra = max(0, high - standard)
    return standard + extra * (BUSY_WAITING - min(waiting, BUSY_WAITING)) // BUSY_WAITING
