"""How long no pod will be warm while the only card changes hands, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.known import Unknown
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.outage import drain_s, handover_s, start_s, warmup_s, words, work_s
from imageedit_operator.core.resize import Group
from unit.operator_core.builders import OLD, deployment, known, serving_pod, starting_pod

SILENT = Unknown(reason="NoAnswer", message="")


def fleet(*old: ObservedPod) -> Fleet:
    """Pods of an old revision, and none of the wanted one."""
    group = Group(deployment=deployment(len(old), OLD), pods=old, drain_timeout_s=600.0)
    return Fleet(wanted=Group(deployment=deployment(0), pods=(), drain_timeout_s=600.0), old=(group,))


def busy(edits: int, **sizes: float) -> ObservedPod:
    return serving_pod(
        f"p{edits}", report=known(running=min(edits, 1), waiting=max(0, edits - 1), edit_s_by_size=sizes)
    )


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        (serving_pod(report=SILENT), 600.0),
        (busy(0, a=4.0), 0.0),
        (busy(3, a=4.0, b=2.0), 12.0),
        (busy(1), 600.0),
    ],
)
def test_a_pod_works_as_long_as_the_slowest_size_says(pod: ObservedPod, seconds: float) -> None:
    assert work_s(pod, 600.0) == seconds


@pytest.mark.parametrize(
    ("pods", "seconds"),
    [
        ((), 0.0),
        ((starting_pod(),), 0.0),
        ((busy(0, a=4.0),), 5.0),
        ((busy(1, a=4.0),), 5.0),
        ((busy(2, a=4.0), busy(3, a=4.0)), 12.0),
        ((busy(999, a=4.0),), 600.0),
        ((serving_pod(report=SILENT),), 600.0),
    ],
)
def test_no_drain_is_over_before_the_server_takes_no_more_requests(
    pods: tuple[ObservedPod, ...], seconds: float
) -> None:
    assert drain_s(fleet(*pods)) == seconds


def test_without_a_deployment_of_the_wanted_revision_nothing_drains() -> None:
    assert drain_s(None) == 0.0


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([], 5.0),
        ([(0.0, 0.0)], 5.0),
        ([(100.0, 0.0)], 5.0),
        ([(100.0, 100.0)], 3.0),
        ([(100.0, 99.0)], 5.0),
        ([(100.0, 130.0)], 33.0),
        ([(100.0, 220.0)], 123.0),
        ([(100.0, 221.0)], 5.0),
        ([(100.0, 130.0), (200.0, 203.0), (300.0, 0.0)], 6.0),
    ],
)
def test_a_card_changes_hands_as_fast_as_the_quickest_node_made_a_pod_ready_to_start(
    times: list[tuple[float, float]], seconds: float
) -> None:
    pods = [serving_pod(f"p{at}", scheduled_at=at, prepared_at=prepared) for at, prepared in times]
    assert handover_s(pods) == seconds


def test_a_warm_up_lasts_as_long_as_the_status_remembers() -> None:
    assert warmup_s({"warmup": {"lastSeconds": 42}}, [serving_pod()]) == 42.0


def test_without_a_memory_a_warm_up_lasts_as_long_as_warm_pods_say() -> None:
    pods = [serving_pod("a"), serving_pod("b", report=known(warmup_s=99.0)), starting_pod("c")]
    assert warmup_s({}, pods) == 99.0
    assert warmup_s({}, [starting_pod()]) is None


UNMEASURED = "; no warm-up was measured yet)"


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 47.0),
        ({"started_at": 0.0}, 47.0),
        ({"gate_since": 0.0}, 47.0),
        ({"gate_since": 111.0}, 47.0),
        ({"gate_since": 112.0}, 44.0),
        ({"gate_since": 117.5}, 49.5),
        ({"gate_since": 232.5}, 47.0),
        ({"gate_since": 117.5, "restarts": 1}, 47.0),
        ({"gate_since": 117.5, "ready": False}, 47.0),
        ({"gate_since": 117.5, "report": SILENT}, 47.0),
    ],
)
def test_a_start_takes_beside_the_warm_up_what_it_took_a_pod_that_serves(changes: Any, seconds: float) -> None:
    pod = serving_pod(**{"started_at": 100.0, "report": known(warmup_s=12.0), **changes})
    assert start_s(42.0, [pod]) == seconds


def test_a_start_without_a_known_warm_up_is_not_known() -> None:
    assert start_s(None, [serving_pod()]) is None


PARTS: dict[str, Any] = {"drain": 5.0, "handover": 7.0, "start": 42.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "about 54 s without a warm pod (5 s to drain, 7 s to hand its place over, 42 s to start)"),
        (
            {"start": None},
            f"about 12 s and a warm-up without a warm pod (5 s to drain, 7 s to hand its place over{UNMEASURED}",
        ),
        ({"placed": True}, "about 42 s without a warm pod (the new pod has its place)"),
        (
            {"placed": True, "start": None},
            f"about a warm-up without a warm pod (the new pod has its place{UNMEASURED}",
        ),
    ],
)
def test_an_outage_is_told_with_its_parts(changes: dict[str, Any], said: str) -> None:
    assert words(**{"placed": False, **PARTS, **changes}) == said
