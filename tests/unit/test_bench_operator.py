"""The pure parts of the operator's benchmark: what is read from the audit log, and stages that leave the gate alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.operator.fleet import start_figures
from bench.operator.objects import figures as objects_figures
from bench.operator.reaction import percentile, waited_s
from bench.operator.rest import start_work
from bench.operator.stages import configuration
from bench.operator.world import OPERATOR_USER, is_mine
from imageedit_operator.kube.parsing import WARM_GATE

PLACE = ("edit-0", "edit-1")


def event(second: int, *, name: str, user: str = OPERATOR_USER, **more: Any) -> dict[str, Any]:
    """A request to the apiserver that took no time."""
    at = f"2026-11-30T08:00:{second:02d}.000000Z"
    target = {"resource": "deployments", "namespace": "edit-0", "name": name}
    times = {"requestReceivedTimestamp": at, "stageTimestamp": at}
    return {"verb": "patch", "user": {"username": user}, "objectRef": target, **times, **more}


CHANGE = event(10, name="edit-1", user="somebody")


@pytest.mark.parametrize(
    ("later", "waited"),
    [
        ([event(12, name="edit-1-5c0f6b1d2a"), event(13, name="edit-1")], 2),
        ([event(11, name="edit-10-5c0f6b1d2a"), event(14, name="edit-1-5c0f6b1d2a")], 4),
        ([event(9, name="edit-1-5c0f6b1d2a")], float("inf")),
        ([], float("inf")),
    ],
)
def test_the_reaction_is_the_first_write_about_that_resource_after_its_change(
    later: list[dict[str, Any]], waited: float
) -> None:
    assert waited_s([CHANGE, *later], PLACE) == waited


@pytest.mark.parametrize(
    ("request_", "mine"),
    [
        (event(1, name="edit-1"), True),
        (event(1, name="edit-1", verb="get"), False),
        (event(1, name="edit-1", user="system:admin"), False),
        (event(1, name="x", objectRef={"resource": "leases"}), False),
        (event(1, name="x", objectRef={"resource": "selfsubjectaccessreviews"}), False),
    ],
)
def test_writes_at_rest_are_those_of_the_operator_but_for_the_lease(request_: dict[str, Any], mine: bool) -> None:
    assert is_mine(request_) is mine


def test_a_start_that_did_not_end_in_time_misses_its_target_and_keeps_the_rest() -> None:
    figures = {figure.name: figure for figure in start_figures(1000, 20.0, None)}
    assert (figures["deployments_1000_s"].value, figures["ready_1000_s"].value) == (20.0, None)
    assert not figures["ready_ratio"].passed
    assert [figure.value for figure in start_figures(1000, 20.0, 30.0)] == [20.0, 30.0, 1.5]


def test_what_the_objects_cost_is_told_by_the_bare_deployments() -> None:
    assert [figure.value for figure in objects_figures(1000, 20.0, 70.0)] == [70.0, 3.5]
    assert [figure.value for figure in objects_figures(1000, None, 70.0)] == [70.0, None]


def test_the_work_of_a_start_is_told_for_each_resource() -> None:
    figures = start_work((10.0, 50.0, 1.0), (310.0, 2050.0, 6.0), count=100)
    assert {figure.name: figure.value for figure in figures} == {
        "start_passes": 3.0,
        "start_requests": 20.0,
        "start_cpu_ms": 50.0,
    }


def test_a_percentile_is_a_value_that_was_seen() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert percentile([1.0, 2.0], 0.99) == 2.0
    assert percentile([1.0], 0.95) == 1.0


def test_the_played_kubelet_reads_the_warm_gate_and_never_writes_it() -> None:
    stages = [json.loads(text) for text in configuration().split("\n---\n")[1:]]
    written = [stage["spec"]["next"].get("statusTemplate", "") for stage in stages]
    read = json.dumps([stage["spec"]["selector"] for stage in stages])
    assert WARM_GATE in read
    assert not any(WARM_GATE in template for template in written)


def test_where_no_operator_runs_gates_open_by_themselves_once() -> None:
    stages = [json.loads(text) for text in configuration(warms=True).split("\n---\n")[1:]]
    (opens,) = [stage["spec"] for stage in stages if WARM_GATE in stage["spec"]["next"].get("statusTemplate", "")]
    assert WARM_GATE in opens["selector"]["matchExpressions"][-1]["key"]
    assert opens["selector"]["matchExpressions"][-1]["operator"] == "DoesNotExist"
