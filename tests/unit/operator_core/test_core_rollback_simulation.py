"""Bad revisions and restarts, carried out by a model cluster."""

from __future__ import annotations

import pytest

from imageedit_operator.core import history
from unit.operator_core.simulated import SOON, cluster, hashes, settled


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "ModelMissing"),
        ("image", "ImagePull"),
        ("check", "CheckFailed"),
        ("never", "WarmupTimeout"),
        ("claim", "VolumeNotReady"),
    ],
)
@pytest.mark.parametrize(("replicas", "cards"), [(2, 2), (2, 3), (1, 1)])
def test_a_bad_revision_is_rolled_back_and_remembered(fault: str, reason: str, replicas: int, cards: int) -> None:
    model, good = settled(replicas=replicas, cards=cards, rollout=SOON, load=True, behaviour={"b": fault})
    model.roll_to("b")
    model.settle()
    assert hashes(model) == {good}
    assert model.status["ready"] == f"{replicas}/{replicas}"
    assert model.status["failedRevision"] == model.status["updateRevision"] == model.hash
    assert model.status["failure"]["reason"] == reason
    assert model.status["lastGoodRevision"] == good
    for kind, status in [("Ready", "False"), ("Progressing", "False"), ("RolloutStuck", "True"), ("Available", "True")]:
        assert (model.condition(kind)["status"], kind) == (status, kind)
    assert {model.condition(kind)["reason"] for kind in ("Ready", "Progressing", "RolloutStuck")} == {"RolledBack"}
    assert model.violations == []


def test_a_failed_revision_is_not_tried_again_until_the_spec_changes() -> None:
    model, good = settled(behaviour={"b": "crash"})
    model.roll_to("b")
    model.settle()
    for _ in range(300):
        model.tick()
        assert hashes(model) == {good}
    model.change(replicas=1)
    model.settle()
    assert hashes(model) == {good}
    model.behaviour.clear()
    model.annotate("restarted-at", "2026-11-30T08:00:00Z")
    model.settle()
    assert model.condition("Ready")["status"] == "True"
    assert "failedRevision" not in model.status
    assert hashes(model) == {model.hash}


def test_a_bad_revision_is_told_once() -> None:
    model, _ = settled(behaviour={"b": "crash"})
    model.roll_to("b")
    model.settle()
    told = [event.reason for event in model.events]
    assert told[-4:] == ["RolloutStarted", "ModelMissing", "RevisionFailed", "RolledBack"]


def test_going_back_by_hand_after_a_roll_back_moves_no_pod() -> None:
    model, good = settled(behaviour={"b": "crash"})
    model.roll_to("b")
    model.settle()
    names = {pod.name for pod in model.active}
    model.roll_to("a")
    model.settle()
    assert model.hash == good
    assert {pod.name for pod in model.active} == names
    assert model.condition("Ready")["status"] == "True"
    assert model.condition("RolloutStuck")["reason"] == "NoRollout"


def test_a_revision_that_fails_half_way_is_taken_back_pod_by_pod() -> None:
    model, good = settled(replicas=3, cards=4, load=True, rollout=SOON)
    model.roll_to("b")
    while sum(pod.ready for pod in model.active if pod.hash == model.hash) < 1:
        model.tick()
    model.behaviour[model.hash] = "never"
    for _ in range(400):
        model.tick()
        assert len(model.serving) >= 2
    assert hashes(model) == {good}
    assert model.violations == []


def test_without_a_good_revision_a_start_goes_on_trying_and_is_stuck_with_a_reason() -> None:
    model = cluster(behaviour={"a": "check"})
    model.run(200)
    assert model.condition("RolloutStuck")["reason"] == "CheckFailed"
    assert "failedRevision" not in model.status
    model.behaviour.clear()
    model.settle()
    assert model.condition("Ready")["status"] == "True"


def test_the_first_revision_may_take_an_hour() -> None:
    model = cluster(behaviour={"a": "never"})
    model.run(1790)
    assert model.condition("Progressing")["reason"] == "Starting"
    model.run(20)
    assert model.condition("RolloutStuck")["reason"] == "WarmupTimeout"


def test_without_roll_back_a_bad_revision_stops_and_stays() -> None:
    model, _ = settled(cards=3, behaviour={"b": "check"}, rollout={"rollbackOnFailure": False})
    model.roll_to("b")
    model.run(300)
    assert len(model.serving) == 2
    assert model.condition("RolloutStuck")["reason"] == "CheckFailed"
    model.change(rollout={})
    model.settle()
    assert model.condition("RolloutStuck")["reason"] == "RolledBack"


