"""A read that the apiserver could not answer just now is sent again within its pass.

A pass reads ten times or more, and one failure ends it. Where a part of the requests fails, as behind a load
balancer with one sick apiserver of three, most passes would end early and rollouts would crawl by back-off alone.
Writes are never sent again: the plan that they belong to may be wrong by now, and the next pass looks anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from imageedit_operator.errors import ApiError

READS = frozenset({"get", "list"})
PASSING = frozenset({429, 500, 502, 503, 504})
PAUSES_S = (0.2, 0.5)
"""Before the second and the third try; with jitter, half of it to half more."""
LONGEST_S = 1.0
"""What the apiserver asks of who is one too many; whoever asks for more is waited for by the key's back-off."""


# | a read failed with                          | it is sent again                                     |
# | 429, 500, 502, 503, 504                     | after PAUSES_S                                       |
# | the same, with Retry-After up to LONGEST_S  | after that, and a pause on top: not all at one time  |
# | the same, with a longer Retry-After         | no: the pass ends, and the next one waits so long    |
# | a connection that was cut or refused        | after PAUSES_S                                       |
# | no answer in time                           | no: it used up its share of the pass                 |
# | any other answer                            | no: it is the answer                                 |
# | any of these for the third time             | no                                                   |
# A write is not sent again.
def again_after_s(verb: str, error: ApiError, *, tries: int, random: float) -> float | None:
    """The pause in seconds before the next try of a request that failed `tries` times; None = give up."""
    passing = error.status in PASSING or (error.status == 0 and not error.late)
    if verb not in READS or not passing or tries > len(PAUSES_S) or error.retry_after_s > LONGEST_S:
        return None
    return error.retry_after_s + PAUSES_S[tries - 1] * (0.5 + random)


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """`random` in [0, 1); `pause` waits so many seconds, or less when the process is to end."""

    random: Callable[[], float]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def again(self, verb: str, error: ApiError, *, tries: int) -> bool:
        """Waits where another try is due; False when there is none."""
        pause_s = again_after_s(verb, error, tries=tries, random=self.random())
        if pause_s is None:
            return False
        await self.pause(pause_s)
        return True
