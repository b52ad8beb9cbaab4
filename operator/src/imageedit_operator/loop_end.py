"""The end of an event loop in which something else ran, so that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

logger = logging.getLogger(__name__)

SETTLE_S = 0.1
MOST_CANCELS = 20


async def end_all() -> None:
    """Cancels whatever else still runs in this loop, again and again, and closes what it left half read.

    kopf cancels once and then waits for ever. A stream that is cancelled together with the task that would pause
    it takes that for a pause, and goes on; after kopf has logged out it waits for a login that nobody makes.
    """
    for _ in range(MOST_CANCELS):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            break
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=SETTLE_S)
    else:
        logger.error("%d tasks of kopf's loop cannot be ended", len(left))
    gc.collect()  # failed tasks hold half-read streams, which only a loop that still turns can close
    await asyncio.sleep(SETTLE_S)


def say_in_a_line(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line for a failure that nobody waits for: after one watch has failed, the others' failures are such."""
    logger.warning("kopf's loop: %s: %r", context["message"], context.get("exception"))
