"""The card ledger counts what can be had, and says so when it cannot know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.offer import Offer
from imageedit_operator.core.tolerations import Place
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.cards import COST_FACTOR, FRESH_S, CardBook
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import NODES, Resource
from imageedit_operator.kube.node_cards import NodeCards, ledger, repelling_taints, usable_node
from imageedit_operator.kube.quantities import extended, requested_by
from unit.operator_shell.builders import CARD, MemoryKube, holder, node, with_cards

PLACE = Place(tolerations=({"key": CARD, "operator": "Exists", "effect": "NoSchedule"},))
LIST_S = 0.5
FORBIDDEN = ApiError(status=403, reason="Forbidden", message="nodes is forbidden")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def read(kube: MemoryKube, *, count: int = 1) -> Known[CardLedger] | Unknown:
    """One question to a fresh book."""
    return await CardBook(kube, clock=Clock()).read(resource=CARD, count=count, place=PLACE)


async def counted(*objects: Manifest, count: int = 1) -> tuple[int, int]:
    """Allocatable and free cards."""
    answer = await read(with_cards(*objects), count=count)
    assert isinstance(answer, Known)
    return answer.value.allocatable, answer.value.free


async def test_free_cards_are_those_that_no_pod_on_the_node_holds() -> None:
    assert await counted(node(cards=4), holder("node-1"), node("node-2", cards=1)) == (5, 4)


async def test_a_terminating_pod_still_holds_its_card() -> None:
    leaving = holder("node-1")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T03:00:00Z"
    assert await counted(node(cards=1), leaving) == (1, 0)


@pytest.mark.parametrize(
    "unusable",
    [
        node(cards=2, unschedulable=True),
        node(cards=2, ready="False"),
        node(cards=2, ready="Unknown"),
        node(cards=2, taints=[{"key": "broken", "effect": "NoSchedule"}]),
        node(cards=2, taints=[{"key": CARD, "effect": "NoExecute"}]),
    ],
)
async def test_a_node_that_takes_no_new_pod_has_no_cards(unusable: Manifest) -> None:
    assert await counted(unusable, holder("node-1")) == (0, 0)


@pytest.mark.parametrize(
    "taint", [{"key": CARD, "effect": "NoSchedule"}, {"key": "slow", "effect": "PreferNoSchedule"}]
)
async def test_a_taint_that_our_pods_bear_costs_nothing(taint: dict[str, str]) -> None:
    assert await counted(node(cards=2, taints=[taint])) == (2, 2)


async def test_only_nodes_that_the_selector_picks_count() -> None:
    picked = node("a", cards=2)
    picked["metadata"]["labels"] = {"chip": "910B3"}
    place = Place(node_selector={"chip": "910B3"})
    answer = await CardBook(with_cards(picked, node("b", cards=4)), clock=Clock()).read(
        resource=CARD, count=1, place=place
    )
    assert isinstance(answer, Known)
    assert (answer.value.allocatable, answer.value.free) == (2, 2)


async def test_nodes_with_cards_that_take_no_pods_are_told_by_what_keeps_pods_away() -> None:
    chosen = {"chip": "910B3"}
    nodes = [node("a", cards=2), *(node(name, cards=2, **more) for name, more in CLOSED.items()), node("few", cards=1)]
    for made in nodes[1:]:
        made["metadata"]["labels"] = chosen
    book, place = CardBook(with_cards(*nodes), clock=Clock()), Place(node_selector=chosen)
    two, one = [await book.read(resource=CARD, count=count, place=place) for count in (2, 1)]
    assert isinstance(two, Known)
    assert isinstance(one, Known)
    assert two.value.offer == Offer(nodes=4, unlabelled=1, closed=2, repelled=1, taints=("team: lab",))
    assert one.value.offer is None


CLOSED: dict[str, Any] = {
    "b": {"unschedulable": True},
    "c": {"ready": "False"},
    "d": {"taints": [{"key": "team", "value": "lab", "effect": "NoSchedule"}]},
}


async def test_cards_of_another_kind_do_not_count() -> None:
    assert await counted(node(cards=1), holder("node-1", resource="nvidia.com/gpu")) == (1, 1)


async def test_a_rest_that_is_too_small_for_a_pod_is_not_free() -> None:
    assert await counted(node("a", cards=3), node("b", cards=1), count=2) == (4, 2)


async def test_a_pod_on_a_vanished_node_takes_nothing_away() -> None:
    assert await counted(node(cards=1), holder("gone", cards=5)) == (1, 1)


async def test_a_cluster_without_cards_is_known_to_have_none() -> None:
    assert await counted() == (0, 0)


async def test_a_refused_list_is_unknown_and_names_the_right() -> None:
    answer = await read(MemoryKube(refuse={"list nodes": FORBIDDEN}))
    assert isinstance(answer, Unknown)
    assert answer.reason == "Forbidden"
    assert "grant the operator list on nodes" in answer.message


async def test_a_silent_apiserver_is_unknown() -> None:
    answer = await read(MemoryKube(refuse={"list": ApiError(status=0, reason="Unreachable", message="no answer")}))
    assert isinstance(answer, Unknown)
    assert answer.reason == "ApiError"


async def test_one_snapshot_serves_every_resource_for_some_seconds() -> None:
    clock, kube = Clock(), with_cards(node(cards=2))
    book = CardBook(kube, clock=clock)
    await book.read(resource=CARD, count=1)
    clock.now += FRESH_S - 0.1
    answer = await book.read(resource=CARD, count=1)
    assert isinstance(answer, Known)
    assert answer.age_s == pytest.approx(FRESH_S - 0.1)
    assert kube.calls.count(("list", "nodes", "")) == 1
    clock.now += 0.2
    await book.read(resource=CARD, count=1)
    assert kube.calls.count(("list", "nodes", "")) == 2


def waiting(deployment: str, cards: int = 1) -> Manifest:
    """A server pod without a node."""
    pod = holder("", cards)
    del pod["spec"]["nodeName"]
    labels = {"imageedit.dev/deployment": deployment}
    return {**pod, "metadata": {"namespace": "team", "name": f"{deployment}-pod", "labels": labels}}


async def test_cards_that_other_resources_wait_for_are_claimed() -> None:
    leaving = waiting("gone")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T03:00:00Z"
    kube = with_cards(node(cards=4), waiting("edit"), waiting("other", cards=2), leaving)
    answer = await CardBook(kube, clock=Clock()).read(resource=CARD, count=1, asker=("team", "edit"))
    assert isinstance(answer, Known)
    assert (answer.value.free, answer.value.claimed) == (4, 2)


async def test_a_pod_whose_claim_is_not_there_takes_no_card_from_others() -> None:
    stuck = waiting("other", cards=2)
    words = '0/1 nodes are available: persistentvolumeclaim "models" not found.'
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    stuck["status"]["conditions"] = [unplaced]
    answer = await CardBook(with_cards(node(cards=4), stuck), clock=Clock()).read(resource=CARD, count=1)
    assert isinstance(answer, Known)
    assert (answer.value.free, answer.value.claimed) == (4, 0)


async def test_who_else_holds_the_cards_is_named_once() -> None:
    def of(pod: Manifest, name: str, **labels: str) -> Manifest:
        return {**pod, "metadata": {"namespace": "team", "name": name, "labels": labels}}

    owned = {"imageedit.dev/deployment": "first"}
    kube = with_cards(
        node(cards=4),
        of(holder("node-1"), "first-a", **owned),
        of(holder("node-1"), "first-b", **owned),
        of(holder("node-1"), "edit-a", **{"imageedit.dev/deployment": "edit"}),
        of(holder("node-1"), "stranger"),
        of(holder("elsewhere"), "far"),
    )
    answer = await CardBook(kube, clock=Clock()).read(resource=CARD, count=1, asker=("team", "edit"))
    assert isinstance(answer, Known)
    assert answer.value.holders == ("ImageEditDeployment team/first", "pod team/stranger")


async def test_nodes_that_are_ready_are_known_with_cards_or_without() -> None:
    answer = await read(with_cards(node(cards=1), node("node-2", cards=0), node("node-3", cards=1, ready="Unknown")))
    assert isinstance(answer, Known)
    assert answer.value.ready_nodes == frozenset({"node-1", "node-2"})


async def test_a_write_that_moves_cards_makes_the_snapshot_old() -> None:
    kube = with_cards(node(cards=2))
    book = CardBook(kube, clock=Clock())
    await book.read(resource=CARD, count=1)
    book.forget()
    await book.read(resource=CARD, count=1)
    assert kube.calls.count(("list", "nodes", "")) == 2


@dataclass(kw_only=True)
class SlowKube(MemoryKube):
    """Takes its time for the nodes."""

    clock: Clock

    async def pages(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", bare: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        self.clock.now += LIST_S if resource == NODES else 0.0
        async for page in super().pages(resource, namespace, labels=labels, fields=fields):
            yield page


async def test_a_thousand_writes_do_not_read_a_large_cluster_a_thousand_times() -> None:
    """Reading it takes half a second, and one resource after the other starts."""
    clock = Clock()
    kube = SlowKube(objects=with_cards(node(cards=2)).objects, clock=clock)
    book = CardBook(kube, clock=clock)
    began_s = clock.now
    for _ in range(1000):
        await book.read(resource=CARD, count=1)
        book.forget()
        clock.now += 0.05
    reading_s = kube.calls.count(("list", "nodes", "")) * LIST_S
    assert LIST_S < reading_s <= (clock.now - began_s) / COST_FACTOR + LIST_S


def container(count: object, **more: Any) -> dict[str, Any]:
    """A container that asks for cards."""
    return {"resources": {"requests": {CARD: str(count), "cpu": "1"}}, **more}


@pytest.mark.parametrize(
    ("spec", "cards"),
    [
        ({}, {}),
        ({"containers": [container(1)]}, {CARD: 1}),
        ({"containers": [container(1), container(2)]}, {CARD: 3}),
        ({"containers": [container(1)], "initContainers": [container(4)]}, {CARD: 4}),
        ({"containers": [container(3)], "initContainers": [container(2)]}, {CARD: 3}),
        ({"containers": [container(1)], "initContainers": [container(1, restartPolicy="Always")]}, {CARD: 2}),
        ({"containers": [{"resources": {"limits": {CARD: "2"}}}]}, {CARD: 2}),
        ({"containers": [{}]}, {}),
    ],
)
def test_a_pod_holds_what_its_containers_need_at_once(spec: dict[str, Any], cards: dict[str, int]) -> None:
    assert requested_by({"spec": spec}) == cards


def test_only_whole_extended_resources_are_cards() -> None:
    quantities = {"cpu": "8", "memory": "1Gi", CARD: "8", "x.io/k": "2k", "x.io/odd": "1.5", "hugepages-2Mi": "0"}
    assert extended(quantities) == {CARD: 8, "x.io/k": 2000}
    assert extended(None) == {}


def test_a_node_without_conditions_is_not_usable() -> None:
    assert usable_node({}) is False
    assert repelling_taints({}) == frozenset()


NODE = st.builds(
    lambda has, asked: NodeCards(allocatable={CARD: has}, requested={CARD: asked}),
    st.integers(0, 16),
    st.integers(0, 20),
)


@given(st.lists(NODE, max_size=8), st.integers(1, 16))
def test_free_cards_are_whole_sets_within_what_is_there(nodes: list[NodeCards], count: int) -> None:
    found = ledger(nodes, resource=CARD, count=count)
    assert 0 <= found.free <= found.allocatable
    assert found.free % count == 0
    assert found.free <= sum(max(0, n.allocatable[CARD] - n.requested[CARD]) for n in nodes)


# --- sick cards


def sick_node(*, cards: int = 4, allocatable: int = 4) -> Manifest:
    made = node(cards=allocatable)
    made["status"]["capacity"] = {CARD: str(cards)}
    return made


def on_card(name: str, card: str) -> Manifest:
    made = holder("node-1")
    made["metadata"] = {"name": name, "annotations": {"huawei.com/AscendReal": card}}
    return made


@dataclass
class Plugin:
    """Names the same cards of node-1 sick at every look."""

    cards: tuple[str, ...]

    async def sick(self, nodes: Collection[str]) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        named = {CARD: dict.fromkeys(self.cards, "fault")}
        return {"node-1": named} if "node-1" in nodes and self.cards else {}


# What the scheduler counts and which healthy cards are left: the smaller one is free.
@pytest.mark.parametrize(
    ("allocatable", "named", "held", "free"),
    [
        (4, (), (), 4),
        (3, (), (), 3),
        (3, ("c0",), (), 3),
        (4, ("c0",), (), 3),
        (4, ("c0",), ("c1",), 2),
        (4, ("c0",), ("c0",), 3),
        (3, ("c0",), ("c0",), 2),
        (4, ("c0", "c1"), ("c0", "c2"), 1),
        (2, ("c0",), ("c2",), 1),
        (0, (), ("c0",), 0),
    ],
)
async def test_sick_cards_are_not_free_whoever_calls_them_sick(
    allocatable: int, named: tuple[str, ...], held: tuple[str, ...], free: int
) -> None:
    pods = [on_card(f"p{number}", card) for number, card in enumerate(held)]
    kube = with_cards(sick_node(allocatable=allocatable), *pods)
    found = await CardBook(kube, clock=Clock(), devices=Plugin(named)).read(resource=CARD, count=1, place=PLACE)
    assert isinstance(found, Known)
    assert found.value.free == free
    assert bool(found.value.sick_nodes) == (allocatable < 4 or bool(named))


async def test_a_node_that_takes_no_pods_is_listed_with_its_sick_cards_but_offers_none() -> None:
    kube = with_cards(node(cards=2, unschedulable=True))
    found = await CardBook(kube, clock=Clock(), devices=Plugin(("c0",))).read(resource=CARD, count=1, place=PLACE)
    assert isinstance(found, Known)
    assert (found.value.free, found.value.sick_nodes["node-1"].free) == (0, 0)


# --- nodes


async def nodes_of(kube: MemoryKube, *, count: int = 1) -> Known[Mapping[str, str]] | Unknown:
    return await CardBook(kube, clock=Clock()).nodes(resource=CARD, count=count, place=PLACE)


async def test_the_nodes_are_those_that_could_run_a_pod_whether_or_not_a_card_is_free() -> None:
    kube = with_cards(
        node("full", cards=1),
        holder("full"),
        node("small", cards=1),
        node("large", cards=2),
        node("gone", ready="False"),
        node("cordoned", unschedulable=True),
        node("foreign", taints=[{"key": "other", "effect": "NoSchedule"}]),
        node("tainted", taints=[{"key": CARD, "effect": "NoSchedule"}]),
    )
    assert await nodes_of(kube) == Known(value={name: f"uid-{name}" for name in ("full", "small", "large", "tainted")})
    large = sick_node(cards=4, allocatable=0)
    assert await nodes_of(with_cards(large), count=2) == Known(value={"node-1": "uid-node-1"})
    assert await nodes_of(kube, count=2) == Known(value={"large": "uid-large", "tainted": "uid-tainted"})


async def test_nodes_that_may_not_be_read_are_unknown() -> None:
    kube = with_cards(node())
    kube.refuse["list nodes"] = FORBIDDEN
    answer = await nodes_of(kube)
    assert isinstance(answer, Unknown)
    assert answer.reason == "Forbidden"
