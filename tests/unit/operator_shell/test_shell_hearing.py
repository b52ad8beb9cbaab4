"""A watch that owes an event is found, one that has nothing to say is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from imageedit_operator.hearing import Hearing
from imageedit_operator.supervision import DEAF_S, unless_deaf
from imageedit_operator.watching import WatchEnded
from imageedit_operator.workqueue import Key
from unit.operator_shell.virtual_time import now, run_virtual

EDIT, OTHER = Key("team", "edit"), Key("team", "other")


def test_at_rest_nothing_is_owed() -> None:
    hearing = Hearing()
    hearing.told(EDIT, "7")
    for at_s in (10.0, 500.0, 1000.0):
        hearing.listed({EDIT: "7"}, at_s)
    assert hearing.deaf_s(1000.0) == 0.0


def test_a_version_that_only_a_list_shows_is_owed_since_then() -> None:
    hearing = Hearing()
    hearing.told(EDIT, "7")
    hearing.listed({EDIT: "8"}, 100.0)
    hearing.listed({EDIT: "9"}, 220.0)
    assert hearing.deaf_s(250.0) == 150.0


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_event_that_comes_later_settles_it(version: str) -> None:
    hearing = Hearing()
    hearing.listed({EDIT: "8"}, 100.0)
    hearing.told(EDIT, version)
    assert hearing.deaf_s(300.0) == 0.0


def test_a_resource_that_is_gone_is_owed_nothing() -> None:
    hearing = Hearing()
    hearing.listed({EDIT: "8", OTHER: "9"}, 100.0)
    hearing.listed({}, 220.0)
    assert hearing.deaf_s(300.0) == 0.0


BEFORE = frozenset({("r", "1"), ("d", "1"), ("p", "1"), ("s", "1")})


def with_(**versions: str) -> frozenset[tuple[str, str]]:
    """The family with some of its versions changed; an empty one is an object that is gone."""
    return frozenset((dict(BEFORE) | versions).items()) - {(uid, "") for uid in versions}


@pytest.mark.parametrize(
    ("now_listed", "hear", "looked_at"),
    [
        (BEFORE, lambda _hearing: None, False),
        (with_(p="2"), lambda _hearing: None, True),
        (with_(p="2"), lambda hearing: hearing.heard("p", "2"), False),
        (with_(p="2"), lambda hearing: hearing.heard("p", "3"), True),
        (with_(s="2"), lambda hearing: hearing.read({"metadata": {"uid": "s", "resourceVersion": "2"}}), False),
        (with_(r="2"), lambda hearing: hearing.told(EDIT, "2"), True),  # perhaps the status, which asks for no look
        (with_(r="2"), lambda hearing: hearing.read({"metadata": {"uid": "r", "resourceVersion": "2"}}), False),
        (with_(new="1"), lambda _hearing: None, True),
        (with_(new="1"), lambda hearing: hearing.heard("new", "1"), False),
        (with_(p=""), lambda _hearing: None, True),
        (with_(p=""), lambda hearing: hearing.heard_gone("p"), False),
        (with_(p="", d="2"), lambda hearing: hearing.heard_gone("p"), True),
    ],
)
def test_after_a_list_what_was_not_heard_of_is_looked_at(
    now_listed: frozenset[tuple[str, str]], hear: Callable[[Hearing], None], looked_at: bool
) -> None:
    hearing = Hearing()
    assert hearing.unheard({}, {EDIT: BEFORE}) == {EDIT}
    hear(hearing)
    assert hearing.unheard({EDIT: BEFORE}, {EDIT: now_listed}) == ({EDIT} if looked_at else set())


@pytest.mark.parametrize(
    ("now_listed", "hear", "looked_at"),
    [
        (BEFORE, lambda _hearing: None, False),
        (with_(p="2", new="1"), lambda _hearing: None, False),
        (with_(p=""), lambda _hearing: None, True),
        (with_(p=""), lambda hearing: hearing.heard_gone("p"), False),
    ],
)
def test_after_the_watches_began_what_vanished_unheard_is_looked_at_once(
    now_listed: frozenset[tuple[str, str]], hear: Callable[[Hearing], None], looked_at: bool
) -> None:
    """What changed, or is new, they tell themselves."""
    hearing = Hearing()
    hear(hearing)
    assert hearing.vanished({EDIT: BEFORE}, {EDIT: now_listed}) == ({EDIT} if looked_at else set())
    assert hearing.vanished({EDIT: BEFORE}, {EDIT: now_listed}) == set()


def test_what_vanished_before_the_watches_began_is_not_looked_at_after_the_next_list_again() -> None:
    hearing = Hearing()
    hearing.vanished({EDIT: BEFORE}, {EDIT: with_(p="")})
    assert hearing.unheard({EDIT: BEFORE}, {EDIT: with_(p="")}) == set()


def test_what_was_heard_of_is_forgotten_with_its_object() -> None:
    hearing = Hearing()
    hearing.heard("p", "2")
    hearing.unheard({}, {EDIT: frozenset({("r", "1")})})
    assert hearing.unheard({EDIT: frozenset({("r", "1")})}, {EDIT: frozenset({("r", "1"), ("p", "2")})}) == {EDIT}


def ended_at(hearing: Hearing, *, told_s: float = 1e9, look: Callable[[Key], None] = lambda _key: None) -> float | None:
    """When a run of the watches is ended for its deafness, None when it lasts until it is stopped."""

    async def main() -> float | None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.call_later(told_s, lambda: hearing.told(EDIT, "8"))
        loop.call_later(500.0, stop.set)

        async def run(stopping: asyncio.Event) -> None:
            await stopping.wait()

        try:
            await unless_deaf(run, hearing, stop, stopwatch=now, look=look)
        except WatchEnded:
            return now()
        return None

    return run_virtual(main)


def test_a_run_that_is_deaf_is_ended_so_that_the_next_one_lists() -> None:
    hearing = Hearing()
    hearing.listed({EDIT: "8"}, 0.0)
    ended_s = ended_at(hearing)
    assert ended_s is not None
    assert DEAF_S <= ended_s <= DEAF_S + 10.0


def test_a_run_that_hears_late_lives_on() -> None:
    hearing = Hearing()
    hearing.listed({EDIT: "8"}, 0.0)
    assert ended_at(hearing, told_s=30.0) is None


def test_a_new_run_gets_time_to_list_before_it_is_judged() -> None:
    hearing = Hearing()
    hearing.listed({EDIT: "8"}, -1000.0)
    assert ended_at(hearing, told_s=30.0) is None


def test_a_resource_that_went_before_the_watch_began_makes_no_run_deaf() -> None:
    """No event will ever tell of it; a look finds that there is none."""
    hearing, looks = Hearing(), list[Key]()
    hearing.listed({EDIT: "8"}, 0.0)

    def look(key: Key) -> None:
        looks.append(key)
        hearing.no_resource(key)

    assert ended_at(hearing, look=look) is None
    assert looks == [EDIT]


def test_what_a_deaf_run_owes_is_looked_at_once() -> None:
    hearing, looks = Hearing(), list[Key]()
    hearing.listed({EDIT: "8"}, 0.0)
    assert ended_at(hearing, look=looks.append) is not None
    assert looks == [EDIT]
