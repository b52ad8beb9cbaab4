"""Rollouts to pods that no node takes, whatever leaves: nothing may be drained for them."""

from __future__ import annotations

import pytest

from unit.operator_core.builders import manifest
from unit.operator_core.cluster_model import Cluster


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
