"""Cards that fall sick under pods: each is left once, where another one is free, and nothing else moves."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from unit.operator_core.cluster_model import Cluster, Pod
from unit.operator_core.simulated import cluster

pytestmark = pytest.mark.timeout(240)


def settled(*, replicas: int = 2, cards: int = 3, told_by: str = "kubelet", kills: bool = False) -> Cluster:
    model = cluster(replicas=replicas, cards=cards, load=True, told_by=told_by, sick_kills=kills)
    model.settle()
    return model


def on(model: Cluster, card: int) -> Pod:
    return next(pod for pod in model.active if pod.card == card)


def events(model: Cluster, reason: str) -> int:
    return [event.reason for event in model.events].count(reason)


@pytest.mark.parametrize("told_by", ["kubelet", "plugin"])
def test_a_pod_on_a_sick_card_is_replaced_before_it_goes_where_a_card_is_free(told_by: str) -> None:
    # With the kubelet's word the scheduler counts the pod on the sick card too: it takes one card more.
    model = settled(cards=4, told_by=told_by)
    model.sick = {0}
    old = on(model, 0)
    for _ in range(60):
        model.tick()
        assert len(model.serving) >= 2
        assert len(model.active) <= 3
    assert old not in model.pods
    assert {pod.card for pod in model.active} & model.sick == set()
    assert (model.status["ready"], model.violations) == ("2/2", [])
    assert model.left_for_sickness == [(old.name, 0)]
    assert events(model, "PodReplaced") == 1
    assert model.condition("Degraded")["reason"] == "NoFault"


def test_without_a_free_card_a_pod_gives_way_to_one_on_another_card_of_its_node() -> None:
    model = settled(replicas=1, cards=2)
    model.sick = {0}
    fewest_pods = 1
    for _ in range(60):
        model.tick()
        assert len(model.active) <= 1
        fewest_pods = min(fewest_pods, len(model.active))
    assert [pod.card for pod in model.serving] == [1]
    assert model.violations == []
    assert len(model.left_for_sickness) == 1


@pytest.mark.parametrize("told_by", ["kubelet", "plugin"])
def test_without_another_card_the_pod_stays_and_degraded_says_why(told_by: str) -> None:
    model = settled(cards=2, told_by=told_by)
    model.sick = {0}
    before = set(map(id, model.active))
    model.run(200)
    assert set(map(id, model.active)) == before
    assert len(model.serving) == 2
    degraded = model.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "DeviceUnhealthy")
    assert "card-0 of node node-1" in degraded["message"]
    assert "no other card is free" in degraded["message"]
    assert model.status["phase"] == "Degraded"
    assert events(model, "DeviceUnhealthy") == 1


def test_a_card_that_comes_free_later_is_used_then() -> None:
    model = settled(cards=2)
    model.sick = {0}
    model.run(100)
    model.cards = 3
    model.run(100)
    assert {pod.card for pod in model.serving} == {1, 2}
    assert model.violations == []


@pytest.mark.parametrize("told_by", ["kubelet", "plugin"])
def test_a_pod_that_cannot_serve_on_its_sick_card_goes_at_once(told_by: str) -> None:
    model = settled(replicas=1, cards=2, told_by=told_by, kills=True)
    model.sick = {0}
    model.run(14)
    assert [pod.card for pod in model.active] == [1]
    model.settle()
    assert model.status["ready"] == "1/1"
    assert len(model.left_for_sickness) == 1


def test_a_card_that_was_sick_for_a_moment_moves_nothing() -> None:
    model = settled()
    for _ in range(10):
        model.sick = {0}
        model.run(5)
        model.sick = set()
        model.run(5)
    assert model.left_for_sickness == []
    assert "sickCards" not in model.status


def test_a_card_that_comes_and_goes_after_its_pod_was_chosen_is_not_left_again_within_a_day() -> None:
    model = settled(cards=4)
    for _ in range(6):
        model.sick = {0}
        model.run(13)
        model.sick = set()
        model.run(13)
    assert model.most_pods <= 3
    assert events(model, "PodReplaced") == 1


def test_a_second_pod_on_the_same_sick_card_is_only_reported() -> None:
    model = settled(replicas=1, cards=2, told_by="plugin")
    model.sick = {0}
    model.run(60)
    assert [pod.card for pod in model.serving] == [1]
    model.delete(model.active[0])
    model.settle()
    second = model.active[0]
    assert second.card == 0  # the kubelet still gives it out
    model.run(300)
    assert model.active == [second]
    assert "moved off this card within a day" in model.condition("Degraded")["message"]
    assert len(model.left_for_sickness) == 1


def test_after_a_day_the_same_card_may_be_left_again() -> None:
    model = settled(replicas=1, cards=2, told_by="plugin")
    model.sick = {0}
    model.run(60)
    model.delete(model.active[0])
    model.settle()
    model.now += 24 * 3600
    model.run(60)
    assert [pod.card for pod in model.serving] == [1]


def test_two_sick_cards_are_left_one_after_the_other() -> None:
    model = settled(replicas=3, cards=8)
    model.sick = {0, 1}
    for _ in range(150):
        model.tick()
        assert len(model.serving) >= 3
        assert len(model.active) <= 4
    assert {pod.card for pod in model.active} & model.sick == set()
    assert sorted(card for _, card in model.left_for_sickness) == [0, 1]


def test_where_nobody_says_whose_card_it_is_no_pod_is_touched() -> None:
    model = settled(replicas=2, cards=2, told_by="nobody")
    before = set(map(id, model.active))
    model.sick = {0}
    model.run(200)
    assert set(map(id, model.active)) == before
    degraded = model.condition("Degraded")
    assert degraded["reason"] == "DeviceUnhealthy"
    assert all(pod.name in degraded["message"] for pod in model.active)


def test_a_plugin_that_restarts_is_no_sickness() -> None:
    model = settled(replicas=2, cards=2, told_by="nobody")
    model.sick = {0, 1}  # the node offers no card at all
    model.run(50)
    assert model.condition("Degraded")["status"] == "False"
    model.sick = set()
    model.settle()
    assert "sickCards" not in model.status


def test_a_rollout_takes_the_pod_on_the_sick_card_first() -> None:
    model = settled(replicas=3, cards=6)
    model.sick = {1}
    sick = on(model, 1)
    model.roll_to("b")
    while not any(pod.gate_reason == "Draining" for pod in model.pods):
        model.tick()
    assert [pod.name for pod in model.pods if pod.gate_reason == "Draining"] == [sick.name]
    model.settle()
    assert model.status["ready"] == "3/3"
    assert model.violations == []


def test_a_new_revision_is_not_given_up_for_the_card_of_its_pod() -> None:
    model = settled(replicas=1, cards=3, told_by="plugin", kills=True)
    model.sick = {1}  # the next that the kubelet gives out
    model.roll_to("b")
    model.settle()
    assert "failedRevision" not in model.status
    assert {pod.hash for pod in model.serving} == {model.hash}
    assert model.violations == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(min_value=0, max_value=10_000),
    replicas=st.integers(min_value=1, max_value=3),
    spare=st.integers(min_value=0, max_value=3),
    told_by=st.sampled_from(["kubelet", "plugin", "nobody"]),
    kills=st.booleans(),
    dies=st.sampled_from([0.0, 0.2]),
    two=st.booleans(),
    lazy=st.booleans(),
    life=st.lists(
        st.tuples(st.sets(st.integers(min_value=0, max_value=5), max_size=2), st.integers(1, 40)), max_size=4
    ),
)
@example(
    seed=0, replicas=3, spare=1, told_by="plugin", kills=False, dies=0.0, two=False, lazy=True,
    life=[(set(), 1), ({0, 2}, 27), ({2}, 12), ({0}, 1)],  # a replacement on card 0 is not needed any more
)  # fmt: skip
def test_each_sickness_moves_one_pod_at_most_and_no_pod_on_a_healthy_card(  # noqa: PLR0917 - what happens
    seed: int,
    replicas: int,
    spare: int,
    told_by: str,
    kills: bool,
    dies: float,
    two: bool,
    lazy: bool,
    life: list[tuple[set[int], int]],
) -> None:
    model = cluster(replicas=replicas, cards=replicas + spare, seed=seed, load=True, told_by=told_by, sick_kills=kills)
    model.settle()
    model.dies, model.two_operators, model.lazy_controllers = dies, two, lazy
    ever: set[int] = set()
    cards: list[int] = []
    for sick, ticks in life:
        model.sick = {card for card in sick if card < model.cards}
        ever |= model.sick
        for _ in range(ticks):
            known = {id(pod): pod.card for pod in model.active}
            draining = {id(pod) for pod in model.active if pod.gate_reason == "Draining"}
            chosen = {case["pod"] for case in model.status.get("sickCards", ())}
            before = len(model.left_for_sickness)
            model.tick()
            assert sum(pod.gate_reason != "Draining" for pod in model.active) <= replicas + 1
            # A replacement that is not needed any more, for the card is well again, leaves too.
            surplus = len(known) > replicas
            cards += [card for name, card in model.left_for_sickness[before:] if name in chosen or not surplus]
            for pod in model.pods:
                begun = pod.gate_reason == "Draining" and id(pod) in known and id(pod) not in draining
                assert not begun or pod.card in ever or surplus, f"{pod.name} was drained on a healthy card"
    assert len(cards) == len(set(cards)), "a card was left twice"
    assert told_by != "nobody" or cards == []
    model.dies, model.two_operators, model.lazy_controllers, model.sick = 0.0, False, False, set()
    model.settle()
    assert model.status["ready"] == f"{replicas}/{replicas}"
    assert model.violations == []
