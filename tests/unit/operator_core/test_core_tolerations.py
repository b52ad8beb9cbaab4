"""Which nodes pods may land on."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.tolerations import Place, Taint, tolerates

TAINT = Taint(key="team", value="a", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "key": "team"}, True),
        ({"operator": "Exists", "key": "other"}, False),
        ({"operator": "Equal", "key": "team", "value": "a"}, True),
        ({"key": "team", "value": "a"}, True),
        ({"key": "team", "value": "b"}, False),
        ({"key": "team"}, False),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists", "effect": ""}, True),
    ],
)
def test_a_toleration_bears_a_taint_as_kubernetes_says(toleration: dict[str, Any], expected: bool) -> None:
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize(
    ("labels", "taints", "expected"),
    [
        ({"chip": "910B3", "more": "x"}, (), True),
        ({"chip": "310P3"}, (), False),
        ({}, (), False),
        ({"chip": "910B3"}, (TAINT,), True),
        ({"chip": "910B3"}, (TAINT, Taint(key="broken")), False),
    ],
)
def test_a_node_must_have_the_labels_and_no_taint_that_is_not_borne(
    labels: dict[str, str], taints: tuple[Taint, ...], expected: bool
) -> None:
    place = Place(node_selector={"chip": "910B3"}, tolerations=({"key": "team", "operator": "Exists"},))
    assert place.takes(labels=labels, taints=taints) is expected
