"""Paused rollouts and canaries, carried out by a model cluster."""

from __future__ import annotations

import pytest

from unit.operator_core.simulated import hashes, settled


def test_a_paused_rollout_starts_nothing_and_scales_what_serves() -> None:
    model, old = settled(cards=6)
    model.change(rollout={"paused": True})
    model.roll_to("b")
    model.settle()
    assert hashes(model) == {old}
    assert model.condition("Progressing")["reason"] == "Paused"
    assert model.condition("RolloutStuck")["status"] == "False"
    model.change(replicas=3)
    model.settle()
    assert (len(model.serving), hashes(model)) == (3, {old})
    model.change(replicas=1)
    model.settle()
    assert (len(model.active), hashes(model)) == (1, {old})
    model.change(rollout={"paused": False})
    model.settle()
    assert model.condition("Ready")["status"] == "True"
    assert hashes(model) == {model.hash}


def test_pausing_in_the_middle_keeps_both_revisions() -> None:
    model, old = settled(replicas=4, cards=5, load=True)
    model.roll_to("b")
    while sum(pod.ready for pod in model.active if pod.hash == model.hash) < 1:
        model.tick()
    model.change(rollout={"paused": True})
    model.settle()
    split = sorted(pod.hash == old for pod in model.active)
    assert 1 <= split.count(False) <= 2
    assert len(model.active) == 4
    model.change(replicas=6)
    model.settle()
    assert len(model.active) == 5 + 1  # one waits for a card
    assert sorted(pod.hash == old for pod in model.active).count(False) == split.count(False)
    model.change(rollout={}, replicas=4)
    model.settle()
    assert hashes(model) == {model.hash}
    assert model.violations == []


def test_a_service_at_zero_that_is_paused_grows_its_last_good_revision() -> None:
    model, old = settled(replicas=1)
    model.change(replicas=0)
    model.settle()
    model.change(rollout={"paused": True})
    model.roll_to("b")
    model.change(replicas=1)
    model.settle()
    assert (len(model.serving), hashes(model)) == (1, {old})


@pytest.mark.parametrize(("replicas", "cards"), [(3, 4), (3, 3), (1, 2)])
def test_a_canary_holds_until_it_is_promoted(replicas: int, cards: int) -> None:
    model, old = settled(replicas=replicas, cards=cards, load=True, rollout={"canary": {"pods": 1}})
    model.roll_to("b")
    model.settle()
    olds = max(1, replicas - 1)
    assert sorted(pod.hash == old for pod in model.serving) == [False] + [True] * olds
    assert model.condition("Progressing")["reason"] == "CanaryHold"
    assert model.condition("Ready")["status"] == "False"
    model.annotate("promoted-revision", model.hash)
    model.settle()
    assert hashes(model) == {model.hash}
    assert model.condition("Ready")["status"] == "True"
    assert model.violations == []


def test_a_canary_with_a_time_goes_on_by_itself() -> None:
    model, old = settled(replicas=3, cards=4, rollout={"canary": {"pods": 2, "hold": "10m"}})
    model.roll_to("b")
    model.run(250)
    assert sorted(pod.hash == old for pod in model.serving) == [False, False, True]
    model.run(150)
    assert hashes(model) == {model.hash}


def test_a_number_that_changes_while_the_canary_holds_changes_the_old_pods() -> None:
    model, old = settled(replicas=3, cards=8, rollout={"canary": {"pods": 1}})
    model.roll_to("b")
    model.settle()
    for replicas, olds in [(5, 4), (2, 1), (1, 1), (4, 3)]:
        model.change(replicas=replicas)
        model.settle()
        assert sorted(pod.hash == old for pod in model.serving) == [False] + [True] * olds


def test_a_bad_canary_is_rolled_back() -> None:
    model, old = settled(replicas=3, cards=4, behaviour={"b": "check"}, rollout={"canary": {"pods": 1}})
    model.roll_to("b")
    model.settle()
    assert hashes(model) == {old}
    assert model.condition("Progressing")["reason"] == "RolledBack"


def test_a_pause_and_a_canary_are_told_once() -> None:
    model, _ = settled(cards=3, rollout={"canary": {"pods": 1}})
    model.roll_to("b")
    model.settle()
    model.change(rollout={"paused": True})
    model.settle()
    assert [(event.type, event.reason) for event in model.events[-2:]] == [
        ("Normal", "CanaryHold"),
        ("Normal", "Paused"),
    ]
