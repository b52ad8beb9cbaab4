"""`spec.template` as it is read: what it may say, and what of it makes a revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.manifests import deployment, rendered
from imageedit_operator.core.revision import recipe, revision_hash
from imageedit_operator.core.template_spec import DEEPEST, ELSEWHERE, LARGEST_BYTES, Template, parse_template
from unit.operator_core.builders import resource

CARD = {"huawei.com/Ascend910": 1}


def parsed(template: Any) -> Template:
    return parse_template({"template": template})


def nested(levels: int) -> Any:
    """Lists in lists and maps."""
    whole: Any = "end"
    for level in range(levels):
        whole = [whole] if level % 2 else {"a": whole}
    return whole


def containers(name: str = "log", **fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, **fields}]}}


@pytest.mark.parametrize(
    "template",
    [
        None,
        {},
        {"metadata": {}, "spec": {}},
        {"metadata": {"labels": {}, "annotations": {}}},
        {"spec": {"hostAliases": [], "affinity": None, "securityContext": {}}},
    ],
)
def test_what_says_nothing_is_no_template(template: Any) -> None:
    assert not parsed(template).given
    assert revision_hash(resource(template=template)) == revision_hash(resource())
    assert recipe(resource(template=template)) == recipe(resource())


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": {"labels": {"team": "a"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"spec": {"hostNetwork": False}},
        containers(image="log:1"),
    ],
)
def test_a_template_makes_a_revision_of_its_own_that_its_recipe_brings_back(template: Any) -> None:
    made = resource(template=template)
    assert made.template.manifest() == template
    assert revision_hash(made) != revision_hash(resource())
    again = json.loads(recipe(made))
    assert revision_hash(resource(**again)) == revision_hash(made)


def test_the_operators_own_part_of_the_pod_does_not_depend_on_the_template() -> None:
    made = resource(template={"metadata": {"labels": {"team": "a"}}, "spec": {"hostNetwork": True}})
    assert deployment(made, "abc")["spec"]["template"] == deployment(resource(), "abc")["spec"]["template"]
    assert rendered(made, "abc") == rendered(resource(), "abc")


REFUSED: list[tuple[Any, str]] = [
    ([], "spec.template: is required and must be an object"),
    ({"metadata": {"labels": {"imageedit.dev/revision": "x"}}}, "which finds pods by it"),
    ({"metadata": {"labels": {"app.kubernetes.io/component": "x"}}}, "which finds pods by it"),
    ({"metadata": {"labels": {"a": 1}}}, "a must be a text"),
    ({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "1"}}}, "set by the operator"),
    ({"metadata": {"annotations": {"a": "x" * LARGEST_BYTES}}}, "larger than 32768 bytes"),
    ({"spec": {"a": nested(DEEPEST)}}, "nested more than 32 levels deep"),
    ({"spec": {"a": nested(9_000)}}, "nested more than 32 levels deep"),
    *(({"spec": {name: ["x"]}}, f"is given by {field}") for name, field in ELSEWHERE.items()),
    ({"spec": {"containers": {}, "hostIPC": True, "initContainers": {"a": "b"}}}, "give a list of at most 16 objects"),
    ({"spec": {"containers": [{"image": "x"}]}}, "containers[].name: is required"),
    (containers(resources={"limits": CARD}), "log asks for huawei.com/Ascend910"),
    (containers(resources={"requests": CARD}), "log asks for huawei.com/Ascend910"),
    ({"spec": {"initContainers": [{"name": "i", "resources": {"limits": CARD}}]}}, "i asks for"),
    (containers("server", env=[{"name": "IMAGEEDIT_PORT", "value": "1"}]), "variable IMAGEEDIT_PORT is set"),
]


@pytest.mark.parametrize(("template", "words"), REFUSED)
def test_what_would_hide_pods_or_take_cards_is_refused_by_its_field(template: Any, words: str) -> None:
    with pytest.raises(InvalidResource) as refused:
        parsed(template)
    assert words in str(refused.value)


def test_a_sidecar_may_set_variables_of_these_names_for_itself() -> None:
    assert parsed(containers(env=[{"name": "HOME", "value": "/"}])).given
