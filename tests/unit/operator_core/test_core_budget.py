"""How many pods evictions may take at a time, and whose budget says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import budget, manifests
from imageedit_operator.core.actions import ApplyBudget, DeleteBudget
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, ObservedBudget, ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import (
    HASH,
    OLD,
    deployment,
    draining_pod,
    pending_pod,
    resource,
    serving_pod,
    starting_pod,
)


def own(**changes: Any) -> ObservedBudget:
    """The budget as the operator writes it for pods that all serve or are on their way."""
    fields: dict[str, Any] = {"uid": "b", "resource_version": "3", "max_unavailable": 1, "intact": True}
    return ObservedBudget(**{**fields, **changes})


def known(named: ObservedBudget | None = None, *others: str) -> Known[Budgets]:
    return Known(value=Budgets(named=named, others=others))


NOW = 1_000_000.0
LOST = pending_pod("b")
LEAVES = serving_pod("x", terminating=True)
GONE = serving_pod("x", terminating=True, phase="Failed")
CRASHES = starting_pod("c", started=False, container_id="", waiting_reason="CrashLoopBackOff", last_exit_code=1)
REFUSED = deployment(3, refused="exceeded quota")


@pytest.mark.parametrize(
    ("owned", "pods", "most"),
    [
        ((deployment(1),), (serving_pod("a"),), 1),
        ((), (), 1),
        ((deployment(2),), (serving_pod("a"), starting_pod("b")), 1),
        ((deployment(2),), (serving_pod("a"), ObservedPod(name="b", uid="b", revision_hash=HASH)), 1),
        ((deployment(2),), (serving_pod("a"), draining_pod("b")), 1),
        ((deployment(2),), (serving_pod("a"), pending_pod("b")), 2),
        ((deployment(3),), (serving_pod("a"), pending_pod("b"), CRASHES), 3),
        ((deployment(2),), (serving_pod("a"), starting_pod("b", overdue_s=600.0)), 2),
        ((deployment(1),), (serving_pod("a", last_exit_code=1),), 1),
        ((deployment(1), deployment(1, OLD)), (serving_pod("a", revision_hash=OLD), pending_pod("b")), 2),
        ((deployment(2),), (serving_pod("a"), pending_pod("b", terminating=True)), 1),
        ((REFUSED,), (serving_pod("a"),), 3),
        ((REFUSED,), (), 1),
        ((deployment(3),), (serving_pod("a"),), 1),
    ],
)
def test_evictions_wait_for_what_is_on_its_way_and_for_nothing_else(
    owned: tuple[ObservedDeployment, ...], pods: tuple[ObservedPod, ...], most: int
) -> None:
    assert budget.max_unavailable(owned, pods, free=0, drain_timeout_s=300.0, now=NOW) == most


@pytest.mark.parametrize(
    ("pods", "free", "since_s", "most"),
    [
        ((LOST,), 0, 60.0, 2),
        ((LOST,), 0, 59.0, 1),
        ((LOST,), 1, 60.0, 1),
        ((LOST,), None, 60.0, 2),
        ((LOST, LEAVES), 0, 300.0, 1),
        ((LOST, GONE), 0, 300.0, 2),
        ((LOST, pending_pod("c"), LEAVES), 0, 300.0, 2),
        ((LOST, LEAVES), 1, 390.0, 2),
    ],
)
def test_a_pod_without_a_place_is_waited_for_while_one_comes(
    pods: tuple[ObservedPod, ...], free: int | None, since_s: float, most: int
) -> None:
    seen = (serving_pod("a"), *(replace(pod, unschedulable_since=NOW - since_s) for pod in pods))
    assert budget.max_unavailable((deployment(2),), seen, free=free, drain_timeout_s=300.0, now=NOW) == most


WRITTEN = manifests.budget(resource(), 1)


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        (known(own(), "theirs"), (DeleteBudget(name="edit", uid="b", resource_version="3"),)),
        (known(None, "theirs"), ()),
        (known(own(foreign_owner="nobody"), "edit"), ()),
        (known(), (ApplyBudget(manifest=WRITTEN, uid=""),)),
        (known(own()), ()),
        (known(own(max_unavailable=2)), (ApplyBudget(manifest=WRITTEN, uid="b"),)),
        (known(own(max_unavailable=None)), (ApplyBudget(manifest=WRITTEN, uid="b"),)),
        (known(own(intact=False)), (ApplyBudget(manifest=WRITTEN, uid="b"),)),
        (known(own(foreign_owner="nobody")), ()),
        (Unknown(reason="Forbidden", message="no"), ()),
    ],
)
def test_a_pod_has_one_budget_and_that_of_somebody_else_goes_first(
    budgets: Known[Budgets] | Unknown, expected: tuple[object, ...]
) -> None:
    assert budget.changes(resource(), budgets, (deployment(1),), (serving_pod("a"),), free=0, now=NOW) == expected
