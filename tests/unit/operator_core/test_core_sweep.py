"""Pods that are over: what they are counted as, when they are removed, and what is said; row by row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core import sweep
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import starting_pod

NOW = 1_000_000.0


def over(name: str = "p", *, age_s: float = 60.0, reason: str = "UnexpectedAdmissionError", **more: Any) -> ObservedPod:
    return starting_pod(name, phase="Failed", failed_reason=reason, created_at=NOW - age_s, **more)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("UnexpectedAdmissionError", "UnexpectedAdmission"),
        ("OutOfcpu", "UnexpectedAdmission"),
        ("OutOfhuawei.com/Ascend910", "UnexpectedAdmission"),
        ("NodeAffinity", "UnexpectedAdmission"),
        ("TopologyAffinityError", "UnexpectedAdmission"),
        ("Evicted", "Evicted"),
        ("Preempting", "Evicted"),
        ("NodeShutdown", "Evicted"),
        ("Terminated", "Evicted"),
        ("", "PodFailed"),
        ("Odd", "PodFailed"),
    ],
)
def test_a_pod_that_is_over_counts_by_the_table(reason: str, expected: str) -> None:
    assert sweep.kind(over(reason=reason)) == expected


def removed(*pods: ObservedPod) -> list[str]:
    return [action.pod for action in sweep.actions(pods, now=NOW)]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([over(age_s=0, reason="Evicted")], ["p"]),
        ([over(age_s=0, reason="")], ["p"]),
        ([over(age_s=9)], []),
        ([over(age_s=10)], ["p"]),
        ([over("a", age_s=500), over("b", age_s=19)], []),
        ([over("a", age_s=500), over("b", age_s=20)], ["a", "b"]),
        ([over("a", age_s=1), over("b", age_s=1, reason="Evicted")], ["b"]),
        ([over(f"p{age}", age_s=age) for age in range(12)], ["p11", "p10"]),
        ([over(terminating=True)], []),
        ([starting_pod()], []),
        ([starting_pod(phase="Succeeded")], ["pod-1"]),
    ],
)
def test_pods_are_removed_by_the_table(pods: list[ObservedPod], expected: list[str]) -> None:
    assert removed(*pods) == expected


@pytest.mark.parametrize(("refused", "expected"), [(1, 10.0), (2, 20.0), (5, 160.0), (6, 300.0), (10_000, 300.0)])
def test_the_wait_doubles_up_to_five_minutes(refused: int, expected: float) -> None:
    assert sweep.wait_s(refused) == expected


def test_a_pod_whose_creation_is_not_known_does_not_stay_for_ever() -> None:
    assert removed(starting_pod(phase="Failed", failed_reason="UnexpectedAdmissionError")) == ["pod-1"]


@given(st.lists(st.integers(min_value=0, max_value=1000), max_size=60))
def test_no_look_removes_more_than_twenty_and_few_stay_however_many_come(ages: list[int]) -> None:
    pods = [over(f"p{number}", age_s=age) for number, age in enumerate(ages)]
    gone = removed(*pods)
    assert len(gone) <= sweep.MOST_AT_ONCE
    assert len(pods) - len(gone) <= max(sweep.MOST_KEPT, len(pods) - sweep.MOST_AT_ONCE)


def test_a_refused_pod_is_said_with_its_node_and_the_kubelets_words_until_it_is_gone() -> None:
    pod = over(failed_message="Allocate failed due to no healthy devices present, which is unexpected.")
    said = sweep.trouble([pod])
    assert said is not None
    assert said.reason == "UnexpectedAdmission"
    assert said.message.startswith(
        "the kubelet of node-1 refuses pods: Allocate failed due to no healthy devices present, which is unexpected; "
    )
    assert sweep.trouble([over(reason="Evicted"), over(terminating=True)]) is None


def test_the_same_refusal_of_other_pods_is_said_in_the_same_words() -> None:
    first, second = over("a", failed_message="no devices"), over("b", failed_message="no devices")
    assert sweep.trouble([first]) == sweep.trouble([second]) == sweep.trouble([first, second])


def test_each_pod_that_is_over_has_words() -> None:
    assert sweep.words([over(reason="Evicted", failed_message="low on memory"), starting_pod()]) == {
        "uid-p": "pod p on node-1: Evicted: low on memory"
    }
