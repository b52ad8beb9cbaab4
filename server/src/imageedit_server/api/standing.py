"""Where an edit stands: its place in the queue, or its step on the card, as the comments of a stream say it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from imageedit_server.api.queue import EditQueue
from imageedit_server.api.ticket import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One edit, now.

    `queue_position` is how many edits are before it, the running one included, and None when it waits no more;
    `estimated_start_s` are the seconds until its turn. `steps` is 0 while nothing is known of the edit.
    """

    queue_position: int | None = None
    estimated_start_s: float = 0.0
    step: int = 0
    steps: int = 0

    def moved_from(self, earlier: Standing) -> bool:
        """Whether place or step is another one; the estimate changes all the time."""
        return (self.queue_position, self.step, self.steps) != (earlier.queue_position, earlier.step, earlier.steps)

    def comment(self) -> bytes:
        """A comment of a server-sent stream: clients that want events alone skip it, by the rules of the format."""
        body = {
            "queue_position": self.queue_position,
            "estimated_start_s": round(self.estimated_start_s, 1),
            "step": self.step,
            "steps": self.steps,
        }
        return f": {json.dumps(body)}\n\n".encode()


def standing_of(queue: EditQueue, ticket: Ticket | None) -> Standing:
    """Where the edit of a ticket stands; None is an edit that has no place yet."""
    if ticket is None:
        return Standing()
    return Standing(
        queue_position=queue.line.place(ticket),
        estimated_start_s=queue.line.starts_in_s(ticket),
        step=ticket.step,
        steps=ticket.job.steps,
    )