def test_other_files_under_the_same_path_are_refused() -> None:
    model, good = settled(cards=3)
    model.files = "sha256:cd"
    model.annotate("restarted-at", "now")
    model.settle()
    assert model.status["failure"]["reason"] == "DigestMismatch"
    assert hashes(model) == {good}
    model.roll_to("b")
    model.settle()
    assert model.condition("Ready")["status"] == "True"
    assert [entry["digest"] for entry in model.status["revisions"]] == ["sha256:ab", "sha256:ab", "sha256:cd"]


def test_a_new_pod_of_the_serving_revision_with_other_files_gets_no_request() -> None:
    model, _ = settled(replicas=1, cards=3)
    model.files = "sha256:cd"
    model.change(replicas=2)
    model.settle()
    assert len(model.serving) == 1
    assert model.condition("Progressing")["reason"] == "DigestMismatch"
    assert model.condition("RolloutStuck")["status"] == "False"


@pytest.mark.parametrize(("replicas", "total"), [((1, 1), 3), ((2, 2), 5), ((2, 2), 4), ((1, 3), 5)])
def test_two_resources_that_count_on_the_same_card_both_end(replicas: tuple[int, int], total: int) -> None:
    models = [cluster(replicas=number, cards=total, load=True, job_ticks=9, seed=number) for number in replicas]

    def together(ticks: int) -> None:
        for _ in range(ticks):
            for one, other in (models, models[::-1]):
                one.cards = total - sum(bool(pod.node) for pod in other.pods)
                one.tick()

    together(20)
    for model in models:
        model.roll_to("b")
    for _ in range(300):
        together(1)
        for model, number in zip(models, replicas, strict=True):
            assert len(model.serving) >= number - 1
    for model in models:
        assert model.condition("Ready")["status"] == "True"
        assert model.violations == []


@pytest.mark.parametrize("lazy", [False, True])
def test_a_card_that_comes_free_after_a_long_drain_does_not_cost_a_second_pod(lazy: bool) -> None:
    model, _ = settled(replicas=3, cards=3, load=True, job_ticks=60)
    model.lazy_controllers = lazy
    model.roll_to("b")
    for _ in range(600):
        model.tick()
        assert len(model.serving) >= 2
    assert model.condition("Ready")["status"] == "True"


def test_a_restart_annotation_replaces_every_pod_without_a_gap() -> None:
    model, old = settled(cards=3, load=True)
    before = {pod.name for pod in model.active}
    model.annotate("restarted-at", "2026-11-30T08:00:00Z")
    for _ in range(100):
        model.tick()
        assert len(model.serving) >= 2
    assert before & {pod.name for pod in model.active} == set()
    assert model.hash != old


def test_the_history_keeps_the_last_good_revision_beyond_its_limit() -> None:
    model, good = settled(behaviour=dict.fromkeys("bcdef", "crash"))
    model.change(revisionHistoryLimit=0)
    for revision in "bcdef":
        model.roll_to(revision)
        model.settle()
        assert hashes(model) == {good}
    assert {item.hash for item in model.deployments.values()} == {good, model.hash}


def test_a_revision_that_served_outlives_mistakes_that_were_made_after_it() -> None:
    model, first = settled(behaviour=dict.fromkeys("cd", "crash"))
    model.change(revisionHistoryLimit=1)
    model.roll_to("b")
    model.settle()
    second = model.hash
    for mistake in "cd":
        model.roll_to(mistake)
        model.settle()
    assert {item.hash for item in model.deployments.values()} == {first, second, model.hash}


def test_a_revision_is_marked_at_each_rollout_to_it_that_ends_and_at_rest_no_mark_moves() -> None:
    model, first = settled()
    model.roll_to("b")
    model.settle()
    second = model.hash
    ended = dict(model.status)
    model.run(20)
    assert model.status == ended
    model.change(replicas=1)
    model.settle()
    marks = history.completed(model.status["revisions"])
    assert marks == history.completed(ended["revisions"])
    assert marks[first] < marks[second]
    model.roll_to("a")
    model.settle()
    again = history.completed(model.status["revisions"])
    assert again[second] == marks[second] < again[first]
