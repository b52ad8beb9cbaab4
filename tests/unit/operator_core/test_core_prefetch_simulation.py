"""Copies and rollouts together, in the model cluster: copies come first, and serving never waits for them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imageedit_operator.core.prefetch import AT_ONCE
from unit.operator_core.builders import manifest
from unit.operator_core.cluster_model import Cluster

MODEL = {
    "name": "qwen",
    "revision": "a",
    "source": {"pvc": {"claimName": "models"}},
    "prefetch": {"hostPath": {"path": "/data/copies"}},
}


def cluster(*, replicas: int = 2, cards: int = 3, nodes: int = 3, **more: Any) -> Cluster:
    names = tuple(f"n{number}" for number in range(nodes))
    return Cluster(manifest=manifest(replicas=replicas, model=MODEL), cards=cards, nodes=names, load=True, **more)


def has_all_copies(model: Cluster) -> bool:
    return all((model.wanted_copies[model.hash], node) in model.copies for node in model.nodes)


def test_a_first_start_waits_for_the_copies_and_then_no_pod_waits_on_its_node() -> None:
    model = cluster()
    model.run(3)
    assert model.active == []
    assert model.condition("Progressing")["reason"] == "Prefetching"
    assert "0 of 3 nodes have theirs" in model.condition("Progressing")["message"]
    model.settle()
    assert model.status["ready"] == "2/2"
    assert model.status["prefetch"] == {"wanted": 3, "ready": 3, "failed": 0}


def test_no_old_pod_drains_and_no_new_one_starts_before_every_node_has_its_copy() -> None:
    model = cluster()
    model.settle()
    old = model.hash
    model.roll_to("b")
    model.tick()
    while not has_all_copies(model):
        assert {pod.hash for pod in model.active} == {old}
        assert len(model.serving) == 2
        assert not any(pod.draining for pod in model.active)
        model.tick()
    model.settle()
    assert {pod.hash for pod in model.active} == {model.hash}


def test_while_copies_are_made_the_old_revision_grows_and_shrinks() -> None:
    model = cluster(cards=4)
    model.settle()
    model.copy_ticks = 10_000
    model.roll_to("b")
    model.change(replicas=3)
    model.run(30)
    assert len(model.serving) == 3
    model.change(replicas=1)
    model.run(60)
    assert len(model.serving) == 1
    assert model.condition("Progressing")["reason"] == "Prefetching"


def test_a_service_that_was_stopped_starts_with_the_good_revision_while_the_new_one_is_copied() -> None:
    model = cluster()
    model.settle()
    old = model.hash
    model.change(replicas=0)
    model.settle()
    model.copy_ticks = 10_000
    model.roll_to("b")
    model.change(replicas=1)
    model.run(20)
    assert [pod.hash for pod in model.serving] == [old]


def test_a_failed_copy_stops_the_rollout_with_its_words_and_serving_goes_on() -> None:
    model = cluster()
    model.settle()
    model.bad_nodes = frozenset({"n1"})
    model.roll_to("b")
    model.run(100)
    assert len(model.serving) == 2
    assert model.condition("Available")["status"] == "True"
    assert model.condition("Progressing")["status"] == "False"
    for kind in ("Progressing", "RolloutStuck", "Ready"):
        assert model.condition(kind)["reason"] == "PrefetchFailed"
    assert "node n1: ModelInvalid: transformer/x is not the file" in model.condition("RolloutStuck")["message"]
    assert [event.reason for event in model.events].count("PrefetchFailed") == 1
    assert "failedRevision" not in model.status
    assert model.last is not None
    assert model.last.actions == ()


def test_a_failed_copy_is_tried_again_when_its_job_is_deleted_or_the_spec_changes() -> None:
    model = cluster()
    model.settle()
    model.bad_nodes = frozenset({"n1"})
    model.roll_to("b")
    model.run(30)
    model.bad_nodes = frozenset()
    (failed,) = (job for job in model.jobs.values() if job.place == "n1" and not job.ended_at)
    del model.jobs[failed.name]
    model.settle()
    assert model.status["ready"] == "2/2"
    model.bad_nodes = frozenset({"n1"})
    model.roll_to("c")
    model.run(30)
    model.bad_nodes = frozenset()
    model.annotate("restarted-at", "now")
    model.settle()
    assert model.condition("Ready")["status"] == "True"


def test_a_node_that_comes_later_gets_its_copy_without_a_word_about_the_rollout() -> None:
    model = cluster()
    model.settle()
    model.nodes = (*model.nodes, "late")
    model.tick()
    assert model.condition("Ready")["status"] == "True"
    model.settle()
    assert model.status["prefetch"] == {"wanted": 4, "ready": 4, "failed": 0}
    assert model.condition("Progressing")["reason"] == "Complete"


def test_while_a_late_node_gets_its_copy_the_operator_looks_every_five_seconds() -> None:
    model = cluster()
    model.settle()
    model.nodes = (*model.nodes, "late")
    model.run(2)
    assert model.last is not None
    assert busy(model)
    assert (model.last.actions, model.last.requeue_after_s) == ((), 5.0)


def test_a_revision_that_was_rolled_back_is_copied_nowhere_any_more() -> None:
    model = cluster(behaviour={"b": "crash"})
    model.settle()
    model.roll_to("b")
    model.settle()
    assert model.condition("RolloutStuck")["reason"] == "RolledBack"
    model.nodes = (*model.nodes, "late")
    model.run(10)
    assert not any(job.place == "late" for job in model.jobs.values())
    assert "prefetch" not in model.status
    assert model.condition("RolloutStuck")["reason"] == "RolledBack"


def test_a_copy_that_fails_on_a_late_node_is_an_event_and_no_fault_of_the_service() -> None:
    model = cluster()
    model.settle()
    model.bad_nodes = frozenset({"late"})
    model.nodes = (*model.nodes, "late")
    model.run(30)
    assert model.condition("Ready")["status"] == "True"
    assert model.status["prefetch"]["failed"] == 1
    assert [event.reason for event in model.events].count("PrefetchFailed") == 1


def test_a_change_that_needs_no_other_files_waits_for_nothing() -> None:
    model = cluster()
    model.settle()
    model.change(server={"image": "server:2"})
    model.tick()
    assert model.condition("Progressing")["reason"] == "RollingOut"
    model.settle()
    assert len({job.name for job in model.jobs.values()}) == 3


def test_going_back_before_the_end_copies_nothing_and_leaves_no_job_behind() -> None:
    model = cluster()
    model.settle()
    kept = set(model.jobs)
    model.roll_to("b")
    model.run(2)
    assert set(model.jobs) > kept
    model.roll_to("a")
    model.settle()
    assert set(model.jobs) == kept


def test_where_nodes_are_not_known_pods_wait_on_their_nodes_and_are_not_given_up() -> None:
    model = cluster(nodes_known=False, copy_ticks=400)
    model.run(350)
    assert [pod.started for pod in model.active] == [False, False]
    model.change(rollout={"progressDeadline": "1m"})
    model.run(20)
    assert model.condition("RolloutStuck")["status"] == "False"
    model.settle()
    assert model.status["ready"] == "2/2"


def test_a_machine_that_was_made_anew_under_its_name_gets_its_copy_again() -> None:
    model = cluster()
    model.settle()
    model.copies = {(name, node) for name, node in model.copies if node != "n1"}
    model.machines["n1"] = "another"
    model.settle()
    assert has_all_copies(model)
    assert model.condition("Ready")["status"] == "True"


def test_a_copy_that_was_removed_with_its_forgotten_revision_is_made_again_when_the_spec_goes_back() -> None:
    model = cluster(cards=2)
    model.change(revisionHistoryLimit=0)
    model.settle()
    model.roll_to("b")
    while len(model.copies) < 6:
        model.tick()
    copied = model.wanted_copies[model.hash]
    model.copy_ticks = 10_000
    model.roll_to("c")
    model.run(2)
    del model.jobs[busy(model)[0].name]
    model.copy_ticks = 2
    model.run(4)
    assert len([node for name, node in model.copies if name == copied]) == 2
    model.copy_ticks = 5
    model.roll_to("b")
    model.settle()
    assert has_all_copies(model)
    assert model.status["ready"] == "2/2"


def test_jobs_of_a_revision_that_is_over_go_once_the_new_one_is_good() -> None:
    model = cluster()
    model.settle()
    first = set(model.jobs)
    model.roll_to("b")
    model.settle()
    assert len(model.jobs) == 3
    assert not first & set(model.jobs)


steps = st.lists(
    st.tuples(
        st.sampled_from(["roll", "scale", "operator", "job", "bad", "node", "cards"]),
        st.integers(min_value=0, max_value=4),
        st.integers(min_value=1, max_value=20),
    ),
    max_size=6,
)


@st.composite
def troubled_clusters(draw: st.DrawFn) -> Cluster:
    """A cluster at the beginning of a hard life."""
    model = cluster(
        seed=draw(st.integers(min_value=0, max_value=10_000)),
        lazy_controllers=draw(st.booleans()),
        nodes_known=draw(st.booleans()),
        two_operators=draw(st.booleans()),
        dies=draw(st.sampled_from([0.0, 0.1])),
    )
    model.change(revisionHistoryLimit=draw(st.sampled_from([0, 3])))
    return model


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=troubled_clusters(), life=steps)
def test_whatever_happens_copies_come_before_drains_and_the_end_is_reached(
    model: Cluster, life: list[tuple[str, int, int]]
) -> None:
    for what, number, ticks in life:
        apply(model, what, number)
        for _ in range(ticks):
            check_tick(model)
    model.bad_nodes, model.cards = frozenset(), 5
    model.lazy_controllers, model.dies, model.two_operators = False, 0.0, False
    model.annotate("restarted-at", "at the end")
    model.settle()
    assert model.violations == []
    wanted = model.manifest["spec"]["replicas"]
    assert model.status["ready"] == f"{wanted}/{wanted}"
    assert not busy(model)


def check_tick(model: Cluster) -> None:
    """While copies are missing a pod is told to drain only where there are more than wanted."""
    live = {pod.uid for pod in model.active if pod.gate_reason != "Draining"}
    model.tick()
    assert model.last is not None
    drained = {pod.uid for pod in model.pods if pod.uid in live and pod.gate_reason == "Draining"}
    (progressing,) = (item for item in model.last.status["conditions"] if item["type"] == "Progressing")
    if progressing["reason"] in ("Prefetching", "PrefetchFailed"):
        assert len(drained) <= max(0, len(live) - model.manifest["spec"]["replicas"])
    assert len(busy(model)) <= AT_ONCE
    assert all((model.wanted_copies[pod.hash], pod.node) in model.copies for pod in model.active if pod.started)


def busy(model: Cluster) -> list[Any]:
    return [job for job in model.jobs.values() if job.ticks_left > 0]


def apply(model: Cluster, what: str, number: int) -> None:
    match what:
        case "roll":
            model.roll_to("abcde"[number])
        case "scale":
            model.change(replicas=number)
        case "operator":
            model.restart_operator()
        case "job" if model.jobs:
            del model.jobs[sorted(model.jobs)[number % len(model.jobs)]]
        case "bad":
            model.bad_nodes = frozenset({f"n{number}"})
        case "node":
            model.nodes = tuple(f"n{count}" for count in range(1 + number))
        case "cards":
            model.cards = max(1, number)
        case _:
            pass
