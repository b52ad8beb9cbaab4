"""When a pod is late, and which files it must have."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from imageedit_operator.core import expectations
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import HASH, SILENT, draining_pod, pending_pod, serving_pod, starting_pod

NOW = 10_000.0
NOBODY_KNOWS = Unknown(reason="Forbidden", message="no")
NO_CLAIM = '0/1 nodes are available: persistentvolumeclaim "models" not found.'
RESTARTED: dict[str, Any] = {"gate": False, "gate_reason": "ContainerRestarted"}


@pytest.mark.parametrize(
    ("wanted_s", "warmup", "expected"),
    [
        (90.0, {}, 90.0),
        (90.0, {"p95Seconds": 40}, 90.0),
        (None, {}, 3600.0),
        (None, {"p95Seconds": 40}, 720.0),
        (None, {"lastSeconds": 100.5}, 901.5),
    ],
)
def test_the_deadline_follows_the_table(wanted_s: float | None, warmup: dict[str, float], expected: float) -> None:
    assert expectations.deadline_s(wanted_s, {"warmup": warmup}) == expected


@pytest.mark.parametrize(
    ("pod", "late"),
    [
        (starting_pod(scheduled_at=NOW - 599), False),
        (starting_pod(scheduled_at=NOW - 600), True),
        (starting_pod(), False),
        (pending_pod(created_at=NOW - 9000), False),
        (pending_pod(unschedulable_since=NOW - 599, unschedulable_message=NO_CLAIM), False),
        (pending_pod(unschedulable_since=NOW - 600, unschedulable_message=NO_CLAIM), True),
        (pending_pod(created_at=NOW - 600, unschedulable_message=NO_CLAIM), True),
        (pending_pod(created_at=NOW - 600, unschedulable_message=NO_CLAIM, terminating=True), False),
        (serving_pod(scheduled_at=1.0), False),
        (serving_pod(scheduled_at=1.0, ready=False), False),
        (draining_pod(scheduled_at=1.0), False),
        (starting_pod(scheduled_at=1.0, **RESTARTED, gate_since=NOW - 599), False),
        (starting_pod(scheduled_at=1.0, **RESTARTED, gate_since=NOW - 600), True),
    ],
)
def test_a_pod_is_late_from_its_node_or_its_restart_or_the_want_of_its_volume(pod: ObservedPod, late: bool) -> None:
    (marked,) = expectations.mark([pod], digests={}, files_at={}, cards=NOBODY_KNOWS, deadline_s=600.0, now=NOW)
    assert marked.overdue_s == (600.0 if late else 0.0)


def test_a_pod_gets_the_digest_of_its_revision() -> None:
    pods = [starting_pod("a"), starting_pod("b", revision_hash="other")]
    marked = expectations.mark(
        pods, digests={HASH: "sha256:cd"}, files_at={}, cards=NOBODY_KNOWS, deadline_s=600.0, now=NOW
    )
    assert [pod.expected_digest for pod in marked] == ["sha256:cd", ""]


@pytest.mark.parametrize(("files_at", "overdue"), [(inf, False), (NOW - 599.0, False), (NOW - 600.0, True)])
def test_a_pod_that_waits_for_the_copy_of_its_files_has_its_time_from_then_on(files_at: float, overdue: bool) -> None:
    pod = starting_pod(scheduled_at=1.0)
    (marked,) = expectations.mark(
        [pod], digests={}, files_at={pod.uid: files_at}, cards=NOBODY_KNOWS, deadline_s=600.0, now=NOW
    )
    assert bool(marked.overdue_s) == overdue


def ready_nodes(*names: str) -> Known[CardLedger]:
    return Known(value=CardLedger(allocatable=1, requested=1, ready_nodes=frozenset(names)))


GONE: dict[str, Any] = {"ready": False, "report": SILENT}


@pytest.mark.parametrize(
    ("pod", "cards", "lost"),
    [
        (serving_pod(**GONE), ready_nodes("node-1"), False),
        (serving_pod(**GONE), NOBODY_KNOWS, False),
        (serving_pod(**GONE), Known(value=CardLedger(allocatable=1, requested=1)), False),
        (pending_pod(), ready_nodes(), False),
        (serving_pod(report=SILENT), ready_nodes("node-2"), False),
        (serving_pod(ready=False), ready_nodes("node-2"), False),
        (serving_pod(**GONE), ready_nodes("node-2"), True),
        (serving_pod(**GONE, terminating=True), ready_nodes(), True),
    ],
)
def test_a_pod_is_lost_by_the_table(pod: ObservedPod, cards: Known[CardLedger] | Unknown, lost: bool) -> None:
    (marked,) = expectations.mark([pod], digests={}, files_at={}, cards=cards, deadline_s=600.0, now=NOW)
    assert marked.lost is lost
