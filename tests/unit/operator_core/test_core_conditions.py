"""Six answers about a resource, and their words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import conditions
from imageedit_operator.core.conditions import Answer, Situation
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.scaling import Decision
from unit.operator_core.builders import CARD, HASH, OLD, pending_pod

NOW = 1_000_000.0
THEN = "2026-01-01T00:00:00Z"
CRASH = Trouble(reason="ModelMissing", message="pod p: no checkpoint; check spec.model.source")
GOOD = Decision(desired=2, reasons=(), metrics_ok=True, reason="QueueDepth", message="", active=True)
HELD = replace(GOOD, metrics_ok=False, active=False, reason="NoSeries", message="no series for this deployment")


def situation(**changes: Any) -> Situation:
    """Two pods wanted, both serve."""
    rest = Situation(
        wanted=2,
        hash=HASH,
        serving=2,
        complete=True,
        rolling=False,
        strategy="Auto",
        mode="Steady",
        outage=False,
        expected_outage_s=35.4,
        trouble=None,
        unschedulable=None,
        resource_name=CARD,
        shrinking=False,
        decision=None,
    )
    return replace(rest, **changes)


MOVING: dict[str, Any] = {"complete": False, "serving": 1}
NO_CARD = pending_pod("p")
NO_MEMORY = pending_pod("p", unschedulable_message="0/1 nodes are available: 1 Insufficient memory.")


def built(found: Situation, previous: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    made = conditions.build(found, previous or {}, generation=3, now=NOW)
    assert tuple(item["type"] for item in made) == conditions.TYPES
    assert {item["reason"] for item in made} <= conditions.REASONS
    return {item["type"]: item for item in made}


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (situation(trouble=CRASH), "False", "ModelMissing"),
        (situation(), "False", "Complete"),
        (situation(wanted=0, serving=0), "False", "Complete"),
        (situation(**MOVING, rolling=True, mode="InPlace", outage=True), "True", "PlannedReplacement"),
        (situation(**MOVING, rolling=True, mode="Surge", unschedulable=NO_CARD), "True", "WaitingForCard"),
        (situation(**MOVING, rolling=True, mode="InPlace", unschedulable=NO_CARD), "True", "RollingOut"),
        (situation(**MOVING, rolling=True, mode="Recreate"), "True", "RollingOut"),
        (situation(**MOVING, unschedulable=NO_CARD), "True", "WaitingForCard"),
        (situation(**MOVING, unschedulable=NO_MEMORY), "True", "Unschedulable"),
        (situation(**MOVING, shrinking=True), "True", "ScalingDown"),
        (situation(**MOVING), "True", "Starting"),
    ],
)
def test_progressing_follows_the_table(found: Situation, status: str, reason: str) -> None:
    progressing = built(found)["Progressing"]
    assert (progressing["status"], progressing["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (situation(), "True", "AllPodsServe"),
        (situation(wanted=0, serving=0), "True", "Stopped"),
        (situation(trouble=CRASH), "False", "ModelMissing"),
        (situation(**MOVING, rolling=True, mode="Surge"), "False", "RollingOut"),
        (situation(**MOVING), "False", "Starting"),
    ],
)
def test_ready_is_true_only_when_all_wanted_pods_serve(found: Situation, status: str, reason: str) -> None:
    ready = built(found)["Ready"]
    assert (ready["status"], ready["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (situation(), "True", "Serving"),
        (situation(trouble=CRASH, serving=1), "True", "Serving"),
        (situation(trouble=CRASH, serving=0), "False", "ModelMissing"),
        (situation(wanted=0, serving=0), "True", "Stopped"),
        (situation(complete=False, serving=0), "False", "Starting"),
    ],
)
def test_available_means_that_somebody_serves(found: Situation, status: str, reason: str) -> None:
    available = built(found)["Available"]
    assert (available["status"], available["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (situation(), "False", "Scheduled"),
        (situation(**MOVING, unschedulable=NO_CARD), "True", "WaitingForCard"),
        (situation(**MOVING, unschedulable=NO_MEMORY), "False", "Scheduled"),
        (situation(**MOVING, unschedulable=NO_CARD, resource_name=""), "False", "NoCardAsked"),
    ],
)
def test_waiting_for_card_is_about_cards_alone(found: Situation, status: str, reason: str) -> None:
    waiting = built(found)["WaitingForCard"]
    assert (waiting["status"], waiting["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("decision", "active", "metrics"),
    [
        (None, ("False", "AutoscalingOff"), ("False", "AutoscalingOff")),
        (GOOD, ("True", "QueueDepth"), ("True", "Fresh")),
        (replace(GOOD, reason="HoldWindow"), ("True", "QueueDepth"), ("True", "Fresh")),
        (replace(GOOD, reason="CardsExhausted", limited=True), ("True", "CardsExhausted"), ("True", "Fresh")),
        (HELD, ("False", "NoSeries"), ("False", "NoSeries")),
        (replace(HELD, reason="SomethingNew"), ("False", "MetricsMissing"), ("False", "MetricsMissing")),
    ],
)
def test_scaling_and_metrics_follow_the_table(
    decision: Decision | None, active: tuple[str, str], metrics: tuple[str, str]
) -> None:
    made = built(situation(decision=decision))
    assert (made["ScalingActive"]["status"], made["ScalingActive"]["reason"]) == active
    assert (made["MetricsAvailable"]["status"], made["MetricsAvailable"]["reason"]) == metrics


def test_a_stopped_rollout_says_that_the_old_revision_serves_on() -> None:
    words = built(situation(trouble=CRASH, mode="Stopped"))["Progressing"]["message"]
    assert words == f"{CRASH.message}; the rollout stops here and the old revision serves on"


@pytest.mark.parametrize(
    ("length", "strategy", "words"),
    [
        (35.4, "Auto", "about 35 s without a warm pod, because no card is free"),
        (None, "Auto", "a time that is not known yet without a warm pod, because no card is free"),
        (35.4, "InPlace", "about 35 s without a warm pod, because the strategy is InPlace"),
        (35.4, "Recreate", "about 35 s without a warm pod, because the strategy is Recreate"),
    ],
)
def test_a_planned_outage_is_announced_with_its_length(length: float | None, strategy: str, words: str) -> None:
    found = situation(complete=False, rolling=True, outage=True, strategy=strategy, expected_outage_s=length)
    assert built(found)["Progressing"]["message"] == f"planned replacement: {words}"


def test_an_announced_outage_keeps_its_words_while_it_lasts() -> None:
    before = {
        "updateRevision": HASH,
        "conditions": [{"type": "Progressing", "reason": "PlannedReplacement", "message": "as announced"}],
    }
    found = situation(complete=False, serving=0, rolling=True, outage=True)
    assert built(found, before)["Progressing"]["message"] == "as announced"
    other = {**before, "updateRevision": OLD}
    assert built(found, other)["Progressing"]["message"] != "as announced"


def test_the_transition_time_moves_with_the_status_alone() -> None:
    before = {"conditions": [{"type": "Ready", "status": "False", "reason": "Starting", "lastTransitionTime": THEN}]}
    same = conditions.written(
        "Ready", Answer(status=False, reason="CrashLoop", message=""), before, generation=3, now=NOW
    )
    other = conditions.written(
        "Ready", Answer(status=True, reason="Serving", message=""), before, generation=3, now=NOW
    )
    assert same["lastTransitionTime"] == THEN
    assert other["lastTransitionTime"] == "1970-01-12T13:46:40Z"
    assert other["observedGeneration"] == 3


def test_reasons_are_what_kubernetes_accepts() -> None:
    assert all(reason.isalpha() and reason[0].isupper() for reason in conditions.REASONS)
