"""Who leaves first, and when a pod may be removed."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core import drain
from imageedit_operator.core.actions import DrainPod, SetGate
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import SILENT, draining_pod, known, pending_pod, serving_pod, starting_pod

NOW = 1100.0


def test_victims_leave_in_the_order_of_the_table() -> None:
    order = [
        pending_pod("unscheduled"),
        serving_pod("a-sick-card", sick_card="c0", report=known(running=1)),
        starting_pod("crashing", waiting_reason="CrashLoopBackOff", started=False, container_id=""),
        starting_pod("creating", started=False, container_id="", report=SILENT),
        starting_pod("warming"),
        serving_pod("idle"),
        serving_pod("busy", report=known(running=1)),
    ]
    shuffled = order[3:] + order[:3]
    assert [pod.name for pod in sorted(shuffled, key=drain.victim_rank)] == [pod.name for pod in order]


def test_a_pod_that_does_not_answer_counts_as_busy() -> None:
    pods = [serving_pod("silent", report=SILENT), serving_pod("idle")]
    assert min(pods, key=drain.victim_rank).name == "idle"


def test_among_equals_the_youngest_leaves() -> None:
    pods = [serving_pod("old", created_at=1.0), serving_pod("young", created_at=2.0)]
    assert min(pods, key=drain.victim_rank).name == "young"


CLOSED: dict[str, Any] = {"gate": False, "gate_reason": "NotWarm", "ready": False}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (starting_pod(ready=True), False),
        (draining_pod(), False),
        (serving_pod(ready=False, started=False, container_id=""), True),
        (starting_pod(), True),
        (starting_pod(report=SILENT), True),
        (pending_pod(), True),
        (serving_pod(**CLOSED, report=known(warm=False)), True),
        (serving_pod(**CLOSED, report=known(warm=False, waiting=1)), False),
        (serving_pod(**CLOSED, report=SILENT), False),
        (serving_pod(ready=False), False),
        (serving_pod(), False),
    ],
)
def test_only_a_pod_that_certainly_works_on_nothing_is_removed_at_once(pod: ObservedPod, expected: bool) -> None:
    assert drain.removable_at_once(pod) is expected


DRAINED = {"draining": True, "accepting": False}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (serving_pod(), False),
        (draining_pod(ready=True), False),
        (draining_pod(started=False, container_id="", report=SILENT), True),
        (draining_pod(container_id="c-2", report=known()), True),
        (draining_pod(), True),
        (draining_pod(report=known(draining=True, accepting=True)), False),
        (draining_pod(report=known(draining=False, accepting=False)), False),
        (draining_pod(report=known(**DRAINED, running=1)), False),
        (draining_pod(report=known(**DRAINED, waiting=1)), False),
        (draining_pod(report=SILENT), False),
        (draining_pod(report=SILENT, gate_since=NOW - 600), True),
        (draining_pod(report=SILENT, lost=True), True),
        (draining_pod(report=SILENT, lost=True, ready=True), False),
        (draining_pod(report=known(**DRAINED, running=1), gate_since=NOW - 599), False),
    ],
)
def test_a_drain_is_done_by_the_table(pod: ObservedPod, expected: bool) -> None:
    assert drain.is_done(pod, NOW, timeout_s=600.0) is expected


def test_a_drain_closes_the_gate_before_it_tells_the_pod() -> None:
    gate, tell = drain.begin(serving_pod())
    assert isinstance(gate, SetGate)
    assert (gate.value, gate.reason) == (False, "Draining")
    assert tell == DrainPod(pod="pod-1", uid="uid-pod-1", ip="10.0.0.1")


@pytest.mark.parametrize(
    ("pod", "told_again"),
    [
        (draining_pod(report=SILENT), True),
        (draining_pod(report=known()), True),
        (draining_pod(), False),
        (draining_pod(started=False, container_id=""), False),
        (draining_pod(report=SILENT, ip=""), False),
    ],
)
def test_a_pod_is_told_until_it_reports_that_it_drains(pod: ObservedPod, told_again: bool) -> None:
    assert bool(drain.remind(pod)) is told_again


def test_a_pod_on_a_lost_node_is_taken_out_of_service_and_not_asked_to_drain() -> None:
    (only,) = drain.begin(serving_pod(ready=False, report=SILENT, lost=True))
    assert isinstance(only, SetGate)
    assert not only.value
