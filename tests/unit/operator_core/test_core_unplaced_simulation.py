"""Rollouts to pods that no node takes, whatever leaves: nothing may be drained for them."""

from __future__ import annotations

import pytest

from unit.operator_core.builders import manifest
from unit.operator_core.cluster_model import Cluster

DEADLINE_TICKS = 320
"""Ten minutes and three warm-ups, and a few ticks."""


def rolled(behaviour: str, *, replicas: int, cards: int, strategy: str = "Auto", cards_known: bool = True) -> Cluster:
    """A cluster at rest whose spec comes to name pods that no node takes."""
    spec = manifest(replicas=replicas, rollout={"strategy": strategy})
    model = Cluster(manifest=spec, cards=cards, cards_known=cards_known, behaviour={"b": behaviour})
    model.settle()
    model.roll_to("b")
    return model


@pytest.mark.parametrize("behaviour", ["claim", "labels"])
@pytest.mark.parametrize("cards_known", [True, False])
@pytest.mark.parametrize(("replicas", "cards"), [(1, 1), (2, 2), (1, 2)])
def test_no_old_pod_drains_for_one_that_its_place_would_not_help(
    behaviour: str, cards_known: bool, replicas: int, cards: int
) -> None:
    model = rolled(behaviour, replicas=replicas, cards=cards, cards_known=cards_known)
    for _ in range(200):
        model.tick()
        assert len(model.serving) == replicas


def test_a_claim_that_is_not_there_is_told_as_a_fault_of_the_volume_and_not_of_a_card() -> None:
    model = rolled("claim", replicas=1, cards=1)
    model.run(10)
    said = model.condition("Progressing")
    assert (said["status"], said["reason"]) == ("True", "VolumeNotReady")
    assert 'the scheduler says: persistentvolumeclaim "models" not found; kubectl get pvc' in said["message"]
    assert model.condition("Ready")["reason"] == "VolumeNotReady"
    assert (model.condition("WaitingForCard")["status"], model.condition("WaitingForCard")["reason"]) == (
        "False",
        "VolumeNotReady",
    )


def test_pods_that_no_node_is_for_are_told_in_the_schedulers_words() -> None:
    model = rolled("labels", replicas=1, cards=1)
    model.run(10)
    assert model.condition("Ready")["reason"] == "Unschedulable"
    assert "didn't match Pod's node affinity" in model.condition("Ready")["message"]
    assert model.condition("WaitingForCard")["status"] == "False"


def test_a_revision_whose_claim_does_not_come_within_the_deadline_is_given_up() -> None:
    model = rolled("claim", replicas=1, cards=1)
    model.run(DEADLINE_TICKS)
    assert model.condition("Degraded")["reason"] == "VolumeNotReady"
    model.run(120)
    assert model.status["failure"]["reason"] == "VolumeNotReady"
    assert model.condition("Progressing")["reason"] == "RolledBack"
    assert len(model.serving) == 1


def test_a_first_start_without_its_claim_waits_for_it_and_then_serves() -> None:
    model = Cluster(manifest=manifest(replicas=1), cards=1)
    model.behaviour[model.hash] = "claim"
    model.run(10)
    assert model.condition("Available")["reason"] == "VolumeNotReady"
    model.behaviour.clear()
    model.settle()
    assert model.condition("Ready")["status"] == "True"
