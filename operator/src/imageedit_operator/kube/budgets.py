"""PodDisruptionBudgets: the resource's own, and those of others that select its pods.

The own one is read at each look. Those of others change rarely: the list of a namespace is read again
after half a minute at the earliest, and less often where reading it takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core import manifests
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, ObservedBudget
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kept import Kept, nothing_kept
from imageedit_operator.kube.kinds import BUDGETS
from imageedit_operator.kube.parsing import changed_fields, foreign_owner, is_subset
from imageedit_operator.workqueue import Key

FRESH_S = 30.0
COST_FACTOR = 20.0
"""A list is kept for at least this many times what reading it took."""

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Snapshot:
    selectors: Mapping[str, Raw | None]
    """By the budget's name."""
    stale_at: float


class BudgetBook:
    """The budgets of the namespaces that are served; `clock` is monotonic, in seconds. `on_read` gets each own one.

    An own one that is `kept` is not read.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        clock: Callable[[], float],
        on_read: Callable[[dict[str, Any]], None] = lambda _budget: None,
        kept: Kept | None = None,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._on_read = on_read
        self._kept = kept or nothing_kept()
        self._snapshots: dict[str, _Snapshot] = {}

    async def read(self, resource: ImageEditDeployment, pods: Iterable[Mapping[str, str]]) -> Known[Budgets] | Unknown:
        """The budgets that matter to pods of these labels; Unknown where they may not be read. Raises ApiError."""
        return await self._read(resource, tuple(pods), own=True)

    async def of_others(
        self, resource: ImageEditDeployment, pods: Iterable[Mapping[str, str]]
    ) -> Known[Budgets] | Unknown:
        """The same where there can be none of the resource's own yet, which is not asked for. Raises ApiError."""
        return await self._read(resource, tuple(pods), own=False)

    async def _read(
        self, resource: ImageEditDeployment, kinds: Sequence[Mapping[str, str]], *, own: bool
    ) -> Known[Budgets] | Unknown:
        try:
            live = await self._own(resource) if own else None
            selectors = await self._of_namespace(resource.namespace)
        except ApiError as error:
            if error.forbidden:
                return Unknown(reason="Forbidden", message=f"budgets are not known: {error.message}")
            raise
        named = None if live is None else parse_budget(live, resource)
        if named is not None and named.foreign_owner and live is not None:
            selectors = {**selectors, resource.name: (live.get("spec") or {}).get("selector")}
        else:
            selectors = {name: selector for name, selector in selectors.items() if name != resource.name}
        others = [name for name, selector in selectors.items() if any(selects(selector, labels) for labels in kinds)]
        return Known(value=Budgets(named=named, others=tuple(sorted(others))))

    async def _own(self, resource: ImageEditDeployment) -> Raw | None:
        known = self._kept.get(BUDGETS, resource)
        if known is not None:
            return known
        try:
            found = await self._kube.get(BUDGETS, resource.namespace, resource.name)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        self._on_read(found)
        self._kept.given(BUDGETS, Key(resource.namespace, resource.name), found)
        return found

    def forget(self) -> None:
        """Budgets of others may have changed: they are read again, whatever the age of what is known."""
        self._snapshots.clear()

    async def _of_namespace(self, namespace: str) -> Mapping[str, Raw | None]:
        started = self._clock()
        known = self._snapshots.get(namespace)
        if known is not None and started < known.stale_at:
            return known.selectors
        found = await self._kube.list_all(BUDGETS, namespace)
        selectors = {item["metadata"]["name"]: (item.get("spec") or {}).get("selector") for item in found}
        cost_s = self._clock() - started
        fresh_s = max(FRESH_S, COST_FACTOR * cost_s)
        self._snapshots[namespace] = _Snapshot(selectors=selectors, stale_at=started + cost_s + fresh_s)
        return selectors


def parse_budget(live: Raw, resource: ImageEditDeployment) -> ObservedBudget:
    """The budget of the resource's name, whoever wrote it."""
    number = (live.get("spec") or {}).get("maxUnavailable")
    known = number if isinstance(number, int) else None
    wanted = manifests.budget(resource, known or 1)
    same_pods = wanted["spec"]["selector"] == (live.get("spec") or {}).get("selector")
    return ObservedBudget(
        uid=live["metadata"]["uid"],
        resource_version=live["metadata"]["resourceVersion"],
        max_unavailable=known,
        intact=known is not None and same_pods and is_subset(wanted, live),
        foreign_owner=foreign_owner(live, owner_uid=resource.uid),
        changed=changed_fields(wanted, live),
    )


# | selector, expression            | takes labels             |
# | none                            | none                     |
# | empty                           | all                      |
# | matchLabels, all expressions    | that fit every one       |
# | In, NotIn                       | absent fits NotIn alone  |
# | Exists, DoesNotExist            | by the key               |
# | an operator of tomorrow         | all: rather no own budget than two |
def selects(selector: Raw | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes an object with these labels."""
    if selector is None:
        return False
    exact = (selector.get("matchLabels") or {}).items() <= labels.items()
    return exact and all(_fits(expression, labels) for expression in selector.get("matchExpressions") or [])


def _fits(expression: Raw, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in (expression.get("values") or [])
        case "NotIn":
            return value not in (expression.get("values") or [])
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return True
