"""Pods that are not created, and why; row by row."""

from __future__ import annotations

import pytest

from imageedit_operator.core import refusals
from imageedit_operator.core.fleet import Fleet, first_trouble
from imageedit_operator.core.resize import Group
from unit.operator_core.builders import deployment, starting_pod

NO_CLASS = 'pods "edit-a-x" is forbidden: pod rejected: RuntimeClass "ascend" not found'
QUOTA = 'pods "edit-a-x" is forbidden: exceeded quota: cards, requested: 1, used: 4, limited: 4'


def group(said: str, *, pods: int = 0) -> Group:
    made = tuple(starting_pod(f"p{number}") for number in range(pods))
    return Group(deployment=deployment(1, refused=said), pods=made)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (group(NO_CLASS, pods=1), None),
        (group(""), None),
        (group(NO_CLASS), "RuntimeClassMissing"),
        (group(QUOTA), "FailedCreate"),
    ],
)
def test_what_keeps_pods_from_being_created_follows_the_table(found: Group, reason: str | None) -> None:
    said = refusals.of(found)
    assert (None if said is None else said.reason) == reason


def test_the_class_and_what_to_do_are_named() -> None:
    said = refusals.of(group(NO_CLASS))
    assert said is not None
    assert said.message.startswith("the cluster has no RuntimeClass ascend, so no pod is created; create it, ")


def test_another_refusal_is_quoted() -> None:
    said = refusals.of(group(QUOTA))
    assert said is not None
    assert "exceeded quota: cards, requested: 1" in said.message
    assert said.message.endswith(
        "; raise the quota or change the policy that it names, or lower spec.replicas: "
        "its ReplicaSet tries again by itself"
    )


@pytest.mark.parametrize(("said", "stops"), [(NO_CLASS, True), (QUOTA, False)])
def test_a_missing_class_stops_a_rollout_and_a_quota_may_pass(said: str, stops: bool) -> None:
    assert (first_trouble(Fleet(wanted=group(said), old=())) is not None) is stops


def test_the_first_refusal_of_several_revisions_is_told() -> None:
    found = refusals.first([group(""), group(QUOTA), group(NO_CLASS)])
    assert found is not None
    assert found.reason == "FailedCreate"
