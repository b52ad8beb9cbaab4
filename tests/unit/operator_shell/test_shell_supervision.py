"""The watches are started anew with growing pauses, and the resync finds what they missed."""

from __future__ import annotations

import asyncio

import pytest

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.supervision import MOST_FAILURES, WatchesLost, resync, supervise
from imageedit_operator.watching import WatchEnded
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import MemoryKube, cluster, custom_resource
from unit.operator_shell.virtual_time import now, run_virtual


def starts_of(runs_s: list[float], *, stop_after_s: float = 1e6) -> tuple[list[float], int]:
    """When each run began, and the restarts; the runs end by themselves after these seconds, the last stays."""

    async def main() -> tuple[list[float], int]:
        stop, starts, restarts = asyncio.Event(), list[float](), list[float]()
        left = iter(runs_s)

        async def run(stopping: asyncio.Event) -> None:
            starts.append(now())
            length_s = next(left, None)
            if length_s is None:
                await stopping.wait()
                return
            await asyncio.sleep(length_s)
            raise WatchEnded("410")

        asyncio.get_running_loop().call_later(stop_after_s, stop.set)
        await supervise(run, stop, stopwatch=now, on_restart=lambda: restarts.append(now()))
        return starts, len(restarts)

    return run_virtual(main)


def test_a_run_that_ends_is_started_again_with_growing_pauses() -> None:
    assert starts_of([0, 0, 0, 0, 0, 0]) == ([0, 1, 3, 7, 15, 31, 61], 6)


def test_a_good_run_makes_the_next_pause_short_again() -> None:
    assert starts_of([0, 0, 400, 0]) == ([0, 1, 3, 404, 406], 4)


def test_runs_that_cannot_be_kept_up_end_the_supervision() -> None:
    with pytest.raises(WatchesLost, match="10 runs in a row"):
        starts_of([0.0] * (MOST_FAILURES + 5))


def test_a_stop_in_a_pause_ends_it_at_once() -> None:
    assert starts_of([0, 0, 0], stop_after_s=2.0) == ([0, 1], 2)


def resynced(kube: MemoryKube, *, known: set[Key] | None = None, for_s: float = 250.0) -> list[tuple[float, object]]:
    """What a resync of 100 s does, with its times: keys, and None for a completed list."""

    async def main() -> list[tuple[float, object]]:
        stop, log = asyncio.Event(), list[tuple[float, object]]()
        asyncio.get_running_loop().call_later(for_s, stop.set)
        await resync(
            kube,
            ("team",),
            stop,
            period_s=100.0,
            random=lambda: 0.5,
            known=lambda: known or set(),
            on_key=lambda key: log.append((now(), key)),
            on_complete=lambda _listed: log.append((now(), None)),
            on_missing=lambda: log.append((now(), "missing")),
        )
        return log

    return run_virtual(main)


EDIT = Key("team", "edit")


def test_every_resource_is_added_each_period() -> None:
    log = resynced(cluster((IMAGE_EDIT_DEPLOYMENTS, custom_resource())))
    assert log == [(0, EDIT), (0, None), (100, EDIT), (100, None), (200, EDIT), (200, None)]


def test_a_resource_that_vanished_unseen_is_looked_at_once_more() -> None:
    log = resynced(MemoryKube(), known={Key("team", "ghost")}, for_s=50.0)
    assert log == [(0, Key("team", "ghost")), (0, None)]


def test_a_list_that_fails_is_repeated_at_the_servers_pace_and_is_no_progress() -> None:
    kube = MemoryKube(refuse={"list": ApiError(status=429, reason="R", message="m", retry_after_s=20.0)})
    assert resynced(kube, for_s=50.0) == []
    assert len(kube.calls) == 3  # at 0, 20 and 40 s


def test_a_list_of_a_kind_that_is_not_served_tells_so_and_looks_at_what_was_known() -> None:
    kube = MemoryKube(refuse={"list": ApiError(status=404, reason="NotFound", message="m")})
    assert resynced(kube, known={EDIT}, for_s=7.0) == [(0, "missing"), (0, EDIT), (5, "missing"), (5, EDIT)]


def test_what_could_not_be_kept_up_is_forgiven() -> None:
    """A run that ended because the kind was gone is no failure, however often that happens."""

    async def main() -> int:
        stop, runs = asyncio.Event(), 0

        async def run(_: asyncio.Event) -> None:
            nonlocal runs
            runs += 1
            if runs > 2 * MOST_FAILURES:
                stop.set()
            raise WatchEnded("404")

        async def ready(_: asyncio.Event) -> bool:
            return True

        await supervise(run, stop, stopwatch=now, on_restart=lambda: None, ready=ready)
        return runs

    assert run_virtual(main) == 2 * MOST_FAILURES + 1
