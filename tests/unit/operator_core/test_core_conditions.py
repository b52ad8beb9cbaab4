"""Nine answers about a resource, and their words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import conditions
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.progress import Answer, Situation
from imageedit_operator.core.scaling import Decision
from imageedit_operator.core.target import Failure
from unit.operator_core.builders import CARD, HASH, OLD, pending_pod, serving_pod, starting_pod
from unit.operator_core.situations import two_that_serve

NOW = 1_000_000.0
ABOUT = "about 46 s without a warm pod (5 s to drain, 6 s to hand its place over, 35 s to start)"
UNKNOWN = (
    "about 11 s and a warm-up without a warm pod "
    "(5 s to drain, 6 s to hand its place over; no warm-up was measured yet)"
)
THEN = "2026-01-01T00:00:00Z"
CRASH = Trouble(reason="ModelMissing", message="pod p: no checkpoint; check spec.model.source")
GOOD = Decision(desired=2, reasons=(), metrics_ok=True, reason="QueueDepth", message="", active=True)
HELD = replace(GOOD, metrics_ok=False, active=False, reason="NoSeries", message="no series for this deployment")


def situation(**changes: Any) -> Situation:
    """Two pods wanted, both serve."""
    rest = two_that_serve(HASH)
    return replace(rest, **changes)


FAILED = Failure(revision=OLD, reason="CheckFailed", message="pod p: flat")
PAUSED = Hold(reason="Paused", message="paused")
COPYING = Hold(reason="Prefetching", message="copies")
CANARY = Hold(reason="CanaryHold", message="holds", pods=1)
MOVING: dict[str, Any] = {"complete": False, "serving": 1}
NO_CARD = pending_pod("p")
HANDED = "the new pod waits for the card of old, which drains"
LOST = serving_pod("p", ready=False, lost=True)
NO_VOLUME = starting_pod("p", mount_words="no folder /usr/local/Ascend/driver")
NO_CLAIM = pending_pod("p", unschedulable_message='0/1 nodes are available: persistentvolumeclaim "m" not found.')
NO_NODE = pending_pod(
    "p",
    unschedulable_message="0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
)
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
        (situation(**MOVING, rolling=True, mode="Surge", cardless=NO_CARD), "True", "WaitingForCard"),
        (situation(**MOVING, rolling=True, mode="InPlace", cardless=NO_CARD), "True", "RollingOut"),
        (situation(**MOVING, rolling=True, mode="Recreate"), "True", "RollingOut"),
        (situation(**MOVING, cardless=NO_CARD), "True", "WaitingForCard"),
        (situation(**MOVING, rolling=True, mode="Surge", cardless=NO_CARD, handed=HANDED), "True", "RollingOut"),
        (situation(**MOVING, cardless=NO_CARD, handed=HANDED), "True", "CardHandedOver"),
        (situation(**MOVING, unschedulable=NO_MEMORY), "True", "Unschedulable"),
        (situation(**MOVING, rolling=True, mode="Surge", unschedulable=NO_MEMORY), "True", "RollingOut"),
        (situation(**MOVING, rolling=True, mode="Surge", unschedulable=NO_NODE), "True", "Unschedulable"),
        (situation(**MOVING, unmounted=NO_CLAIM), "True", "VolumeNotReady"),
        (situation(**MOVING, cardless=NO_CARD, unmounted=NO_CLAIM), "True", "VolumeNotReady"),
        (situation(**MOVING, hold=COPYING, mode="Prefetch"), "True", "Prefetching"),
        (situation(**MOVING, hold=COPYING, mode="Prefetch", unmounted=NO_CLAIM), "True", "VolumeNotReady"),
        (situation(**MOVING, hold=PAUSED, mode="Paused", unmounted=NO_CLAIM), "False", "Paused"),
        (situation(**MOVING, lost=LOST), "True", "NodeLost"),
        (situation(**MOVING, rolling=True, mode="Surge", lost=LOST), "True", "NodeLost"),
        (situation(**MOVING, unmounted=NO_VOLUME), "True", "VolumeNotReady"),
        (situation(**MOVING, rolling=True, mode="Surge", unmounted=NO_VOLUME), "True", "VolumeNotReady"),
        (situation(**MOVING, unmounted=NO_VOLUME, lost=LOST), "True", "NodeLost"),
        (situation(**MOVING, lost=LOST, trouble=CRASH), "False", "ModelMissing"),
        (situation(**MOVING, rolling=True, lost=LOST, outage=True), "True", "PlannedReplacement"),
        (situation(**MOVING, shrinking=True), "True", "ScalingDown"),
        (situation(**MOVING), "True", "Starting"),
        (situation(failure=FAILED), "False", "RolledBack"),
        (situation(**MOVING, rolling=True, failure=FAILED), "True", "RollingBack"),
        (situation(**MOVING, rolling=True, failure=FAILED, trouble=CRASH), "False", "ModelMissing"),
        (situation(**MOVING, rolling=True, failure=FAILED, outage=True), "True", "PlannedReplacement"),
        (situation(**MOVING, rolling=True, hold=PAUSED, mode="Paused"), "False", "Paused"),
        (situation(**MOVING, rolling=True, hold=CANARY, mode="Canary"), "True", "CanaryHold"),
        (situation(**MOVING, rolling=True, hold=CANARY, mode="Surge"), "True", "RollingOut"),
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
        (situation(failure=FAILED), "False", "RolledBack"),
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
        (situation(**MOVING, cardless=NO_CARD), "True", "WaitingForCard"),
        (situation(**MOVING, cardless=NO_CARD, handed=HANDED), "False", "CardHandedOver"),
        (situation(**MOVING, unschedulable=NO_MEMORY), "False", "Unschedulable"),
        (situation(**MOVING, unschedulable=NO_MEMORY, handed=HANDED), "False", "Unschedulable"),
        (situation(**MOVING, cardless=NO_CARD, unschedulable=NO_MEMORY), "True", "WaitingForCard"),
        (situation(**MOVING, unmounted=NO_CLAIM), "False", "VolumeNotReady"),
        (situation(**MOVING, unmounted=NO_VOLUME), "False", "Scheduled"),
        (situation(**MOVING, cardless=NO_CARD, resource_name=""), "False", "NoCardAsked"),
    ],
)
def test_waiting_for_card_is_about_cards_alone(found: Situation, status: str, reason: str) -> None:
    waiting = built(found)["WaitingForCard"]
    assert (waiting["status"], waiting["reason"]) == (status, reason)


@pytest.mark.parametrize("changes", [{}, {"rolling": True, "mode": "InPlace"}])
def test_a_pod_without_a_container_is_not_said_to_load_the_model(changes: dict[str, Any]) -> None:
    said = built(situation(**MOVING, **changes, unbegun=starting_pod("p")))["Progressing"]["message"]
    assert "load the model" not in said
    assert said.endswith(
        "pod p has no running container yet: node node-1 pulls its image or cannot mount a volume; "
        "kubectl describe pod p says which"
    )


def test_pods_without_a_node_are_not_said_to_load_the_model() -> None:
    said = built(situation(**MOVING, placed=False))["Progressing"]
    assert (said["reason"], said["message"]) == ("Starting", "pods wait to be placed on nodes")


@pytest.mark.parametrize(("still", "kind"), [(False, "Progressing"), (True, "RolloutStuck")])
def test_a_pod_that_no_node_takes_names_the_labels_it_asks_of_a_node(still: bool, kind: str) -> None:
    found = situation(**MOVING, proven=False, still=still, unschedulable=NO_NODE, node_labels={"npu": "910b"})
    assert built(found)[kind]["message"].startswith(
        "pod p: the scheduler says: node(s) didn't match Pod's node affinity/selector; "
        "no node has the labels npu=910b of spec.accelerator.nodeSelector"
    )


FREE_ONE = "free a card, add a node or lower the replicas"
LET_ONE = ", or set spec.rollout.strategy to Auto or InPlace: an old pod then gives its own"


@pytest.mark.parametrize(("strategy", "words"), [("Surge", FREE_ONE + LET_ONE), ("Auto", FREE_ONE)])
def test_only_with_strategy_surge_do_old_pods_keep_their_cards_to_the_end(strategy: str, words: str) -> None:
    found = situation(**MOVING, rolling=True, mode="Surge", strategy=strategy, cardless=NO_CARD, holders=("A",))
    said = built(found)["Progressing"]
    assert said["message"] == f"pod p waits for {CARD}, which A holds; {words}"


@pytest.mark.parametrize(("warmup_s", "words"), [(None, ""), (35.4, ", which took about 35 s the last time")])
def test_a_start_says_how_long_it_took_the_last_time(warmup_s: float | None, words: str) -> None:
    said = built(situation(**MOVING, expected_warmup_s=warmup_s))["Progressing"]
    assert said["message"] == f"pods load the model and warm every size{words}"


def test_pods_that_leave_are_said_to_take_the_drain_timeout_at_most() -> None:
    said = built(situation(**MOVING, shrinking=True))["Progressing"]
    assert said["message"] == "pods finish what they accepted before they leave, for spec.rollout.drainTimeout at most"


def test_a_rollout_that_stands_still_says_where_to_read_why() -> None:
    said = built(situation(**MOVING, proven=False, still=True))["RolloutStuck"]
    assert said["message"] == (
        "nothing has moved for the progress deadline, and no pod says why: read the events, "
        "kubectl describe deployments,replicasets,pods -l imageedit.dev/deployment=edit"
    )


def test_a_rollout_that_is_to_take_an_old_pods_card_does_not_promise_a_surge() -> None:
    said = built(situation(**MOVING, rolling=True, mode="Surge", cardless=NO_CARD, handed=HANDED))["Progressing"]
    assert (said["reason"], said["message"]) == ("RollingOut", f"to revision {HASH}: {HANDED}")


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        ((), f"waits for {CARD}; free"),
        (("A",), f"waits for {CARD}, which A holds; free"),
        (("A", "B"), f"waits for {CARD}, which A and B hold; free"),
        (("A", "B", "C"), f"waits for {CARD}, which A, B and C hold; free"),
        (("A", "B", "C", "D"), f"waits for {CARD}, which A, B, C and others hold; free"),
    ],
)
def test_waiting_for_card_names_who_holds_the_cards(holders: tuple[str, ...], words: str) -> None:
    found = built(situation(**MOVING, cardless=NO_CARD, holders=holders))
    assert words in found["WaitingForCard"]["message"]
    assert words in found["Progressing"]["message"]


@pytest.mark.parametrize(
    ("decision", "scaled_by", "active", "metrics"),
    [
        (None, "", ("False", "AutoscalingOff"), ("False", "AutoscalingOff")),
        (None, "kubectl", ("False", "ScaledByOthers"), ("False", "AutoscalingOff")),
        (GOOD, "kubectl", ("True", "QueueDepth"), ("True", "Fresh")),
        (HELD, "kubectl", ("False", "NoSeries"), ("False", "NoSeries")),
        (GOOD, "", ("True", "QueueDepth"), ("True", "Fresh")),
        (replace(GOOD, reason="HoldWindow"), "", ("True", "QueueDepth"), ("True", "Fresh")),
        (replace(GOOD, reason="CardsExhausted", limited=True), "", ("True", "CardsExhausted"), ("True", "Fresh")),
        (HELD, "", ("False", "NoSeries"), ("False", "NoSeries")),
        (replace(HELD, reason="SomethingNew"), "", ("False", "MetricsMissing"), ("False", "MetricsMissing")),
    ],
)
def test_scaling_and_metrics_follow_the_table(
    decision: Decision | None, scaled_by: str, active: tuple[str, str], metrics: tuple[str, str]
) -> None:
    made = built(situation(decision=decision, scaled_by=scaled_by))
    assert (made["ScalingActive"]["status"], made["ScalingActive"]["reason"]) == active
    assert (made["MetricsAvailable"]["status"], made["MetricsAvailable"]["reason"]) == metrics


@pytest.mark.parametrize("decision", [None, GOOD, HELD])
def test_who_writes_replicas_is_named_and_told_whether_that_has_an_effect(decision: Decision | None) -> None:
    message = built(situation(decision=decision, scaled_by="kube-controller-manager"))["ScalingActive"]["message"]
    assert "kube-controller-manager" in message
    assert ("has no effect" in message) is (decision is not None)


NEVER_GOOD: dict[str, Any] = {**MOVING, "proven": False}


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (situation(failure=FAILED), "True", "RolledBack"),
        (situation(**MOVING, failure=FAILED), "True", "RolledBack"),
        (situation(), "False", "NoRollout"),
        (situation(**MOVING, trouble=CRASH), "False", "NoRollout"),
        (situation(**MOVING, rolling=True, trouble=CRASH), "True", "ModelMissing"),
        (situation(**NEVER_GOOD, trouble=CRASH), "True", "ModelMissing"),
        (situation(**NEVER_GOOD, rolling=True, still=True, hold=PAUSED, mode="Paused"), "False", "Paused"),
        (situation(**NEVER_GOOD, rolling=True, still=True, hold=CANARY, mode="Canary"), "False", "CanaryHold"),
        (situation(**NEVER_GOOD, still=True, cardless=NO_CARD), "True", "WaitingForCard"),
        (situation(**NEVER_GOOD, still=True, unschedulable=NO_MEMORY), "True", "Unschedulable"),
        (situation(**NEVER_GOOD, still=True, unmounted=NO_CLAIM), "True", "VolumeNotReady"),
        (situation(**NEVER_GOOD, still=True), "True", "NoProgress"),
        (situation(**NEVER_GOOD), "False", "Moving"),
    ],
)
def test_rollout_stuck_follows_the_table(found: Situation, status: str, reason: str) -> None:
    stuck = built(found)["RolloutStuck"]
    assert (stuck["status"], stuck["reason"]) == (status, reason)


def test_a_roll_back_says_what_failed_and_how_to_try_again() -> None:
    assert built(situation(failure=FAILED))["Progressing"]["message"] == (
        f"revision {OLD} failed: pod p: flat; all pods serve revision {HASH} again; "
        "change the spec, or the annotation imageedit.dev/restarted-at, to try again"
    )


def test_a_stopped_rollout_says_that_the_old_revision_serves_on() -> None:
    words = built(situation(trouble=CRASH, mode="Stopped"))["Progressing"]["message"]
    assert words == f"{CRASH.message}; the rollout stops here and the old revision serves on"


@pytest.mark.parametrize(
    ("length", "strategy", "words"),
    [
        (35.4, "Auto", f"{ABOUT}, because no card is free"),
        (None, "Auto", f"{UNKNOWN}, because no card is free"),
        (35.4, "InPlace", f"{ABOUT}, because the strategy is InPlace"),
        (35.4, "Recreate", f"{ABOUT}, because the strategy is Recreate"),
    ],
)
def test_a_planned_outage_is_announced_with_its_length(length: float | None, strategy: str, words: str) -> None:
    expected = {"expected_drain_s": 5.0, "expected_handover_s": 6.0, "expected_start_s": length}
    found = situation(complete=False, rolling=True, outage=True, strategy=strategy, placed=False, **expected)
    assert built(found)["Progressing"]["message"] == f"planned replacement: {words}"


def test_an_outage_for_want_of_memory_is_not_laid_to_cards() -> None:
    found = situation(complete=False, rolling=True, outage=True, unschedulable=NO_MEMORY)
    assert built(found)["Progressing"]["message"].endswith("because the new pod finds no other place")


def test_an_announced_outage_keeps_its_words_while_it_lasts() -> None:
    before = {
        "rollout": {"revision": HASH},
        "conditions": [{"type": "Progressing", "reason": "PlannedReplacement", "message": "as announced"}],
    }
    found = situation(complete=False, serving=0, rolling=True, outage=True)
    assert built(found, before)["Progressing"]["message"] == "as announced"
    other = {**before, "rollout": {"revision": OLD}}
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


SICK = Trouble(reason="DeviceUnhealthy", message="pod p sits on card c0 of node n, which is sick")


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (situation(degraded=SICK), "True", "DeviceUnhealthy"),
        (situation(degraded=SICK, trouble=CRASH), "True", "DeviceUnhealthy"),
        (situation(trouble=CRASH), "True", "ModelMissing"),
        (situation(), "False", "NoFault"),
    ],
)
def test_degraded_follows_the_table(found: Situation, status: str, reason: str) -> None:
    degraded = built(found)["Degraded"]
    assert (degraded["status"], degraded["reason"]) == (status, reason)


def test_pods_on_sick_cards_that_serve_are_ready_and_degraded() -> None:
    said = built(situation(degraded=SICK))
    assert [said[kind]["status"] for kind in ("Available", "Ready", "Degraded")] == ["True", "True", "True"]


@pytest.mark.parametrize(("rolling", "reason"), [(False, "DeviceUnhealthy"), (True, "RollingOut")])
def test_a_replacement_for_a_sick_card_is_progress_unless_a_rollout_is(rolling: bool, reason: str) -> None:
    said = built(situation(**MOVING, degraded=SICK, rolling=rolling, mode="Surge"))["Progressing"]
    assert (said["status"], said["reason"]) == ("True", reason)
