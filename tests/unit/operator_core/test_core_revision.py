"""Which fields make a new revision."""

from __future__ import annotations

import re
from typing import Any

import pytest

from imageedit_operator.core.revision import deployment_name, revision_hash
from unit.operator_core.builders import autoscaling, resource

MODEL = {"name": "qwen", "revision": "a", "source": {"demo": {}}}


@pytest.mark.parametrize(
    "change",
    [
        {"model": {**MODEL, "name": "other"}},
        {"model": {**MODEL, "revision": "b"}},
        {"model": {**MODEL, "source": {"pvc": {"claimName": "models"}}}},
        {"model": {**MODEL, "source": {"hostPath": {"path": "/models"}}}},
        {"server": {"image": "server:2"}},
        {"server": {"image": "server:1", "sizes": ["768x576"]}},
        {"server": {"image": "server:1", "steps": {"standard": 8}}},
        {"server": {"image": "server:1", "queue": {"hardLimit": 5}}},
        {"accelerator": {"device": "cpu"}},
        {"accelerator": {"resourceName": "huawei.com/Ascend310P"}},
        {"accelerator": {"count": 2}},
    ],
)
def test_a_field_of_the_pod_makes_a_new_revision(change: dict[str, Any]) -> None:
    assert revision_hash(resource(**change)) != revision_hash(resource())


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 7},
        {"autoscaling": autoscaling()},
        {"rollout": {"strategy": "Recreate"}},
        {"server": {"image": "server:1", "sizes": ["768x768"], "steps": {"standard": 16}, "queue": {"hardLimit": 50}}},
        {"accelerator": {"device": "npu", "resourceName": "huawei.com/Ascend910", "count": 1}},
    ],
)
def test_what_needs_no_new_pod_keeps_the_revision(change: dict[str, Any]) -> None:
    assert revision_hash(resource(**change)) == revision_hash(resource())


def test_sizes_are_a_set() -> None:
    one = resource(server={"image": "i", "sizes": ["768x768", "768x576"]})
    other = resource(server={"image": "i", "sizes": ["768x576", "768x768"]})
    assert revision_hash(one) == revision_hash(other)


def test_a_pvc_and_its_path_are_told_apart() -> None:
    def at(source: dict[str, Any]) -> str:
        return revision_hash(resource(model={**MODEL, "source": source}))

    assert at({"pvc": {"claimName": "a", "path": "b"}}) != at({"pvc": {"claimName": "ab"}})


def test_the_hash_is_the_same_in_every_release() -> None:
    """An upgrade of the operator that changes this value restarts every pod of every user."""
    assert revision_hash(resource()) == "d3e77bebcc"


def test_the_longest_name_leaves_room_for_the_names_of_pods() -> None:
    hash_ = revision_hash(resource())
    assert re.fullmatch("[0-9a-f]{10}", hash_)
    assert len(deployment_name("x" * 40, hash_)) <= 52
