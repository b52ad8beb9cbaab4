"""Plans carried out by a model cluster: what holds on every way from one state to the next."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import QueueSample
from unit.operator_core.builders import autoscaling, manifest
from unit.operator_core.cluster_model import Cluster


def cluster(*, replicas: int = 2, cards: int = 2, strategy: str = "Auto", **more: Any) -> Cluster:
    spec = more.pop("spec", {})
    return Cluster(
        manifest=manifest(replicas=replicas, rollout={"strategy": strategy}, **spec),
        cards=cards,
        **more,
    )


def test_a_fresh_resource_starts_all_pods_at_once() -> None:
    model = cluster(replicas=3, cards=3)
    model.run(2)
    assert len(model.active) == 3
    model.settle()
    assert model.status["phase"] == "Serving"
    assert model.status["ready"] == "3/3"
    assert model.condition("Ready")["status"] == "True"


def test_at_rest_a_plan_has_no_actions_and_the_same_status() -> None:
    model = cluster()
    model.settle()
    before = model.status
    model.run(200)
    assert model.last is not None
    assert model.last.actions == ()
    assert model.status == before
    assert model.last.requeue_after_s == 1200


def test_with_a_free_card_a_rollout_never_serves_below_the_wanted_number() -> None:
    model = cluster(replicas=2, cards=3, load=True)
    model.settle()
    model.roll_to("b")
    for _ in range(120):
        model.tick()
        assert len(model.serving) >= 2
    assert {pod.hash for pod in model.active} == {model.hash}
    assert model.most_pods == 3


def test_without_a_free_card_a_rollout_gives_up_one_pod_at_a_time() -> None:
    model = cluster(replicas=2, cards=2, load=True)
    model.settle()
    model.roll_to("b")
    fewest = 2
    for _ in range(120):
        model.tick()
        fewest = min(fewest, len(model.serving))
    assert fewest == 1
    assert {pod.hash for pod in model.active} == {model.hash}
    assert model.condition("Ready")["status"] == "True"


def test_one_card_and_one_pod_roll_with_the_outage_in_the_condition() -> None:
    model = cluster(replicas=1, cards=1, load=True)
    model.settle()
    model.roll_to("b")
    messages = set()
    for _ in range(60):
        model.tick()
        if not model.serving:
            messages.add(model.condition("Progressing")["message"])
    assert any(
        message.endswith(" to hand its place over, 11 s to start), because no card is free") for message in messages
    )
    assert all(message.startswith("planned replacement") for message in messages)
    assert [event.reason for event in model.events].count("PlannedOutage") == 1
    assert model.condition("Ready")["status"] == "True"


def test_strategy_surge_waits_for_the_card_and_says_so() -> None:
    model = cluster(replicas=1, cards=1, strategy="Surge")
    model.settle()
    model.roll_to("b")
    model.run(100)
    assert len(model.serving) == 1
    assert model.condition("WaitingForCard")["status"] == "True"
    assert model.condition("Progressing")["reason"] == "WaitingForCard"
    model.cards = 2
    model.settle()
    assert model.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("cards_known", [True, False])
@pytest.mark.parametrize(("replicas", "strategy"), [(1, "Auto"), (2, "Auto"), (2, "InPlace")])
def test_a_rollout_that_frees_the_card_itself_asks_nobody_for_one(
    replicas: int, strategy: str, cards_known: bool
) -> None:
    model = cluster(replicas=replicas, cards=replicas, strategy=strategy, load=True, cards_known=cards_known)
    model.settle()
    model.roll_to("b")
    said = set()
    for _ in range(180):
        model.tick()
        said.add((model.condition("WaitingForCard")["status"], model.condition("WaitingForCard")["reason"]))
    assert said == {("False", "Scheduled"), ("False", "CardHandedOver")}
    assert model.condition("Ready")["status"] == "True"


def test_a_card_that_goes_away_with_its_pod_is_asked_for_again() -> None:
    model = cluster(replicas=1, cards=1)
    model.settle()
    model.roll_to("b")
    model.run(3)
    assert model.condition("WaitingForCard")["reason"] == "CardHandedOver"
    model.cards = 0
    model.run(60)
    assert model.condition("WaitingForCard")["status"] == "True"


def test_going_there_and_back_and_there_again_tells_of_each_rollout() -> None:
    model = cluster(replicas=1, cards=1)
    model.settle()
    for revision in ("b", "a", "b"):
        model.roll_to(revision)
        model.settle()
    for reason, times in (("RolloutStarted", 3), ("PlannedOutage", 3), ("RolloutCompleted", 4)):
        told = [event for event in model.events if event.reason == reason]
        assert len(told) == len(set(told)) == times, reason


def told(model: Cluster, *reasons: str) -> list[str]:
    """Events of these reasons, as a cluster keeps them: one that repeats itself is one."""
    return [event.reason for event in dict.fromkeys(model.events) if event.reason in reasons]


@pytest.mark.parametrize("behaviour", ["good", "crash", "claim"])
@pytest.mark.parametrize("ticks", [1, 3, 5, 8])
@pytest.mark.parametrize(("replicas", "cards"), [(1, 1), (2, 2), (2, 3)])
def test_going_back_before_the_new_revision_was_complete_tells_that_the_rollout_ended(
    behaviour: str, ticks: int, replicas: int, cards: int
) -> None:
    model = cluster(replicas=replicas, cards=cards, strategy="Auto", behaviour={"b": behaviour}, load=True)
    model.settle()
    model.events.clear()
    good = model.hash
    model.roll_to("b")
    model.run(ticks)
    assert model.status["lastGoodRevision"] == good
    model.roll_to("a")
    for _ in range(60):
        model.tick()
        model.restart_operator()
    assert model.condition("Ready")["status"] == "True"
    assert told(model, "RolloutStarted", "RolloutCompleted") == ["RolloutStarted", "RolloutStarted", "RolloutCompleted"]


def test_going_back_after_the_operator_went_back_by_itself_ends_the_rollout_too() -> None:
    model = cluster(replicas=1, cards=2, behaviour={"b": "crash"})
    model.settle()
    model.events.clear()
    model.roll_to("b")
    model.run(60)
    assert model.condition("Progressing")["reason"] == "RolledBack"
    model.roll_to("a")
    model.run(20)
    assert told(model, "RolloutStarted", "RolloutCompleted") == ["RolloutStarted", "RolloutStarted", "RolloutCompleted"]


def test_pods_that_come_or_go_without_a_rollout_end_none() -> None:
    model = cluster(replicas=2, cards=3)
    model.settle()
    model.events.clear()
    model.change(replicas=3)
    model.settle()
    model.restart_container(model.pods[0])
    model.settle()
    model.delete(model.pods[0])
    model.settle()
    model.change(replicas=0)
    model.settle()
    model.change(replicas=2)
    model.settle()
    assert told(model, "RolloutStarted", "RolloutCompleted") == []


@pytest.mark.parametrize(("replicas", "strategy"), [(2, "Auto"), (3, "InPlace"), (2, "Recreate")])
def test_a_rollout_is_named_as_one_until_all_pods_serve(replicas: int, strategy: str) -> None:
    model = cluster(replicas=replicas, cards=replicas, strategy=strategy)
    model.settle()
    model.roll_to("b")
    phases = []
    for _ in range(120):
        model.tick()
        phases.append((model.status["phase"], model.condition("Ready")["status"]))
    assert set(phases) == {("RollingOut", "False"), ("Serving", "True")}


def test_a_first_start_is_no_rollout() -> None:
    model = cluster(replicas=2, cards=1)
    model.run(30)
    assert model.status["phase"] == "Serving"
    assert model.condition("Progressing")["reason"] == "WaitingForCard"


def test_strategy_recreate_never_has_pods_of_two_revisions() -> None:
    model = cluster(replicas=2, cards=4, strategy="Recreate", load=True)
    model.settle()
    model.roll_to("b")
    for _ in range(60):
        model.tick()
        assert len({pod.hash for pod in model.active}) <= 1
    assert model.condition("Ready")["status"] == "True"


def test_strategy_in_place_takes_no_more_than_one_pod_down() -> None:
    model = cluster(replicas=3, cards=3, strategy="InPlace", load=True)
    model.settle()
    model.roll_to("b")
    for _ in range(200):
        model.tick()
        assert len(model.serving) >= 2
    assert model.condition("Ready")["status"] == "True"


def test_unknown_cards_fall_back_to_in_place_after_the_grace_time() -> None:
    model = cluster(replicas=1, cards=1, cards_known=False)
    model.settle()
    model.roll_to("b")
    model.run(25)
    assert len(model.serving) == 1
    model.settle()
    assert model.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("fault", "reason"), [("crash", "ModelMissing"), ("image", "ImagePull"), ("check", "CheckFailed")]
)
@pytest.mark.parametrize("cards", [2, 3])
def test_a_bad_revision_stops_at_its_first_pod_and_a_fix_rolls(fault: str, reason: str, cards: int) -> None:
    model = cluster(replicas=2, cards=cards, load=True, behaviour={"b": fault})
    model.settle()
    model.change(rollout={"rollbackOnFailure": False})
    model.roll_to("b")
    model.run(100)
    assert len(model.serving) >= cards - 1
    assert model.status["phase"] == "Degraded"
    assert model.condition("Progressing")["reason"] == reason
    assert model.condition("Available")["status"] == "True"
    model.roll_to("c")
    model.settle()
    assert model.status["ready"] == "2/2"
    assert model.condition("Ready")["status"] == "True"


def test_a_revision_that_never_served_is_replaced_at_once() -> None:
    model = cluster(replicas=2, cards=2, behaviour={"a": "crash"})
    model.run(20)
    assert model.condition("Available")["reason"] == "ModelMissing"
    model.roll_to("b")
    model.run(4)
    assert {pod.hash for pod in model.active} == {model.hash}
    model.settle()
    assert model.status["ready"] == "2/2"


def test_going_back_reuses_the_first_deployment() -> None:
    model = cluster(replicas=2, cards=3)
    model.settle()
    first = model.hash
    uid = model.deployments[f"edit-{first}"].uid
    model.roll_to("b")
    model.run(8)
    model.roll_to("a")
    model.settle()
    assert model.hash == first
    assert model.deployments[f"edit-{first}"].uid == uid
    assert model.status["ready"] == "2/2"


def test_going_back_writes_the_first_deployment_anew_once_when_the_operator_renders_other_pods() -> None:
    model = cluster(replicas=2, cards=3, load=True)
    model.settle()
    first = model.hash
    uid = model.deployments[f"edit-{first}"].uid
    model.roll_to("b")
    model.settle()
    model.upgrade_operator()
    assert model.settle() <= 3
    serving = {pod.uid for pod in model.active}
    model.run(20)
    assert {pod.uid for pod in model.active} == serving

    model.roll_to("a")
    model.tick()
    anew = model.deployments[f"edit-{first}"].uid
    assert anew != uid
    model.settle()
    assert model.deployments[f"edit-{first}"].uid == anew
    assert (model.status["ready"], model.violations) == ("2/2", [])


def test_only_three_old_deployments_are_kept() -> None:
    model = cluster(replicas=1, cards=2)
    for revision in "abcdefg":
        model.roll_to(revision)
        model.settle()
    assert len(model.deployments) == 4


def test_a_restarted_container_loses_its_gate_until_it_is_warm_again() -> None:
    model = cluster(replicas=1, cards=1)
    model.settle()
    model.restart_container(model.active[0])
    model.tick()
    assert model.active[0].gate is False
    assert model.active[0].gate_reason == "ContainerRestarted"
    model.settle()
    assert model.active[0].ready
    assert model.active[0].container_id in model.active[0].gate_message


def test_failed_pods_are_swept() -> None:
    model = cluster(replicas=1, cards=1)
    model.settle()
    victim = model.active[0]
    victim.failed, victim.ready = True, False
    model.settle()
    assert victim not in model.pods
    assert model.status["ready"] == "1/1"
    assert "UnexpectedAdmission" in [event.reason for event in model.events]


def test_scaling_up_while_a_victim_drains_does_not_count_the_victim() -> None:
    model = cluster(replicas=2, cards=3, load=True, job_ticks=20)
    model.settle()
    model.change(replicas=1)
    model.run(3)
    assert [pod.gate_reason for pod in model.active].count("Draining") == 1
    model.change(replicas=2)
    model.run(8)
    assert len(model.serving) == 2
    model.settle()
    assert model.status["ready"] == "2/2"
    assert model.violations == []


def test_scaling_up_while_a_victim_drains_on_the_last_card_still_converges() -> None:
    model = cluster(replicas=2, cards=2, load=True, job_ticks=10)
    model.settle()
    model.change(replicas=1)
    model.run(3)
    model.change(replicas=2)
    model.settle()
    assert model.status["ready"] == "2/2"
    assert model.violations == []


def test_replicas_zero_stops_without_losing_work() -> None:
    model = cluster(replicas=2, cards=2, load=True, job_ticks=6)
    model.settle()
    model.change(replicas=0)
    model.settle()
    assert model.active == []
    assert model.status["phase"] == "Stopped"
    assert model.condition("Ready")["reason"] == "Stopped"
    assert model.violations == []


def test_pods_that_ask_for_no_card_always_surge() -> None:
    model = cluster(replicas=1, cards=0, spec={"accelerator": {"device": "cpu", "resourceName": ""}})
    model.settle()
    model.roll_to("b")
    for _ in range(60):
        model.tick()
        assert len(model.serving) >= 1
    assert model.condition("WaitingForCard")["reason"] == "NoCardAsked"


def test_the_queue_scales_up_at_once_and_down_after_the_window() -> None:
    model = cluster(cards=4, spec={"autoscaling": autoscaling(hold="1m")})
    model.queue = queue(0)
    model.settle()
    model.queue = queue(6)
    model.run(2)
    assert len(model.active) == 3
    model.settle()
    assert model.status["ready"] == "3/3"
    assert model.status["scaling"]["decision"] == "1 -> 3"
    model.queue = queue(0)
    model.run(25)
    assert model.status["desiredReplicas"] == 3
    model.run(10)
    assert model.status["desiredReplicas"] == 1
    model.settle()
    assert model.status["ready"] == "1/1"


def test_losing_the_memory_only_delays_a_scale_down() -> None:
    model = cluster(cards=4, spec={"autoscaling": autoscaling(hold="1m")})
    model.queue = queue(6)
    model.settle()
    model.queue = queue(0)
    for _ in range(10):
        model.run(20)
        model.restart_operator()
        assert model.status["desiredReplicas"] == 3


def test_missing_data_never_scales_down() -> None:
    model = cluster(cards=4, spec={"autoscaling": autoscaling(hold="10s")})
    model.queue = queue(6)
    model.settle()
    model.queue = Unknown(reason="NoSeries", message="no series for this deployment")
    model.run(100)
    assert model.status["desiredReplicas"] == 3
    assert model.condition("MetricsAvailable")["reason"] == "NoSeries"
    assert model.condition("ScalingActive")["status"] == "False"


def queue(total: float, pods: int = 100) -> Known[QueueSample]:
    return Known(value=QueueSample(waiting=total, running=0.0, pods=pods))


changes = st.lists(
    st.tuples(
        st.sampled_from(["roll", "scale", "restart", "operator", "strategy", "fail", "cards", "upgrade"]),
        st.integers(min_value=0, max_value=4),
        st.integers(min_value=1, max_value=25),
    ),
    max_size=6,
)


@st.composite
def troubled_clusters(draw: st.DrawFn) -> Cluster:
    """A cluster after a life of changes, failures, slow controllers and restarts."""
    model = cluster(
        replicas=2,
        cards=draw(st.integers(min_value=1, max_value=4)),
        cards_known=draw(st.booleans()),
        seed=draw(st.integers(min_value=0, max_value=10_000)),
        lazy_controllers=draw(st.booleans()),
        load=True,
        job_ticks=draw(st.integers(min_value=1, max_value=8)),
        behaviour={"d": "crash", "e": "check"},
    )
    for what, number, ticks in draw(changes):
        apply(model, what, number)
        model.run(ticks)
    return model


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=troubled_clusters())
def test_whatever_happens_no_busy_pod_is_removed_and_the_end_is_reached(model: Cluster) -> None:
    model.cards = 5
    model.change(rollout={"strategy": "Auto"})
    if model.manifest["spec"]["model"]["revision"] in model.behaviour:
        model.roll_to("a")
    model.lazy_controllers = False
    model.settle()
    assert model.violations == []
    wanted = model.manifest["spec"]["replicas"]
    assert model.status["ready"] == f"{wanted}/{wanted}"
    assert {pod.hash for pod in model.active} <= {model.hash}


def apply(model: Cluster, what: str, number: int) -> None:
    match what:
        case "roll":
            model.roll_to("abcde"[number])
        case "scale":
            model.change(replicas=number)
        case "restart" if model.active:
            pod = model.active[number % len(model.active)]
            if pod.started:
                model.restart_container(pod)
        case "operator":
            model.restart_operator()
        case "strategy":
            model.change(rollout={"strategy": ["Auto", "Surge", "InPlace", "Recreate", "Auto"][number]})
        case "fail" if model.active:
            pod = model.active[number % len(model.active)]
            pod.failed, pod.ready, pod.running = True, False, 0
        case "cards":
            model.cards = max(1, number)
        case "upgrade":
            model.upgrade_operator()
        case _:
            pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    replicas=st.integers(min_value=1, max_value=4),
    spare=st.integers(min_value=0, max_value=2),
    seed=st.integers(min_value=0, max_value=10_000),
    strategy=st.sampled_from(["Auto", "Surge", "InPlace"]),
    lazy=st.booleans(),
)
def test_a_rollout_keeps_its_ceiling_and_its_floor(
    replicas: int, spare: int, seed: int, strategy: str, lazy: bool
) -> None:
    spare = max(spare, 1) if strategy == "Surge" else spare
    model = cluster(replicas=replicas, cards=replicas + spare, strategy=strategy, seed=seed, load=True)
    model.settle()
    model.roll_to("b")
    model.lazy_controllers = lazy
    floor = replicas if spare and strategy != "InPlace" else replicas - 1
    for _ in range(600):
        model.tick()
        assert len(model.active) <= replicas + 1
        assert len(model.serving) >= floor
        if model.condition("Ready")["status"] == "True" and model.status["updateRevision"] == model.hash:
            break
    assert model.status["ready"] == f"{replicas}/{replicas}"
    assert model.violations == []
