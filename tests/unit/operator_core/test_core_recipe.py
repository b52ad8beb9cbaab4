"""A resource as it asked for an earlier revision, from what is noted on that revision's Deployment."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core.accelerator import AutoInjection
from imageedit_operator.core.recipe import noted, remade
from imageedit_operator.core.revision import RECIPE, recipe, revision_hash
from unit.operator_core.builders import resource

NOW = resource(
    model={"name": "qwen", "revision": "b", "source": {"pvc": {"claimName": "c"}}},
    replicas=3,
    template={"spec": {"hostname": "now"}},
    rollout={"drainTimeout": "7m"},
)
BEFORE = resource(
    server={"image": "server:0", "sizes": ["768x768", "64x64"], "env": [{"name": "A", "value": "1"}]},
    accelerator={"injection": "Plugin", "nodeSelector": {"env": "prod"}},
    template={"metadata": {"labels": {"team": "a"}}},
)


def carrying(text: str) -> dict[str, Any]:
    """A Deployment with that annotation."""
    return {"metadata": {"annotations": {RECIPE: text}}}


def again(text: str) -> Any:
    found = noted(carrying(text))
    return None if found is None else remade(NOW, found)


@pytest.mark.parametrize("before", [BEFORE, resource(), replace(BEFORE, restarted_at="2026-11-30T08:00:00Z")])
def test_a_recipe_makes_its_revision_again_out_of_any_later_spec(before: Any) -> None:
    made = again(recipe(before))
    assert (made.model, made.server, made.accelerator) == (before.model, before.server, before.accelerator)
    assert revision_hash(made) == revision_hash(before)


def test_what_is_no_part_of_a_revision_stays_as_it_is_now() -> None:
    made = again(recipe(BEFORE))
    assert (made.uid, made.replicas, made.rollout) == (NOW.uid, NOW.replicas, NOW.rollout)


def test_the_setting_of_the_operator_stays_as_it_is_now() -> None:
    auto = AutoInjection(injection="Plugin")
    now = replace(NOW, accelerator=replace(NOW.accelerator, auto=auto))
    found = noted(carrying(recipe(BEFORE)))
    assert found is not None
    made = remade(now, found)
    assert made is not None
    assert made.accelerator.auto == auto


PARTS: dict[str, Any] = {"model": {}, "server": {}, "accelerator": {}}


def nested(levels: int) -> str:
    """A recipe with a model of so many levels."""
    return json.dumps({**PARTS, "model": "deep"}).replace('"deep"', '{"a":' * levels + "1" + "}" * levels)


@pytest.mark.parametrize(
    "text",
    ["", "x", "[1]", "{}", json.dumps({**PARTS, "server": 1}), "[" * 100_000, nested(200), nested(20_000)],
    ids=[
        "nothing",
        "a word",
        "a list",
        "no parts",
        "a part of another type",
        "half of a list",
        "deep",
        "too deep to read",
    ],
)
def test_what_is_no_recipe_is_none(text: str) -> None:
    assert noted(carrying(text)) is None


def test_a_deployment_of_an_older_operator_has_no_recipe() -> None:
    assert noted({"metadata": {}}) is None


WORDS = st.sampled_from(["name", "revision", "source", "demo", "image", "sizes", "steps", "env", "spec", "metadata"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 99) | st.sampled_from(["x", "768x768"]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(WORDS, below, max_size=3),
    max_leaves=8,
)


@given(parts=st.fixed_dictionaries(dict.fromkeys(PARTS, st.dictionaries(WORDS, VALUES)), optional={"template": VALUES}))
def test_whatever_somebody_writes_into_the_annotation_is_a_resource_or_none(parts: dict[str, Any]) -> None:
    found = noted(carrying(json.dumps(parts)))
    assert found is not None
    made = remade(NOW, found)
    assert made is None or revision_hash(made)
