"""The watches are started anew with growing pauses, and the resync finds what they missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import pytest

from imageedit_operator.errors import ApiError
from imageedit_operator.hearing import Hearing
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.first_look import FirstLook
from imageedit_operator.kube.kept import nothing_kept
from imageedit_operator.kube.kinds import (
    BUDGETS,
    CLAIM_TEMPLATES,
    DEPLOYMENTS,
    IMAGE_EDIT_DEPLOYMENTS,
    JOBS,
    PODS,
    SERVICES,
    Resource,
)
from imageedit_operator.supervision import MOST_FAILURES, WatchesLost, resync, supervise
from imageedit_operator.watching import WatchEnded
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import MemoryKube, cluster, custom_resource, deployment, pod
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


async def resync_for(
    seconds: float,
    kube: MemoryKube,
    *,
    namespaces: tuple[str, ...] = (),
    known: Callable[[], set[Key]] = set,
    on_key: Callable[[Key], None] = lambda _key: None,
    on_complete: Callable[[object], None] = lambda _listed: None,
    on_missing: Callable[[], None] = lambda: None,
    first: FirstLook | None = None,
    begin_at_s: tuple[float, ...] = (),
) -> None:
    """A resync of 100 s, at work for so long; the watches begin at these times."""
    stop, began = asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, stop.set)
    for at_s in begin_at_s:
        asyncio.get_running_loop().call_later(at_s, began.set)
    await resync(
        kube,
        namespaces,
        stop,
        period_s=100.0,
        random=lambda: 0.5,
        known=known,
        unheard=Hearing().unheard,
        on_key=on_key,
        on_complete=on_complete,
        on_missing=on_missing,
        first=first,
        began=began,
    )


def resynced(kube: MemoryKube, *, known: set[Key] | None = None, for_s: float = 250.0) -> list[tuple[float, object]]:
    """What a resync of 100 s does, with its times: keys, and None for a completed list."""

    async def main() -> list[tuple[float, object]]:
        log = list[tuple[float, object]]()
        await resync_for(
            for_s,
            kube,
            namespaces=("team",),
            known=lambda: known or set(),
            on_key=lambda key: log.append((now(), key)),
            on_complete=lambda _listed: log.append((now(), None)),
            on_missing=lambda: log.append((now(), "missing")),
        )
        return log

    return run_virtual(main)


EDIT = Key("team", "edit")


def test_the_first_list_adds_every_resource_and_later_ones_none_that_is_as_it_was() -> None:
    log = resynced(cluster((IMAGE_EDIT_DEPLOYMENTS, custom_resource())))
    assert log == [(0, EDIT), (0, None), (100, None), (200, None)]


def child(uid: str) -> Manifest:
    """An object of the resource."""
    labels = {"imageedit.dev/deployment": "edit"}
    return {"metadata": {"name": "edit", "namespace": "team", "uid": uid, "labels": labels}}


def of_others(**metadata: object) -> Manifest:
    """A budget that nobody of us wrote."""
    return {"metadata": {"name": "theirs", "namespace": "team", "uid": "x", "generation": 1, **metadata}}


FAMILY = (
    (IMAGE_EDIT_DEPLOYMENTS, custom_resource()),
    (DEPLOYMENTS, deployment()),
    (PODS, pod()),
    (SERVICES, child("s")),
    (JOBS, child("j")),
    (CLAIM_TEMPLATES, child("c")),
    (BUDGETS, child("b")),
)


def at_another_version(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "99"}}


Family: TypeAlias = tuple[tuple[Resource, Manifest], ...]


def added_after(change: Callable[[MemoryKube], object], family: Family = FAMILY) -> list[tuple[float, object]]:
    """The keys that a resync adds after a change between its first two lists."""
    kube = cluster(*family)

    async def main() -> list[tuple[float, object]]:
        log = list[tuple[float, object]]()
        asyncio.get_running_loop().call_later(50.0, change, kube)
        await resync_for(250.0, kube, on_key=lambda key: log.append((now(), key)))
        return log

    return run_virtual(main)


@pytest.mark.parametrize(("resource", "manifest"), FAMILY)
def test_a_resource_is_added_when_it_or_a_child_changed_or_went_unseen(resource: Resource, manifest: Manifest) -> None:
    assert added_after(lambda kube: kube.put(resource, at_another_version(manifest))) == [(0, EDIT), (100, EDIT)]
    if resource != IMAGE_EDIT_DEPLOYMENTS:
        name = manifest["metadata"]["name"]
        assert added_after(lambda kube: kube.objects.pop((resource, "team", name))) == [(0, EDIT), (100, EDIT)]


@pytest.mark.parametrize(
    "kind", ["deployments", "pods", "services", "jobs", "resourceclaimtemplates", "poddisruptionbudgets"]
)
def test_every_resource_is_added_while_not_all_children_can_be_listed(kind: str) -> None:
    error = ApiError(status=500, reason="InternalError", message="etcd")
    log = resynced(MemoryKube(objects=cluster(*FAMILY).objects, refuse={f"list {kind}": error}))
    assert log == [(0, EDIT), (0, None), (100, EDIT), (100, None), (200, EDIT), (200, None)]


@pytest.mark.parametrize(
    ("begin_at_s", "lists_at_s"),
    [
        ((), [0, 100, 200]),
        ((1.0,), [0, 11, 100, 200]),
        ((1.0, 3.0), [0, 11, 21, 100, 200]),
        ((1.0, 12.0), [0, 11, 22, 100, 200]),
        ((95.0,), [0, 100, 200]),
        ((150.0,), [0, 100, 160, 200]),
    ],
)
def test_soon_after_the_watches_began_a_list_finds_what_went_before(
    begin_at_s: tuple[float, ...], lists_at_s: list[float]
) -> None:
    async def main() -> list[float]:
        times = list[float]()
        await resync_for(250.0, MemoryKube(), on_complete=lambda _: times.append(now()), begin_at_s=begin_at_s)
        return times

    assert run_virtual(main) == lists_at_s


def shown_by_lists(kube: MemoryKube) -> list[bool]:
    """After each of two lists, whether a first look could be made with what it showed."""

    async def main() -> list[bool]:
        first, seen = FirstLook(clock=now, kept=nothing_kept()), list[bool]()
        await resync_for(
            150.0, kube, on_complete=lambda _listed: seen.append(first.take(EDIT) is not None), first=first
        )
        return seen

    return run_virtual(main)


def test_the_first_list_alone_shows_the_objects_for_first_looks() -> None:
    assert shown_by_lists(cluster(*FAMILY)) == [True, False]


@pytest.mark.parametrize("kind", ["deployments", "pods", "services", "poddisruptionbudgets"])
def test_a_first_list_that_is_not_whole_shows_nothing(kind: str) -> None:
    error = ApiError(status=500, reason="InternalError", message="etcd")
    kube = MemoryKube(objects=cluster(*FAMILY).objects, refuse={f"list {kind}": error})
    assert shown_by_lists(kube) == [False, False]


def test_where_claims_are_not_served_nothing_is_looked_at_for_them() -> None:
    error = ApiError(status=404, reason="NotFound", message="no such kind")
    refuse = {"list resourceclaimtemplates": error}
    log = resynced(MemoryKube(objects=cluster(*FAMILY).objects, refuse=refuse))
    assert log == [(0, EDIT), (0, None), (100, None), (200, None)]


@pytest.mark.parametrize(
    ("change", "added"),
    [
        (of_others(), []),
        (of_others(resourceVersion="9"), []),
        (of_others(generation=2), [(100, EDIT)]),
        (of_others(uid="y"), [(100, EDIT)]),
        (of_others(name="more", uid="y"), [(100, EDIT)]),
        (of_others(name="more", namespace="elsewhere"), []),
    ],
)
def test_a_budget_of_others_adds_the_resources_of_its_namespace(
    change: Manifest, added: list[tuple[float, object]]
) -> None:
    family = (*FAMILY, (BUDGETS, of_others()))
    assert added_after(lambda kube: kube.put(BUDGETS, change), family) == [(0, EDIT), *added]


def test_a_budget_of_others_that_goes_adds_the_resources_of_its_namespace() -> None:
    family = (*FAMILY, (BUDGETS, of_others()))
    gone = added_after(lambda kube: kube.objects.pop((BUDGETS, "team", "theirs")), family)
    assert gone == [(0, EDIT), (100, EDIT)]


def test_a_stranger_between_two_lists_adds_nothing() -> None:
    other = {"metadata": {"name": "x", "namespace": "team", "uid": "x", "labels": {"app": "x"}}}
    assert added_after(lambda kube: kube.put(PODS, other)) == [(0, EDIT)]


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
