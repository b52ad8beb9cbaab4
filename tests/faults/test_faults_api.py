"""An apiserver that refuses, slows down or forgets who we are in the middle of a rollout: it ends all the same."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.operator_faults import WRITES, Refusal
from apiserver.operator_plane import eventually
from apiserver.operator_process import behind_proxy
from faults.scene import scene
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import EVENTS
from imageedit_operator.wake_ups import WATCHED
from localcluster.controlplane import ControlPlane

Rule = Callable[[str, str], Refusal | None]


def first(count: int, refusal: Refusal, *, only_writes: bool) -> Rule:
    """The first requests are refused, the others are not."""
    left = count

    def rule(method: str, _path: str) -> Refusal | None:
        nonlocal left
        if left <= 0 or (only_writes and method not in WRITES):
            return None
        left -= 1
        return refusal

    return rule


def one_in(number: int, refusal: Refusal) -> Rule:
    """One request in n is refused, by chance: every n-th would be the same step of each pass, where its length fits."""
    chance = random.Random(number)

    def rule(_method: str, _path: str) -> Refusal | None:
        return refusal if chance.randrange(number) == 0 else None

    return rule


def every_third_read(refusal: Refusal) -> Rule:
    """As behind a load balancer before three apiservers, one of which is sick: no pass would come through."""
    reads = itertools.count(1)

    def rule(method: str, _path: str) -> Refusal | None:
        return refusal if method == "GET" and next(reads) % 3 == 0 else None

    return rule


FAULTS: dict[str, Callable[[], Rule]] = {
    "409 for the first writes": lambda: first(6, Refusal(status=409), only_writes=True),
    "409 now and then": lambda: one_in(7, Refusal(status=409)),
    "429 with Retry-After": lambda: first(5, Refusal(status=429, headers={"Retry-After": "2"}), only_writes=False),
    "500 in bursts": lambda: first(12, Refusal(status=500), only_writes=False),
    "500 now and then": lambda: one_in(5, Refusal(status=500)),
    "503 for every third read": lambda: every_third_read(Refusal(status=503)),
    "answers that take 30 s": lambda: first(6, Refusal(delay_s=30.0), only_writes=False),
    "an expired token": lambda: first(8, Refusal(status=401), only_writes=False),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_rollout_ends_although_requests_fail(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path, fault: str
) -> None:
    flags = ("--request-timeout", "2", "--reconcile-timeout", "20")
    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags(*flags)) as (proxy, running):
        await stage.create()
        await stage.complete()
        proxy.rule = FAULTS[fault]()
        await stage.roll("next")
        await stage.complete()
        assert proxy.refused > 0
        assert running.process.returncode is None, running.messages()


async def test_a_verb_that_is_forbidden_is_told_and_the_rollout_goes_on_when_it_is_granted(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    def no_gates(method: str, path: str) -> Refusal | None:
        forbidden = method == "PATCH" and "/pods/" in path and path.endswith("/status")
        return Refusal(status=403, message="pods/status: forbidden by the test") if forbidden else None

    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags()) as (proxy, _):
        await stage.create()
        await stage.complete()
        proxy.rule = no_gates
        await stage.roll("next")

        async def told() -> bool | None:
            notes = [item.get("note", "") for item in await kube.list_all(EVENTS, stage.namespace)]
            return True if any("forbidden by the test" in note for note in notes) else None

        await eventually(told, what="an Event about the refusal")
        proxy.rule = lambda _method, _path: None
        await stage.complete()


async def test_a_watch_that_is_refused_as_unauthorized_logs_in_again(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    async with scene(kube) as stage, behind_proxy(plane, tmp_path, *stage.flags()) as (proxy, running):
        await stage.create()
        await stage.complete()
        proxy.refuse_watches = 401
        proxy.inject({"type": "BOOKMARK", "object": {"metadata": {}}})
        await asyncio.sleep(3)
        proxy.refuse_watches = 0

        async def open_again() -> bool | None:
            return True if proxy.open_watches() == len(WATCHED) else None

        await eventually(open_again, what="open watches")
        await stage.roll("next")
        await stage.complete()
        assert running.process.returncode is None, running.messages()
