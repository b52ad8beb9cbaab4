"""Which budgets select the server pods, and how often the cluster is asked for them."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core import manifests
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.budgets import FRESH_S, BudgetBook, selects
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import BUDGETS
from unit.operator_shell.builders import MemoryKube, cluster, custom_resource, owner

RESOURCE = parse(custom_resource())
LABELS = manifests.labels(RESOURCE)


def budget(name: str, selector: Any, **metadata: Any) -> Manifest:
    """A budget of somebody else."""
    about = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "5", **metadata}
    return {"metadata": about, "spec": {"minAvailable": 1, "selector": selector}}


def own(**spec: Any) -> Manifest:
    """The operator's budget as the apiserver stores it."""
    made = manifests.budget(RESOURCE, 1)
    about = {**made["metadata"], "uid": "uid-edit", "resourceVersion": "5", "ownerReferences": [owner()]}
    return {
        **made,
        "metadata": {**about, "ownerReferences": made["metadata"]["ownerReferences"]},
        "spec": {**made["spec"], **spec},
    }


async def read(kube: MemoryKube) -> Known[Budgets] | Unknown:
    return await BudgetBook(kube, clock=lambda: 0.0).read(RESOURCE, [LABELS])


async def found(*budgets: Manifest) -> Budgets:
    seen = await read(cluster(*((BUDGETS, item) for item in budgets)))
    assert isinstance(seen, Known)
    return seen.value


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app.kubernetes.io/instance": "edit"}}, True),
        ({"matchLabels": {"app.kubernetes.io/instance": "edit", "app": "x"}}, False),
        ({"matchExpressions": [{"key": "app.kubernetes.io/instance", "operator": "In", "values": ["edit"]}]}, True),
        ({"matchExpressions": [{"key": "app.kubernetes.io/instance", "operator": "NotIn", "values": ["edit"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}, True),
    ],
)
def test_a_selector_takes_pods_by_kubernetes_rules(selector: Any, taken: bool) -> None:
    assert selects(selector, LABELS) is taken


async def test_without_a_budget_there_is_none() -> None:
    assert await found() == Budgets()


async def test_the_own_budget_is_no_other_one() -> None:
    seen = await found(own())
    assert seen.named is not None
    assert (seen.named.max_unavailable, seen.named.intact, seen.named.foreign_owner, seen.others) == (1, True, "", ())


async def test_a_budget_that_somebody_changed_is_not_intact() -> None:
    seen = await found(own(unhealthyPodEvictionPolicy="IfHealthyBudget"))
    assert seen.named is not None
    assert not seen.named.intact


async def test_a_percentage_is_not_the_operators_number() -> None:
    seen = await found(own(maxUnavailable="50%"))
    assert seen.named is not None
    assert (seen.named.max_unavailable, seen.named.intact) == (None, False)


async def test_others_are_those_that_select_the_pods() -> None:
    every_pod = {"matchLabels": {"app.kubernetes.io/name": "imageedit-server"}}
    seen = await found(own(), budget("all", {}), budget("web", {"matchLabels": {"app": "web"}}), budget("b", every_pod))
    assert seen.others == ("all", "b")


async def test_a_foreign_budget_of_our_name_is_another_one_where_it_selects_the_pods() -> None:
    seen = await found(budget("edit", {}))
    assert seen.named is not None
    assert (seen.named.foreign_owner, seen.others) == ("nobody", ("edit",))
    seen = await found(budget("edit", {"matchLabels": {"app": "web"}}))
    assert seen.named is not None
    assert (seen.named.foreign_owner, seen.others) == ("nobody", ())


async def test_what_may_not_be_read_is_unknown() -> None:
    kube = MemoryKube(refuse={"list poddisruptionbudgets": ApiError(status=403, reason="Forbidden", message="no")})
    assert isinstance(await read(kube), Unknown)


async def test_an_apiserver_that_fails_ends_the_look() -> None:
    kube = MemoryKube(refuse={"list poddisruptionbudgets": ApiError(status=500, reason="InternalError", message="x")})
    with pytest.raises(ApiError):
        await read(kube)


async def test_the_namespace_is_listed_again_only_after_a_while() -> None:
    now = 0.0
    kube = cluster((BUDGETS, budget("all", {})))
    book = BudgetBook(kube, clock=lambda: now)
    for _ in range(3):
        await book.read(RESOURCE, [LABELS])
    assert kube.calls.count(("list", "poddisruptionbudgets", "")) == 1
    now = FRESH_S + 1
    await book.read(RESOURCE, [LABELS])
    assert kube.calls.count(("list", "poddisruptionbudgets", "")) == 2


async def test_budgets_of_others_that_may_have_changed_are_read_again_at_once() -> None:
    kube = cluster()
    book = BudgetBook(kube, clock=lambda: 0.0)
    await book.read(RESOURCE, [LABELS])
    kube.put(BUDGETS, budget("theirs", {}))
    book.forget()
    seen = await book.read(RESOURCE, [LABELS])
    assert isinstance(seen, Known)
    assert seen.value.others == ("theirs",)


async def test_the_own_budget_is_told_of_when_it_was_read() -> None:
    told: list[Manifest] = []
    await BudgetBook(cluster((BUDGETS, own())), clock=lambda: 0.0, on_read=told.append).read(RESOURCE, [LABELS])
    assert [item["metadata"]["uid"] for item in told] == ["uid-edit"]
