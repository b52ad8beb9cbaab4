"""One Deployment on its way to a number of live pods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from imageedit_operator.core.actions import Action, DeletePod, DrainPod, ScaleDeployment, SetDeletionCost, SetGate
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.resize import Group, resize
from unit.operator_core.builders import deployment, draining_pod, known, pending_pod, serving_pod, starting_pod

NOW = 1100.0
UNFINISHED = known(draining=True, accepting=False, running=1)


def resized(replicas: int, pods: Sequence[ObservedPod], goal: int, *, limit: int = 100) -> tuple[Action, ...]:
    return resize(Group(deployment=deployment(replicas), pods=tuple(pods)), goal, limit=limit, now=NOW)


def scales(actions: Sequence[Action]) -> list[int]:
    return [action.replicas for action in actions if isinstance(action, ScaleDeployment)]


def cheap(actions: Sequence[Action]) -> list[str]:
    return [action.pod for action in actions if isinstance(action, SetDeletionCost) and action.cost < 0]


def drained(actions: Sequence[Action]) -> list[str]:
    return [action.pod for action in actions if isinstance(action, SetGate)]


@pytest.mark.parametrize(("goal", "words"), [(1, "1 pod is wanted"), (2, "2 pods are wanted")])
def test_a_number_of_pods_is_said_as_people_say_it(goal: int, words: str) -> None:
    (action,) = resize(Group(deployment=deployment(0), pods=()), goal, limit=9, now=0.0)
    assert isinstance(action, ScaleDeployment)
    assert action.why == words


@pytest.mark.parametrize(
    ("replicas", "words"), [(1, "removes 1 pod that does not exist yet"), (2, "removes 2 pods that do not exist yet")]
)
def test_pods_that_never_came_are_removed_in_words(replicas: int, words: str) -> None:
    (action,) = resize(Group(deployment=deployment(replicas), pods=()), 0, limit=9, now=0.0)
    assert isinstance(action, ScaleDeployment)
    assert action.why == words


def test_at_its_goal_nothing_is_done() -> None:
    assert resized(2, [serving_pod("a"), serving_pod("b")], 2) == ()


def test_growth_is_one_write() -> None:
    assert scales(resized(1, [serving_pod("a")], 3)) == [3]


def test_growth_is_held_by_the_limit() -> None:
    assert scales(resized(1, [serving_pod("a")], 3, limit=2)) == [2]


def test_a_limit_below_the_present_removes_nothing() -> None:
    assert resized(2, [serving_pod("a"), serving_pod("b")], 3, limit=0) == ()


def test_pods_that_the_replica_set_still_creates_count() -> None:
    assert resized(3, [serving_pod("a")], 3) == ()


def test_a_draining_pod_is_no_capacity() -> None:
    assert scales(resized(2, [serving_pod("a"), draining_pod("b", report=UNFINISHED)], 2)) == [3]


def test_a_drained_pod_gives_its_place_to_a_new_one() -> None:
    actions = resized(2, [serving_pod("a"), draining_pod("b")], 2)
    assert [action.pod for action in actions if isinstance(action, DeletePod)] == ["b"]
    assert scales(actions) == []


def test_no_more_drained_pods_are_replaced_than_are_wanted() -> None:
    actions = resized(3, [serving_pod("a"), draining_pod("b"), draining_pod("c")], 2)
    assert len([action for action in actions if isinstance(action, DeletePod)]) == 1


def test_a_serving_pod_is_drained_before_anything_else() -> None:
    actions = resized(2, [serving_pod("a"), serving_pod("b", created_at=5.0)], 1)
    assert drained(actions) == ["b"]
    assert [action.pod for action in actions if isinstance(action, DrainPod)] == ["b"]
    assert scales(actions) == []


def test_a_drained_pod_is_scaled_away_with_its_cost_once_the_cost_is_not_needed_to_tell_it() -> None:
    actions = resized(2, [serving_pod("a"), draining_pod("b")], 1)
    assert cheap(actions) == ["b"]
    assert scales(actions) == [1]


def test_where_only_the_cost_tells_pods_apart_the_scaling_waits_for_it() -> None:
    glitch = serving_pod("a", ready=False)
    first = resized(2, [glitch, draining_pod("b")], 1)
    assert cheap(first) == ["b"]
    assert scales(first) == []
    assert scales(resized(2, [glitch, draining_pod("b", deletion_cost=-1000)], 1)) == [1]


def test_a_drained_pod_behind_an_unscheduled_one_is_deleted_by_name() -> None:
    actions = resized(2, [draining_pod("a"), pending_pod("b")], 1)
    assert [action.pod for action in actions if isinstance(action, DeletePod)] == ["a"]
    assert scales(actions) == []


def test_an_unfinished_drain_is_waited_for() -> None:
    assert resized(2, [serving_pod("a"), draining_pod("b", report=UNFINISHED)], 1) == ()


def test_pods_that_never_served_go_without_a_drain() -> None:
    actions = resized(3, [serving_pod("a"), starting_pod("b"), pending_pod("c")], 1)
    assert drained(actions) == []
    assert cheap(actions) == ["b", "c"]
    assert scales(actions) == [1]


def test_pods_that_do_not_exist_yet_go_first() -> None:
    actions = resized(3, [serving_pod("a"), starting_pod("b")], 2)
    assert cheap(actions) == []
    assert scales(actions) == [2]


def test_nothing_is_removed_while_the_replica_set_still_removes() -> None:
    assert resized(1, [starting_pod("a"), starting_pod("b")], 0) == ()


def test_a_cost_that_is_left_over_is_taken_back() -> None:
    actions = resized(2, [serving_pod("a", deletion_cost=-1000), starting_pod("b")], 1)
    costs = {action.pod: action.cost for action in actions if isinstance(action, SetDeletionCost)}
    assert costs == {"a": 0, "b": -1000}


def test_a_pod_that_drains_longer_than_the_drain_timeout_is_removed_all_the_same() -> None:
    busy = draining_pod("b", report=UNFINISHED, gate_since=NOW - 60)
    patient, short = (
        Group(deployment=deployment(2), pods=(serving_pod("a"), busy), drain_timeout_s=limit_s) for limit_s in (61, 60)
    )
    assert scales(resize(patient, 1, limit=100, now=NOW)) == []
    assert scales(resize(short, 1, limit=100, now=NOW)) == [1]
