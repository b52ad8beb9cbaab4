"""What others did to the children: said in a condition, or put back with an Event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import intact
from imageedit_operator.core.actions import (
    Action,
    ApplyBudget,
    ApplyService,
    DeletePod,
    LabelDeployment,
    ScaleDeployment,
)
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, Observed, ObservedBudget
from imageedit_operator.core.pods import Trouble
from unit.operator_core.builders import HASH, OLD, deployment, resource

BUDGET = ObservedBudget(uid="b", resource_version="3", max_unavailable=1, intact=True)
FOREIGN = replace(BUDGET, foreign_owner="nobody")
CHANGED = ("spec.template.spec.hostname by kubectl-edit",)
CONFLICT = Trouble(reason="NameConflict", message="Service edit exists")


def observed(*deployments: Any, budgets: Known[Budgets] | Unknown | None = None, **changes: Any) -> Observed:
    known = budgets or Known(value=Budgets(named=BUDGET))
    return Observed(deployments=deployments or (deployment(1),), budgets=known, **changes)


def said(seen: Observed, conflict: Trouble | None = None) -> tuple[bool, str, str]:
    found = intact.answer(resource(), seen, HASH, conflict)
    return found.status, found.reason, found.message


@pytest.mark.parametrize(
    ("seen", "conflict", "reason"),
    [
        (observed(), CONFLICT, "NameConflict"),
        (observed(budgets=Known(value=Budgets(named=FOREIGN))), None, "NameConflict"),
        (observed(budgets=Known(value=Budgets(named=FOREIGN, others=("edit",)))), None, "AsWritten"),
        (observed(budgets=Unknown(reason="Forbidden", message="no")), None, "AsWritten"),
        (observed(deployment(1), deployment(1, OLD, owned=False, foreign_owner="nobody")), None, "Orphaned"),
        (observed(deployment(1, changed=CHANGED)), None, "FieldsChanged"),
        (observed(deployment(0, changed=CHANGED)), None, "FieldsChanged"),
        (observed(deployment(1), deployment(1, OLD, changed=CHANGED)), None, "FieldsChanged"),
        (observed(deployment(1), deployment(0, OLD, changed=CHANGED)), None, "AsWritten"),
        (observed(deployment(1, scaled_by="kubectl")), None, "AsWritten"),
        (observed(), None, "AsWritten"),
    ],
)
def test_children_are_intact_by_the_table(seen: Observed, conflict: Trouble | None, reason: str) -> None:
    status, found, _ = said(seen, conflict)
    assert (status, found) == (reason == "AsWritten", reason)


def test_a_changed_field_is_named_with_its_writer_and_what_to_do() -> None:
    _, _, message = said(observed(deployment(1, changed=CHANGED)))
    assert all(word in message for word in (f"edit-{HASH}", CHANGED[0], "imageedit.dev/restarted-at"))


SCALE = ScaleDeployment(name="edit-x", uid=f"uid-{HASH}", resource_version="7", replicas=2, why="w")
LABELS = LabelDeployment(name="edit-x", uid=f"uid-{HASH}", labels={"b": "2", "a": "1"})
SERVICE = ApplyService(manifest={"metadata": {"name": "edit"}}, uid="s")
OWN = ApplyBudget(manifest={"metadata": {"name": "edit"}}, uid="b")
SELECTOR = ("spec.selector by kubectl-patch",)


@pytest.mark.parametrize(
    ("seen", "action", "words"),
    [
        (observed(deployment(5, scaled_by="kubectl")), SCALE, "scaled by kubectl and goes to 2 replicas"),
        (observed(deployment(5)), SCALE, ""),
        (observed(), LABELS, "Deployment edit-x was changed and is put back: the labels a, b"),
        (observed(service_changed=SELECTOR), SERVICE, "Service edit was changed and is put back: spec.selector by"),
        (observed(), SERVICE, ""),
        (observed(service_changed=SELECTOR), replace(SERVICE, uid=""), ""),
        (
            observed(budgets=Known(value=Budgets(named=replace(BUDGET, changed=SELECTOR)))),
            OWN,
            "PodDisruptionBudget edit was changed",
        ),
        (observed(), OWN, ""),
        (observed(budgets=Known(value=Budgets())), replace(OWN, uid=""), ""),
        (observed(deployment(5, scaled_by="kubectl")), DeletePod(pod="p", uid=f"uid-{HASH}", why="w"), ""),
    ],
)
def test_what_is_put_back_is_told_with_its_writer(seen: Observed, action: Action, words: str) -> None:
    posts = intact.put_back(seen, [action])
    assert [words in post.message for post in posts] == ([True] if words else [])
