"""`status` tells in one look which revision serves, which comes, and what it waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.cli import condition_view, status_text, status_view
from imageedit_operator.cli.documents import document
from imageedit_operator.cli.looking import Report
from imageedit_operator.cli.pod_view import state
from imageedit_operator.cli.roles import role
from imageedit_operator.cli.screen import Screen
from imageedit_operator.cli.status_view import StatusView
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.offer import Offer
from unit.operator_cli.builders import CARD, NOW, children, condition, deployment, event, hash_of, pod, resource
from unit.operator_core import builders as core

FULL = Known(value=CardLedger(allocatable=2, requested=2))
OLD, NEW = hash_of(resource("a")), hash_of(resource("b"))

ROLLING: dict[str, Any] = {
    "observedGeneration": 3,
    "phase": "RollingOut",
    "readyReplicas": 1,
    "desiredReplicas": 1,
    "currentRevision": OLD,
    "updateRevision": NEW,
    "lastGoodRevision": OLD,
    "conditions": [
        condition("Available", "True", "Serving"),
        condition("Ready", "False", "WaitingForCard"),
        condition("Progressing", "True", "WaitingForCard", "the replacement waits for a card"),
        condition("WaitingForCard", "True", "WaitingForCard", "pod edit-new waits for huawei.com/Ascend910"),
    ],
}


def rolling(
    *, status: Any = None, reports: dict[str, Report] | None = None, cards: Any = FULL, events: Any = ()
) -> StatusView:
    """One old pod serves; the new one finds no card."""
    there = children(
        deployments=[deployment(resource("a"), replicas=1), deployment(resource("b"), replicas=1)],
        pods=[pod("edit-old", OLD), pod("edit-new", NEW, warm=False, node="")],
        events=events,
    )
    manifest = resource("b", status=ROLLING if status is None else status)
    return status_view.build(manifest, there, reports or {}, cards, now=NOW)


def shown(view: StatusView, **screen: Any) -> str:
    return status_text.text([view], Screen(**screen))


def test_the_serving_revision_comes_first_and_then_the_one_that_comes() -> None:
    revisions = rolling().revisions
    assert [(item.role, item.hash, item.model) for item in revisions] == [("serves", OLD, "a"), ("comes", NEW, "b")]


def test_each_revision_has_its_pods() -> None:
    assert [[item.name for item in revision.pods] for revision in rolling().revisions] == [["edit-old"], ["edit-new"]]


def test_cards_say_what_is_held_missing_and_free() -> None:
    cards = rolling().cards
    assert (cards.needed, cards.held, cards.missing, cards.free, cards.allocatable) == (1, 1, 1, 0, 2)


def test_cards_that_no_node_gives_to_these_pods_are_not_said_to_be_none_of_none() -> None:
    closed = CardLedger(allocatable=0, requested=0, offer=Offer(nodes=1, closed=1))
    words = shown(rolling(cards=Known(value=closed)))
    assert "1 missing, no node that takes these pods offers" in words
    assert "1 node offers it, 1 cordoned or not ready; look at kubectl get nodes" in words
    assert "0 free of 0" not in words


def test_cards_that_may_not_be_read_are_unknown_with_the_reason() -> None:
    view = rolling(cards=Unknown(reason="Forbidden", message="cards are not known: nodes is forbidden"))
    assert view.cards.free is None
    assert "free ones unknown (cards are not known: nodes is forbidden)" in shown(view)


def test_a_pod_s_work_is_shown_where_it_answers() -> None:
    view = rolling(reports={"edit-old": core.known(revision_hash=OLD, running=1, waiting=4)})
    assert "1 running, 4 waiting" in shown(view)


def test_a_pod_that_does_not_answer_has_no_numbers() -> None:
    (old, *_) = rolling().revisions
    assert (old.pods[0].running, old.pods[0].waiting) == (None, None)


def test_what_a_pod_waits_for_stands_below_it() -> None:
    lines = shown(rolling()).splitlines()
    (at,) = (number for number, line in enumerate(lines) if "WaitingForPlace" in line)
    assert f"Insufficient {CARD}" in lines[at + 1]


def test_conditions_that_are_not_fine_come_before_everything_else() -> None:
    lines = shown(rolling()).splitlines()
    assert "! WaitingForCard True" in lines[1]


@pytest.mark.parametrize(("times", "words"), [(1, "1 restart "), (2, "2 restarts ")])
def test_restarts_of_a_pod_are_counted_in_words(times: int, words: str) -> None:
    view = rolling()
    (old, *others) = view.revisions
    restarted = replace(old, pods=(replace(old.pods[0], restarts=times),))
    assert words in shown(replace(view, revisions=(restarted, *others)))


def test_seconds_in_documents_have_no_more_digits_than_clocks() -> None:
    assert document({"sinceS": 60.33333333333, "restarts": 3}) == {"sinceS": 60.333, "restarts": 3}


def test_the_first_line_names_the_resource_its_phase_and_what_goes_on() -> None:
    first = shown(rolling()).splitlines()[0]
    assert first == "team/edit  RollingOut  1 of 1 pods warm  the replacement waits for a card"


def test_the_last_decisions_come_newest_first_with_their_reasons() -> None:
    events = [event("Scaled", "2 -> 3: 7 requests", age_s=600), event("RolloutStarted", "from a to b", age_s=30)]
    assert [item.reason for item in rolling(events=events).decisions] == ["RolloutStarted", "Scaled"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_rollout_that_ends_in_the_second_of_its_start_is_shown_as_ended_last(order: int) -> None:
    events = [event("RolloutStarted", "from a to b", age_s=30), event("RolloutCompleted", "b", age_s=30)][::order]
    assert [item.reason for item in rolling(events=events).decisions] == ["RolloutCompleted", "RolloutStarted"]


def test_the_last_scaling_is_taken_from_the_status_where_its_event_is_gone() -> None:
    made = {"lastScaleTime": "2026-11-30T03:00:00Z", "decision": "2 -> 3", "reasons": ["a", "b"]}
    (decision,) = rolling(status={**ROLLING, "scaling": made}, events=None).decisions
    assert decision.message == "2 -> 3: a; b"


def test_a_resource_that_no_operator_has_seen_asks_whether_one_runs() -> None:
    view = rolling(status={"phase": ""})
    assert "no operator has looked at it yet" in view.summary
    assert not view.ready


def test_a_status_of_an_older_spec_is_not_ready() -> None:
    ready = [condition("Ready", "True", "AllPodsServe")]
    assert not rolling(status={**ROLLING, "conditions": ready, "observedGeneration": 2}).ready
    assert rolling(status={**ROLLING, "conditions": ready}).ready


def test_the_words_fit_a_terminal_of_80_columns() -> None:
    assert max(map(len, shown(rolling(), width=80).splitlines())) <= 80


def test_the_document_has_the_fields_of_the_page() -> None:
    made = document(rolling())
    assert isinstance(made, dict)
    assert list(made) == [
        *("namespace", "name", "phase", "ready", "warmPods", "desiredPods", "summary"),
        *("conditions", "revisions", "cards", "decisions"),
    ]


@pytest.mark.parametrize(
    ("kind", "status", "reason", "level"),
    [
        ("Available", "True", "Serving", "fine"),
        ("Ready", "True", "AllPodsServe", "fine"),
        ("Available", "False", "Stopped", "moving"),
        ("Available", "False", "PlannedReplacement", "moving"),
        ("Available", "False", "Prefetching", "moving"),
        ("Available", "False", "CrashLoop", "bad"),
        ("Ready", "False", "RollingOut", "moving"),
        ("Progressing", "True", "RollingOut", "moving"),
        ("Progressing", "False", "Complete", "fine"),
        ("Progressing", "False", "Paused", "moving"),
        ("Progressing", "False", "ModelMissing", "bad"),
        ("RolloutStuck", "True", "RolledBack", "bad"),
        ("WaitingForCard", "True", "WaitingForCard", "bad"),
        ("RolloutStuck", "False", "CanaryHold", "moving"),
        ("RolloutStuck", "False", "Prefetching", "moving"),
        ("Degraded", "True", "DeviceUnhealthy", "bad"),
        ("Degraded", "False", "NoFault", "fine"),
        ("RolloutStuck", "False", "Moving", "fine"),
        ("WaitingForCard", "False", "Scheduled", "fine"),
        ("WaitingForCard", "False", "CardHandedOver", "fine"),
        ("Available", "False", "CardHandedOver", "moving"),
        ("ScalingActive", "False", "AutoscalingOff", "fine"),
        ("ScalingActive", "False", "ScaledByOthers", "fine"),
        ("ChildrenIntact", "True", "AsWritten", "fine"),
        ("ChildrenIntact", "False", "FieldsChanged", "bad"),
        ("MetricsAvailable", "False", "Stale", "bad"),
        ("ScalingActive", "True", "CardsExhausted", "moving"),
        ("ScalingActive", "True", "QueueDepth", "fine"),
        ("Available", "Unknown", "", "bad"),
        ("Another", "True", "", "moving"),
    ],
)
def test_a_condition_is_judged_by_its_row(kind: str, status: str, reason: str, level: str) -> None:
    assert condition_view.level(kind, status, reason) == level


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (core.serving_pod(terminating=True), "Leaving"),
        (core.pending_pod(phase="Failed", failed_reason="UnexpectedAdmissionError"), "UnexpectedAdmissionError"),
        (core.draining_pod(), "Draining"),
        (core.starting_pod(waiting_reason="CrashLoopBackOff", last_exit_message="ModelMissing: none"), "ModelMissing"),
        (core.serving_pod(), "Warm"),
        (core.pending_pod(), "WaitingForPlace"),
        (core.pending_pod(unschedulable_message="pod has unbound immediate PersistentVolumeClaims"), "VolumeNotReady"),
        (core.pending_pod(unschedulable=False), "Scheduling"),
        (core.starting_pod(), "WarmingUp"),
        (core.starting_pod(started=False, container_id=""), "Starting"),
    ],
)
def test_a_pod_s_state_is_judged_by_its_row(made: Any, word: str) -> None:
    assert state(made) == word


@pytest.mark.parametrize(
    ("status", "pods", "word"),
    [
        ({"failedRevision": "x", "updateRevision": "x"}, 1, "failed"),
        ({"currentRevision": "x", "updateRevision": "x"}, 1, "serves"),
        ({"currentRevision": "y", "updateRevision": "x"}, 0, "comes"),
        ({"currentRevision": "y"}, 1, "leaves"),
        ({"currentRevision": "y", "lastGoodRevision": "x"}, 0, "last good"),
        ({}, 0, "kept"),
    ],
)
def test_a_revision_s_role_is_judged_by_its_row(status: dict[str, str], pods: int, word: str) -> None:
    assert role("x", status, pods=pods) == word
