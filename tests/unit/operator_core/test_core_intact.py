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
    CreateDeployment,
    DeleteDeployment,
    DeletePod,
    LabelDeployment,
    ScaleDeployment,
)
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, Observed, ObservedBudget
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble
from unit.operator_core.builders import HASH, OLD, deployment, resource, serving_pod

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
NEW_SERVICE = replace(SERVICE, uid="")
LABELLED = {"name": f"edit-{HASH}", "labels": {"imageedit.dev/revision": HASH}}
CREATE = CreateDeployment(manifest={"metadata": LABELLED})
NAMED = [{"hash": OLD}, {"hash": HASH}]
STORED = {"updateRevision": HASH, "updatedReplicas": 1, "revisions": NAMED}


@pytest.mark.parametrize(
    ("seen", "action", "words"),
    [
        (observed(deployment(5, scaled_by="kubectl")), SCALE, "scaled by kubectl and goes to 2 replicas"),
        (observed(deployment(5)), SCALE, ""),
        (observed(), LABELS, "Deployment edit-x was changed and is put back: the labels a, b"),
        (observed(service_changed=SELECTOR), SERVICE, "Service edit was changed and is put back: spec.selector by"),
        (observed(), SERVICE, ""),
        (observed(status=STORED), NEW_SERVICE, "Service edit was deleted and is made anew"),
        (
            observed(budgets=Known(value=Budgets(named=replace(BUDGET, changed=SELECTOR)))),
            OWN,
            "PodDisruptionBudget edit was changed",
        ),
        (observed(), OWN, ""),
        (observed(budgets=Known(value=Budgets())), replace(OWN, uid=""), ""),
        (observed(status=STORED), CREATE, f"Deployment edit-{HASH} was deleted and is made anew"),
        (observed(deployment(5, scaled_by="kubectl")), DeletePod(pod="p", uid=f"uid-{HASH}", why="w"), ""),
    ],
)
def test_what_is_put_back_is_told_with_its_writer(seen: Observed, action: Action, words: str) -> None:
    posts = intact.put_back(seen, [action])
    assert [words in post.message for post in posts] == ([True] if words else [])


def test_what_is_put_back_again_and_again_is_told_with_what_to_do() -> None:
    seen = observed(service_changed=SELECTOR, status=STORED)
    service, deployment_ = intact.put_back(seen, [SERVICE, CREATE], often={"Service edit"})
    assert "find the program that does it" in service.message
    assert "again and again" not in deployment_.message


def was_taken(seen: Observed, *actions: Action) -> bool:
    """Whether the plan says that somebody deleted what it makes."""
    return any("was deleted" in post.message for post in intact.put_back(seen, actions))


@pytest.mark.parametrize(
    ("there", "status", "taken"),
    [
        pytest.param(True, STORED, False, id="is there"),
        pytest.param(False, {}, False, id="no status"),
        pytest.param(False, {"revisions": []}, False, id="no revision"),
        pytest.param(False, {"revisions": NAMED}, True, id="a revision"),
    ],
)
def test_a_service_that_is_missing_was_deleted_where_a_deployment_has_been(
    there: bool, status: dict[str, Any], taken: bool
) -> None:
    assert was_taken(observed(service_exists=there, status=status), NEW_SERVICE) == taken


DELETE = DeleteDeployment(name=f"edit-{HASH}", uid=f"uid-{HASH}", resource_version="7")
OF_IT, OF_ANOTHER = serving_pod(revision_hash=HASH), serving_pod(revision_hash=OLD)


@pytest.mark.parametrize(
    ("status", "pods", "deletions", "taken"),
    [
        pytest.param({}, [OF_IT], [], False, id="no status"),
        pytest.param({**STORED, "revisions": [{"hash": OLD}]}, [OF_IT], [], False, id="another revision"),
        pytest.param(STORED, [], [DELETE], False, id="deleted by the plan"),
        pytest.param({"revisions": NAMED}, [OF_IT], [], True, id="pods"),
        pytest.param(STORED, [], [replace(DELETE, name=f"edit-{OLD}")], True, id="counted pods"),
        pytest.param({**STORED, "updateRevision": OLD}, [OF_ANOTHER], [], False, id="counted pods of another"),
        pytest.param({**STORED, "updatedReplicas": 0}, [OF_ANOTHER], [], False, id="no pods"),
    ],
)
def test_a_deployment_that_is_missing_was_deleted_where_pods_of_it_are_or_were(
    status: dict[str, Any], pods: list[ObservedPod], deletions: list[Action], taken: bool
) -> None:
    seen = observed(deployment(1, OLD), pods=tuple(pods), status=status)
    assert was_taken(seen, *deletions, CREATE) == taken
