"""The work queue: what is due when, in whose hands, and how failures back off."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.workqueue import LONGEST_BACKOFF_S, Key, Schedule, WorkQueue, backoff_s
from unit.operator_shell.virtual_time import now, run_virtual

A, B, C = Key("ns", "a"), Key("ns", "b"), Key("ns", "c")


def test_a_key_that_is_added_twice_is_handed_out_once() -> None:
    schedule = Schedule()
    schedule.add(A, 0)
    schedule.add(A, 1)
    assert schedule.take(2) == A
    assert schedule.take(2) is None


def test_keys_are_handed_out_in_the_order_of_their_arrival() -> None:
    schedule = Schedule()
    for key in (B, A, C):
        schedule.add(key, 0)
    assert [schedule.take(0) for _ in range(3)] == [B, A, C]


def test_a_key_in_processing_is_not_handed_out_again_before_it_is_done() -> None:
    schedule = Schedule()
    schedule.add(A, 0)
    schedule.take(0)
    schedule.add(A, 1)
    assert schedule.take(1) is None
    schedule.done(A, 2)
    assert schedule.take(2) == A


def test_a_key_that_was_not_added_meanwhile_is_not_due_after_it_is_done() -> None:
    schedule = Schedule()
    schedule.add(A, 0)
    schedule.take(0)
    schedule.done(A, 1)
    assert schedule.take(1) is None


def test_the_earliest_of_several_delayed_adds_wins() -> None:
    schedule = Schedule()
    schedule.add_at(A, 30)
    schedule.add_at(A, 10)
    schedule.add_at(A, 20)
    assert schedule.next_due() == 10
    assert schedule.take(9.9) is None
    assert schedule.take(10) == A
    schedule.done(A, 10)
    assert schedule.take(1000) is None


def test_a_pass_makes_the_delayed_add_of_before_superfluous() -> None:
    schedule = Schedule()
    schedule.add_at(A, 30)
    schedule.add(A, 5)
    assert schedule.take(5) == A
    schedule.done(A, 6)
    assert schedule.take(1000) is None


def test_a_delayed_add_that_falls_due_in_processing_runs_after_it() -> None:
    schedule = Schedule()
    schedule.add(A, 0)
    schedule.take(0)
    schedule.add_at(A, 5)
    assert schedule.take(6) is None
    schedule.done(A, 7)
    assert schedule.take(7) == A


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (8, 64.0), (9, 120.0), (10, 120.0), (5000, 120.0)]
)
def test_back_off_doubles_to_two_minutes(failures: int, longest: float) -> None:
    assert backoff_s(failures, 0.0) == longest
    assert backoff_s(failures, 1.0) == longest / 2


def test_a_success_forgives_earlier_failures() -> None:
    schedule = Schedule()
    delays = [schedule.add_failed(A, 0, 0.0) for _ in range(3)]
    schedule.forgive(A)
    assert [*delays, schedule.add_failed(A, 0, 0.0)] == [0.5, 1.0, 2.0, 0.5]


def test_a_failure_waits_as_long_as_the_server_asked() -> None:
    schedule = Schedule()
    assert schedule.add_failed(A, 0, 0.0, 7.0) == 7.0
    assert schedule.next_due() == 7.0


def test_failures_of_one_key_do_not_delay_another() -> None:
    schedule = Schedule()
    for _ in range(20):
        schedule.add_failed(A, 0, 0.0)
    assert schedule.add_failed(B, 0, 0.0) == 0.5


def test_forgetting_drops_delays_but_not_an_add_that_came_meanwhile() -> None:
    schedule = Schedule()
    schedule.add(A, 0)
    schedule.take(0)
    schedule.add_at(A, 50)
    schedule.add(A, 1)
    schedule.forget(A)
    schedule.done(A, 2)
    assert schedule.next_due() is None
    assert schedule.take(2) == A


def test_the_oldest_age_counts_from_when_a_key_became_due() -> None:
    schedule = Schedule()
    schedule.add_at(A, 10)
    schedule.add(B, 14)
    assert schedule.oldest_s(14) == 0.0  # A is delayed until somebody looks
    assert schedule.take(15) == B
    assert schedule.oldest_s(16) == 6.0
    assert schedule.depth() == 1


KEYS = st.sampled_from([A, B, C])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS),
        st.tuples(st.just("later"), KEYS),
        st.tuples(st.just("take"), KEYS),
        st.tuples(st.just("done"), KEYS),
        st.tuples(st.just("fail"), KEYS),
    ),
    max_size=60,
)


@given(STEPS)
def test_no_key_is_ever_in_two_hands_and_none_is_lost(steps: list[tuple[str, Key]]) -> None:
    schedule, hands, owed = Schedule(), set[Key](), set[Key]()
    for at, (step, key) in enumerate(steps):
        if step == "add":
            schedule.add(key, at)
            owed.add(key)
        elif step == "later":
            schedule.add_at(key, at + 3)
            owed.add(key)
        elif step == "fail":
            schedule.add_failed(key, at, 0.0)
            owed.add(key)
        elif step == "done" and key in hands:
            schedule.done(key, at)
            hands.remove(key)
        elif step == "take" and (taken := schedule.take(at)) is not None:
            assert taken not in hands
            hands.add(taken)
            owed.discard(taken)
    end = len(steps) + 2 * LONGEST_BACKOFF_S
    for key in hands:
        schedule.done(key, end)
    handed_out = set()
    while (taken := schedule.take(end)) is not None:
        handed_out.add(taken)
    assert handed_out == owed
    assert schedule.depth() == 0


def test_a_waiting_worker_wakes_at_once_for_an_add() -> None:
    async def main() -> tuple[Key | None, float]:
        queue = WorkQueue(clock=now, random=lambda: 0.0)
        asyncio.get_running_loop().call_later(3.0, queue.add, A)
        return await queue.get(), now()

    assert run_virtual(main) == (A, 3.0)


def test_a_waiting_worker_wakes_exactly_when_a_delayed_key_is_due() -> None:
    async def main() -> tuple[Key | None, float]:
        queue = WorkQueue(clock=now, random=lambda: 0.0)
        queue.add_after(A, 40.0)
        asyncio.get_running_loop().call_later(5.0, queue.add_after, B, 10.0)
        first = await queue.get()
        assert (first, now()) == (B, 15.0)
        return await queue.get(), now()

    assert run_virtual(main) == (A, 40.0)


def test_keys_that_are_due_together_wake_as_many_workers() -> None:
    async def main() -> list[tuple[Key, float]]:
        queue = WorkQueue(clock=now, random=lambda: 0.0)
        taken: list[tuple[Key, float]] = []

        async def work() -> None:
            while (key := await queue.get()) is not None:
                taken.append((key, now()))
                await asyncio.sleep(50.0)
                queue.done(key)

        workers = [asyncio.ensure_future(work()) for _ in range(4)]
        await asyncio.sleep(1.0)
        for key in (A, B, C):
            queue.add_after(key, 9.0)
        queue.add(Key("ns", "d"))  # whoever takes it hands the waiting on
        await asyncio.sleep(100.0)
        queue.close()
        await asyncio.gather(*workers)
        return taken

    assert run_virtual(main) == [(Key("ns", "d"), 1.0), (A, 10.0), (B, 10.0), (C, 10.0)]


def test_workers_share_the_keys_and_each_key_runs_alone() -> None:
    async def main() -> list[tuple[Key, float, float]]:
        queue = WorkQueue(clock=now, random=lambda: 0.0)
        runs: list[tuple[Key, float, float]] = []

        async def work() -> None:
            while (key := await queue.get()) is not None:
                begin = now()
                await asyncio.sleep(2.0)
                runs.append((key, begin, now()))
                queue.done(key)

        workers = [asyncio.ensure_future(work()) for _ in range(2)]
        for key in (A, B, C, A):
            queue.add(key)
        await asyncio.sleep(1.0)
        queue.add(A)  # while A is in the hands of a worker
        await asyncio.sleep(20.0)
        queue.close()
        await asyncio.gather(*workers)
        return runs

    assert run_virtual(main) == [(A, 0.0, 2.0), (B, 0.0, 2.0), (C, 2.0, 4.0), (A, 2.0, 4.0)]


def test_closing_sends_every_waiting_worker_home() -> None:
    async def main() -> list[Key | None]:
        queue = WorkQueue(clock=now, random=lambda: 0.0)
        workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
        await asyncio.sleep(1.0)
        queue.add_after(A, 0.0)
        queue.close()
        return await asyncio.gather(*workers)

    assert run_virtual(main) == [None, None, None]


def test_depth_and_age_show_what_waits_for_a_worker() -> None:
    async def main() -> tuple[int, float]:
        queue = WorkQueue(clock=now, random=lambda: 0.0)
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(4.0)
        return queue.depth(), queue.oldest_s()

    assert run_virtual(main) == (2, 4.0)
