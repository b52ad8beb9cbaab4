"""The observer itself: each invariant that is broken by hand is told, so that none can hold by blindness."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from apiserver.operator_plane import eventually, new_namespace, pod
from faults.clients import editing
from faults.invariants import (
    LOOK_S,
    NEVER_CROWDED,
    NEVER_LOST,
    NEVER_OPEN,
    NEVER_SHARED,
    NEVER_ZERO,
    Observer,
    observed,
)
from faults.node import REVISION, Node, node
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS
from imageedit_operator.kube.parsing import WARM_GATE

pytestmark = pytest.mark.usefixtures("plane")


Act = Callable[[Node, Observer], Awaitable[None]]


async def told_of(kube: KubeClient, act: Act) -> str:
    """What the observer complains of after this, on a node with one card, with clients and without an operator."""
    with pytest.raises(AssertionError) as caught:
        await _play(kube, act)
    return str(caught.value)


async def _play(kube: KubeClient, act: Act) -> None:
    async with (
        node(kube, await new_namespace(kube), cards=1) as played,
        observed(played, replicas=1) as observer,
        editing(played, observer),
    ):
        await act(played, observer)


async def add(played: Node, name: str) -> str:
    """A pod that waits for the card; its uid."""
    made = await played.kube.create(PODS, played.namespace, pod(name, labels={REVISION: "one"}))
    return str(made["metadata"]["uid"])


async def becomes(check: Callable[[], bool], what: str) -> None:
    """Waits until it holds."""

    async def look() -> bool | None:
        return check() or None

    await eventually(look, what=what)


async def works(played: Node, uid: str) -> None:
    """Waits until its processes hold the card."""
    await becomes(lambda: uid in played.at_work(next(iter(played.cards))), "a pod on the card")


async def serving_pod(played: Node, observer: Observer) -> str:
    """A pod with an edit on it, and seen by the observer."""
    uid = await add(played, "first")
    await works(played, uid)
    gate = {"type": WARM_GATE, "status": "True", "lastTransitionTime": "2026-11-30T03:00:00Z"}
    body = {"status": {"conditions": [gate]}}
    await played.kube.patch(PODS, played.namespace, "first", body, strategic=True, subresource="status")
    await becomes(lambda: observer.serving and played.servers[uid].running > 0, "an edit on it")
    return uid


async def test_a_pod_that_is_deleted_by_force_shares_its_card_with_the_next(kube: KubeClient) -> None:
    async def act(played: Node, _: Observer) -> None:
        first = await add(played, "first")
        await works(played, first)
        await played.force_away("first", first)
        second = await add(played, "second")
        await works(played, second)
        await asyncio.sleep(2 * LOOK_S)

    assert NEVER_SHARED in await told_of(kube, act)


async def test_a_pod_that_is_deleted_while_it_serves_loses_edits_and_leaves_none(kube: KubeClient) -> None:
    async def act(played: Node, observer: Observer) -> None:
        uid = await serving_pod(played, observer)
        await kube.delete(PODS, played.namespace, "first", uid=uid)
        await becomes(lambda: uid in played.ended and not played.servers[uid].running, "the end of its edits")

    told = await told_of(kube, act)
    assert NEVER_ZERO in told
    assert NEVER_LOST in told


async def test_a_pod_that_goes_with_its_gate_open_is_told(kube: KubeClient) -> None:
    async def act(played: Node, observer: Observer) -> None:
        uid = await serving_pod(played, observer)
        await played.lose(next(iter(played.cards)))  # so that it stays while it goes
        await kube.delete(PODS, played.namespace, "first", uid=uid)
        await becomes(lambda: any(NEVER_OPEN in line for line in observer.broken), "a broken promise")

    assert NEVER_OPEN in await told_of(kube, act)


async def test_pods_that_no_card_is_for_are_too_many(kube: KubeClient) -> None:
    async def act(played: Node, observer: Observer) -> None:
        for name in ("first", "second", "third"):
            await add(played, name)
        await becomes(lambda: bool(observer.broken), "a broken promise")

    assert NEVER_CROWDED in await told_of(kube, act)
