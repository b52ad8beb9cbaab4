"""One candidate for the Lease: winning it, holding it, giving it back.

Core decides (core/election.py); here are the requests, the waiting and the clock. A candidate that
lost the Lease goes on as one that waits: an outage of the apiserver costs every holder its Lease,
and must not end every process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from imageedit_operator.core.election import LeaseRecord, Sighting, Step, Timing, acts_for_s, expires_in_s, sight, step
from imageedit_operator.errors import ApiError, Deposed
from imageedit_operator.supervision import sleep_unless

logger = logging.getLogger(__name__)

RELEASE_TIMEOUT_S = 3.0


class Lease(Protocol):
    """What a candidate does with the stored Lease; kube/lease.py has the real one. Every method raises ApiError."""

    async def read(self) -> LeaseRecord | None: ...

    async def create(self, holder: str, lease_s: float) -> LeaseRecord: ...

    async def take(self, seen: LeaseRecord, holder: str, lease_s: float) -> LeaseRecord: ...

    async def renew(self, seen: LeaseRecord, lease_s: float) -> LeaseRecord: ...

    async def release(self, seen: LeaseRecord) -> LeaseRecord: ...


class Candidate:
    """One operator process; `me` is its identity, `stopwatch` is monotonic."""

    def __init__(self, lease: Lease, *, me: str, timing: Timing, stopwatch: Callable[[], float]) -> None:
        self._lease = lease
        self._me = me
        self._timing = timing
        self._stopwatch = stopwatch
        self._seen: Sighting | None = None
        self._renewed_s: float | None = None
        self._contact_s = stopwatch()

    def leading(self) -> bool:
        """True while we may act; asked before every write, for a process that was frozen wakes up as a leader."""
        return acts_for_s(self._renewed_s, self._timing, self._stopwatch()) > 0

    def since_contact_s(self) -> float:
        """Seconds since the Lease could be read or written."""
        return self._stopwatch() - self._contact_s

    def holder(self) -> str:
        """Who holds the Lease, as far as we have seen."""
        return self._seen.record.holder if self._seen is not None else ""

    async def win(self, stop: asyncio.Event) -> bool:
        """Waits until the Lease is ours: True. False when `stop` came first."""
        complaint = ""
        while not stop.is_set():
            try:
                async with asyncio.timeout(self._timing.renew_deadline_s):
                    if await self._try_to_win():
                        return True
                complaint = ""
            except (ApiError, TimeoutError) as error:
                if str(error) != complaint:
                    logger.warning("the Lease %s cannot be had: %s", self._lease, str(error) or "no answer in time")
                complaint = str(error)
            await sleep_unless(stop, self._pause_s())
        return False

    async def hold(self, until: asyncio.Event) -> None:
        """Renews the Lease until `until` is set. Raises Deposed when it is lost; from then on `leading` is False."""
        while not until.is_set():
            left_s = acts_for_s(self._renewed_s, self._timing, self._stopwatch())
            if left_s <= 0:
                self._renewed_s = None
                raise Deposed(f"the Lease could not be renewed within {self._timing.renew_deadline_s:g} s")
            try:
                async with asyncio.timeout(left_s):
                    await sleep_unless(until, self._timing.retry_s)
                    if not until.is_set():
                        await self._renew()
            except TimeoutError:
                continue  # the next turn says so
            except ApiError as error:
                logger.warning("the Lease could not be renewed: %s", error)

    async def resign(self) -> None:
        """Gives the Lease back, so that the next one need not wait for its end; called when no pass runs any more."""
        held, self._renewed_s = self.leading(), None
        if not held or self._seen is None:
            return
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await self._lease.release(self._seen.record)
        except (ApiError, TimeoutError) as error:
            logger.warning("the Lease could not be given back, it will expire: %s", str(error) or "no answer in time")

    async def _try_to_win(self) -> bool:
        await self._look()
        sent_s, lease_s = self._stopwatch(), self._timing.lease_s
        wanted = step(self._seen, me=self._me, now_s=sent_s)
        try:
            if self._seen is None or wanted is Step.CREATE:
                record = await self._lease.create(self._me, lease_s)
            elif wanted is Step.TAKE:
                record = await self._lease.take(self._seen.record, self._me, lease_s)
            elif wanted is Step.RENEW:
                record = await self._lease.renew(self._seen.record, lease_s)
            else:
                return False
        except ApiError as error:
            if error.conflict or error.not_found:
                return False  # somebody was faster
            raise
        self._ours(record, sent_s)
        return True

    async def _renew(self) -> None:
        assert self._seen is not None
        sent_s = self._stopwatch()
        try:
            record = await self._lease.renew(self._seen.record, self._timing.lease_s)
        except ApiError as error:
            if not (error.conflict or error.not_found):
                raise
            await self._look()  # a renewal whose answer was lost also looks like this
            if self.holder() != self._me:
                self._renewed_s = None
                raise Deposed(f"{self.holder() or 'nobody'} holds the Lease now") from error
            sent_s = self._stopwatch()
            record = await self._lease.renew(self._seen.record, self._timing.lease_s)
        self._ours(record, sent_s)

    async def _look(self) -> None:
        record = await self._lease.read()
        self._contact_s = self._stopwatch()
        self._seen = None if record is None else sight(self._seen, record, self._contact_s)

    def _ours(self, record: LeaseRecord, sent_s: float) -> None:
        self._contact_s = self._stopwatch()
        self._seen = sight(self._seen, record, self._contact_s)
        self._renewed_s = sent_s

    def _pause_s(self) -> float:
        """Half a period, but not past the end of the Lease that we wait for."""
        half_s = self._timing.retry_s / 2
        if self._seen is None or not self._seen.record.holder:
            return half_s
        return min(half_s, max(0.05, expires_in_s(self._seen, self._stopwatch())))
