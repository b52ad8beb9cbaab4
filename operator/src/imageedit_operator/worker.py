"""Passes over the keys that are due, each ended within its time.

Every error ends here, once: the key backs off by itself and other keys do not notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.kept import Kept
from imageedit_operator.telemetry import Telemetry
from imageedit_operator.workqueue import Key, WorkQueue

logger = logging.getLogger(__name__)

SHORTEST_REQUEUE_S = 0.2
SPREAD_FROM_S = 60.0
SPREAD = 0.4
"""Long waits differ by so much: what started together need not be looked at together for ever."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a pass ended: one of telemetry's results, and when to look again (None: when something changes)."""

    result: str
    again_after_s: float | None = None


@dataclass(kw_only=True, slots=True)
class Worker:
    """What makes passes; several tasks may `work` at once. `stopwatch` is monotonic, `random` in [0, 1)."""

    reconcile: Callable[[Key], Awaitable[Outcome]]
    """One pass. Raises ApiError when the apiserver refuses or does not answer."""
    queue: WorkQueue
    telemetry: Telemetry
    kept: Kept
    """What passes know of children without reading them; a pass that goes wrong casts doubt on it."""
    stopwatch: Callable[[], float]
    timeout_s: float
    random: Callable[[], float] = lambda: 0.5
    running: dict[Key, float] = field(default_factory=dict)
    """The passes that run now, and when they began, by the stopwatch."""

    async def work(self) -> None:
        """One worker: passes over due keys until the queue is closed."""
        while (key := await self.queue.get()) is not None:
            self.running[key] = self.stopwatch()
            self.kept.begin(key)
            try:
                await self._guarded(key)
            finally:
                del self.running[key]
                self.queue.done(key)

    def longest_pass_s(self) -> float:
        """Age of the pass that runs longest, 0 when none runs."""
        return self.stopwatch() - min(self.running.values()) if self.running else 0.0

    async def _guarded(self, key: Key) -> None:
        started = self.stopwatch()
        try:
            async with asyncio.timeout(self.timeout_s):
                outcome = await self.reconcile(key)
        except TimeoutError:
            outcome = Outcome(result="timeout")
            delay_s = self.queue.add_failed(key)
            logger.error("pass took longer than %g s, next in %.1f s", self.timeout_s, delay_s, extra=about(key))
        except ApiError as error:
            outcome = Outcome(result="error")
            delay_s = self.queue.add_failed(key, at_least_s=error.retry_after_s)
            logger.error("%s; next pass in %.1f s", error, delay_s, extra=about(key))
        except Exception:
            outcome = Outcome(result="error")
            delay_s = self.queue.add_failed(key)
            logger.exception("a defect ended the pass; next in %.1f s", delay_s, extra=about(key))
        else:
            self.queue.forgive(key)
            if outcome.again_after_s is not None:
                self.queue.add_after(key, self._spread(max(SHORTEST_REQUEUE_S, outcome.again_after_s)))
        if outcome.result != "ok":
            self.kept.doubt(key)
        self.telemetry.reconciled(outcome.result, self.stopwatch() - started)

    def _spread(self, again_after_s: float) -> float:
        spread = SPREAD if again_after_s >= SPREAD_FROM_S else 0.0
        return again_after_s * (1 + spread * (self.random() - 0.5))


def about(key: Key) -> dict[str, Any]:
    """What a line of the log says of its resource."""
    return {"imageedit_namespace": key.namespace, "imageedit_deployment": key.name}
