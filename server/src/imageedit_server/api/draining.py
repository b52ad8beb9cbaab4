"""The drain of this process: begun by the operator or a signal, and undone unless the process was told to end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import asdict

from imageedit_server.errors import Conflict
from imageedit_server.gate import drain as drains
from imageedit_server.gate.drain import Drain, DrainPhase
from imageedit_server.gate.estimate import Load
from imageedit_server.logs import fields

log = logging.getLogger("imageedit.service")


class Draining:
    """`gate.drain` at this process's clock.

    Args:
        propagation_s: how long edits are still accepted, because endpoints change later than the pod knows.
        load: what runs and what waits now.
        on_change: called with whether a drain has begun.
    """

    def __init__(self, *, propagation_s: float, load: Callable[[], Load], on_change: Callable[[bool], None]) -> None:
        self._propagation_s = propagation_s
        self._load = load
        self._on_change = on_change
        self._drain = Drain(propagation_s=propagation_s)
        self._for_good = False
        self._was_ready = False

    @property
    def begun(self) -> bool:
        """A drain has begun."""
        return self._drain.started_s is not None

    @property
    def accepting(self) -> bool:
        """No drain, or one that still accepts."""
        return self.phase in (DrainPhase.ACCEPTING, DrainPhase.PROPAGATING)

    @property
    def phase(self) -> DrainPhase:
        """Where the drain stands now."""
        return drains.phase(self._drain, self._load(), time.monotonic())

    def note_ready(self) -> None:
        """From now on this process may be an endpoint."""
        self._was_ready = True

    def begin(self, *, why: str, for_good: bool = False) -> None:
        """Start the drain; a second start changes nothing, but that `for_good` nothing undoes it any more."""
        self._for_good = self._for_good or for_good
        if self.begun:
            return
        # A process that was never ready was never an endpoint, so there is nothing that must propagate.
        propagation_s = self._propagation_s if self._was_ready else 0.0
        self._drain = drains.begin(Drain(propagation_s=propagation_s), time.monotonic())
        self._on_change(True)
        log.info("drain_started", extra=fields(why=why, propagation_s=propagation_s, **asdict(self._load())))

    def undo(self) -> None:
        """Take edits again; without a drain nothing changes.

        Raises:
            Conflict: the process was told to end.
        """
        if self._for_good:
            raise Conflict("This process was told to end, and its drain cannot be undone.", code="drain_is_final")
        if self.begun:
            self._drain = Drain(propagation_s=self._propagation_s)
            self._on_change(False)
            log.info("drain_ended", extra=fields(**asdict(self._load())))

    async def propagated(self) -> None:
        """Return once a drain that has begun refuses new edits."""
        await asyncio.sleep(drains.propagation_left_s(self._drain, time.monotonic()))
