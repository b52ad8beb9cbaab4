"""A candidate wins, holds, loses and gives back the Lease, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from imageedit_operator.core.election import LeaseRecord, Timing
from imageedit_operator.election import Candidate
from imageedit_operator.errors import ApiError, Deposed
from unit.operator_shell.virtual_time import now, run_virtual

TIMING = Timing(lease_s=15.0, renew_deadline_s=10.0, retry_s=2.0)
DOWN = ApiError(status=0, reason="Unreachable", message="no answer")
CONFLICT = ApiError(status=409, reason="Conflict", message="it has changed")


@dataclass(kw_only=True)
class MemoryLease:
    """The stored Lease with versions; from `down_from_s` on nothing answers, from `hangs_from_s` on requests hang."""

    record: LeaseRecord | None = None
    down_s: tuple[float, float] = (1e9, 1e9)
    hangs_from_s: float = 1e9
    loses_answers: bool = False
    writes: list[tuple[float, str]] = field(default_factory=list)

    async def read(self) -> LeaseRecord | None:
        await self._reach()
        return self.record

    async def create(self, holder: str, lease_s: float) -> LeaseRecord:
        await self._reach()
        if self.record is not None:
            raise CONFLICT
        return self._store(LeaseRecord(holder=holder, lease_s=lease_s, version="0", transitions=0))

    async def take(self, seen: LeaseRecord, holder: str, lease_s: float) -> LeaseRecord:
        return await self._replace(seen, holder, lease_s, seen.transitions + 1)

    async def renew(self, seen: LeaseRecord, lease_s: float) -> LeaseRecord:
        return await self._replace(seen, seen.holder, lease_s, seen.transitions)

    async def release(self, seen: LeaseRecord) -> LeaseRecord:
        return await self._replace(seen, "", 1.0, seen.transitions)

    async def _replace(self, seen: LeaseRecord, holder: str, lease_s: float, transitions: int) -> LeaseRecord:
        await self._reach()
        if self.record is None or self.record.version != seen.version:
            raise CONFLICT
        stored = self._store(LeaseRecord(holder=holder, lease_s=lease_s, version=seen.version, transitions=transitions))
        if self.loses_answers:
            raise DOWN
        return stored

    def _store(self, record: LeaseRecord) -> LeaseRecord:
        self.record = LeaseRecord(
            holder=record.holder,
            lease_s=record.lease_s,
            version=str(len(self.writes) + 1),
            transitions=record.transitions,
        )
        self.writes.append((now(), record.holder))
        return self.record

    async def _reach(self) -> None:
        if self.down_s[0] <= now() < self.down_s[1]:
            raise DOWN
        if now() >= self.hangs_from_s:
            await asyncio.sleep(1e6)


def candidate(lease: MemoryLease, me: str = "a") -> Candidate:
    return Candidate(lease, me=me, timing=TIMING, stopwatch=now)


def held_by(holder: str) -> LeaseRecord:
    return LeaseRecord(holder=holder, lease_s=15.0, version="v", transitions=0)


def won_at(lease: MemoryLease) -> float:
    """When a lone candidate gets the Lease."""

    async def main() -> float:
        assert await candidate(lease).win(asyncio.Event())
        return now()

    return run_virtual(main)


@pytest.mark.parametrize(
    ("stored", "seconds"), [(None, 0.0), (held_by(""), 0.0), (held_by("a"), 0.0), (held_by("dead"), 15.0)]
)
def test_a_free_lease_is_had_at_once_and_that_of_a_dead_holder_when_it_expires(
    stored: LeaseRecord | None, seconds: float
) -> None:
    assert won_at(MemoryLease(record=stored)) == pytest.approx(seconds, abs=0.1)


def test_an_outage_delays_the_victory_and_ends_nothing() -> None:
    assert won_at(MemoryLease(down_s=(0.0, 300.0))) == pytest.approx(300.0, abs=1.0)


def test_a_stop_ends_the_wait() -> None:
    async def main() -> tuple[bool, float]:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(5.0, stop.set)
        return await candidate(MemoryLease(record=held_by("b"))).win(stop), now()

    assert run_virtual(main) == (False, 5.0)


def leader(lease: MemoryLease, then: Callable[[Candidate, asyncio.Event], Awaitable[None]]) -> Candidate:
    """A candidate that has won, and what happens to it."""

    async def main() -> Candidate:
        ours = candidate(lease)
        await ours.win(asyncio.Event())
        await then(ours, asyncio.Event())
        return ours

    return run_virtual(main)


def test_a_holder_renews_each_period_and_keeps_the_lease() -> None:
    lease = MemoryLease()

    async def then(ours: Candidate, until: asyncio.Event) -> None:
        asyncio.get_running_loop().call_later(9.0, until.set)
        await ours.hold(until)
        assert ours.leading()

    leader(lease, then)
    assert lease.writes == [(0, "a"), (2, "a"), (4, "a"), (6, "a"), (8, "a")]


@pytest.mark.parametrize(
    "lease",
    [MemoryLease(down_s=(1.0, 1e9)), MemoryLease(hangs_from_s=1.0)],
    ids=["refused", "hanging"],
)
def test_a_holder_that_cannot_renew_stops_acting_before_the_lease_expires(lease: MemoryLease) -> None:
    async def then(ours: Candidate, until: asyncio.Event) -> None:
        with pytest.raises(Deposed, match="within 10 s"):
            await ours.hold(until)
        assert not ours.leading()
        assert now() == pytest.approx(10.0, abs=0.1)

    leader(lease, then)


def test_a_short_outage_costs_nothing() -> None:
    async def then(ours: Candidate, until: asyncio.Event) -> None:
        asyncio.get_running_loop().call_later(30.0, until.set)
        await ours.hold(until)
        assert ours.leading()

    leader(MemoryLease(down_s=(3.0, 10.0)), then)


def test_a_renewal_whose_answer_was_lost_does_not_depose_its_holder() -> None:
    lease = MemoryLease()

    async def then(ours: Candidate, until: asyncio.Event) -> None:
        lease.loses_answers = True
        asyncio.get_running_loop().call_later(3.0, lambda: setattr(lease, "loses_answers", False))
        asyncio.get_running_loop().call_later(15.0, until.set)
        await ours.hold(until)
        assert ours.leading()

    leader(lease, then)


def test_a_holder_that_was_frozen_must_not_act_and_finds_out_who_does() -> None:
    lease = MemoryLease()

    async def then(ours: Candidate, until: asyncio.Event) -> None:
        await asyncio.sleep(20.0)  # nothing of ours runs meanwhile, as in a stopped process
        assert not ours.leading()
        lease.record = held_by("b")
        with pytest.raises(Deposed):
            await ours.hold(until)

    leader(lease, then)


def test_a_holder_whose_lease_was_taken_by_force_is_deposed_at_its_next_renewal() -> None:
    lease = MemoryLease()

    async def then(ours: Candidate, until: asyncio.Event) -> None:
        lease.record = held_by("b")
        with pytest.raises(Deposed, match="b holds the Lease now"):
            await ours.hold(until)
        assert now() == 2.0

    leader(lease, then)


def test_a_lease_that_was_given_back_is_taken_within_half_a_period() -> None:
    lease = MemoryLease()

    async def main() -> float:
        first, second = candidate(lease, "a"), candidate(lease, "b")
        await first.win(asyncio.Event())
        waiting = asyncio.create_task(second.win(asyncio.Event()))
        await asyncio.sleep(7.3)
        await first.resign()
        assert not first.leading()
        given_back = now()
        await waiting
        return now() - given_back

    assert run_virtual(main) <= TIMING.retry_s / 2
    assert [holder for _, holder in lease.writes] == ["a", "", "b"]


def test_who_does_not_hold_the_lease_gives_nothing_back() -> None:
    lease = MemoryLease(record=held_by("b"))

    async def main() -> None:
        await candidate(lease).resign()

    run_virtual(main)
    assert lease.writes == []


def test_of_many_candidates_one_acts_at_a_time_through_outages() -> None:
    lease = MemoryLease(down_s=(40.0, 75.0))
    acting: list[tuple[float, str, bool]] = []

    async def life(me: str, stop: asyncio.Event) -> None:
        ours = candidate(lease, me)
        while await ours.win(stop):
            acting.append((now(), me, True))
            try:
                await ours.hold(stop)
            except Deposed:
                acting.append((now(), me, False))

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(200.0, stop.set)
        await asyncio.gather(*(life(me, stop) for me in "abc"))

    run_virtual(main)
    assert [began for _, _, began in acting] == [True, False, True]
    assert acting[0][0] == 0.0
    assert 45.0 < acting[1][0] <= 50.0
    assert acting[2][0] <= 77.0
