"""What a wait says on its way: a line when something moves, and one now and then when nothing does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from support.kubectl import condition

LINES_APART_S = 3.0
"""Fewer seconds between two lines, and nobody reads them."""
SILENCE_S = 10.0
"""More seconds without a line, and people think that it hangs."""


def standing(resource: Mapping[str, Any]) -> str:
    """Where the pods are, and what the next one waits for."""
    status = resource.get("status", {})
    wanted, updated, serve = (status.get(name, 0) for name in ("desiredReplicas", "updatedReplicas", "readyReplicas"))
    words = f"{updated} of {wanted} pods are of the new revision, {serve} of all pods serve"
    card = condition(resource, "WaitingForCard")
    return words if card["reason"] in ("Scheduled", "NoCardAsked", "") else f"{words}; {card['message']}"


# | pods asked for | said besides the numbers                                  |
# | too few        | why the autoscaler has no data, or what it goes by        |
# | enough         | what keeps those that do not serve yet                    |
def growing(resource: Mapping[str, Any], wanted: int) -> str:
    """How far a resource is on the way to so many pods, and what is awaited."""
    status = resource.get("status", {})
    asked, serve = status.get("desiredReplicas", 0), status.get("readyReplicas", 0)
    metrics, scaling = condition(resource, "MetricsAvailable"), condition(resource, "ScalingActive")
    decides = scaling if metrics["status"] == "True" else metrics
    awaited = condition(resource, "Progressing") if asked >= wanted else decides
    words = f"the queue asks for {asked} of {wanted} pods, {serve} of them serve"
    return f"{words}; {awaited['message']}" if awaited["message"] else words


# | the words are     | since the last line | said                      |
# | other ones        | 3 s or more         | at once                   |
# | other ones        | less                | then, if they still stand |
# | the same          | 10 s or more        | again, with the seconds   |
# | the same          | less                | nothing                   |
class Telling:
    """Says what stands, no more often than people read."""

    def __init__(self, say: Callable[[str], None], *, now: float) -> None:
        self._say = say
        self._began = now
        self._said = ""
        self._said_at = now - LINES_APART_S

    def tell(self, words: str, *, now: float) -> None:
        """What stands at `now`, seconds of any clock that runs on."""
        quiet_s = now - self._said_at
        if words != self._said and quiet_s >= LINES_APART_S:
            self._say(words)
        elif words == self._said and quiet_s >= SILENCE_S:
            self._say(f"{words} ({now - self._began:.0f} s)")
        else:
            return
        self._said, self._said_at = words, now
