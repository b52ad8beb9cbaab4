"""How often a worker may be lost before the pod gives up."""

from collections.abc import Sequence


def may_restart(losses_at_s: Sequence[float], *, now_s: float, max_restarts: int, window_s: float) -> bool:
    """Decide whether one more worker is started, given the times of all losses, the newest included.

    | losses within the window | decision |
    | --- | --- |
    | at most `max_restarts` | start another one |
    | more | give up |
    """
    recent = [at_s for at_s in losses_at_s if now_s - at_s <= window_s]
    return len(recent) <= max_restarts
