"""Whatever happens on the way: every rollout ends, and no pod is removed that works."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.operator_core.cluster_model import Cluster
from unit.operator_core.simulated import SOON, cluster, hashes

pytestmark = pytest.mark.timeout(240)

steps = st.lists(
    st.tuples(
        st.sampled_from(["roll", "scale", "pause", "canary", "promote", "strategy", "restart", "cards", "delete"]),
        st.integers(min_value=0, max_value=4),
        st.integers(min_value=1, max_value=40),
    ),
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(min_value=0, max_value=10_000),
    cards=st.integers(min_value=1, max_value=5),
    dies=st.sampled_from([0.0, 0.2]),
    two=st.booleans(),
    lazy=st.booleans(),
    life=steps,
    last=st.sampled_from("abcdef"),
)
def test_every_rollout_ends_whatever_happens_on_the_way(  # noqa: PLR0917 - what happens on the way
    seed: int, cards: int, dies: float, two: bool, lazy: bool, life: list[tuple[str, int, int]], last: str
) -> None:
    faults = {"c": "claim", "d": "crash", "e": "check", "f": "never"}
    model = cluster(cards=cards, seed=seed, load=True, behaviour=faults, rollout=SOON)
    model.settle()
    model.dies, model.two_operators, model.lazy_controllers = dies, two, lazy
    for what, number, ticks in life:
        happen(model, what, number)
        for _ in range(ticks):
            model.tick()
            assert len(model.active) <= most_pods(model)
    model.dies, model.lazy_controllers, model.cards = 0.0, False, 6
    model.change(rollout=SOON, replicas=2)
    model.roll_to(last)
    model.settle()
    assert model.violations == []
    assert model.status["ready"] == "2/2" or model.condition("RolloutStuck")["status"] == "True"
    serving = hashes(model)
    model.run(60)
    assert hashes(model) == serving, "flaps between revisions"
    model.roll_to("a")
    model.settle()
    assert model.condition("Ready")["status"] == "True"


def most_pods(model: Cluster) -> int:
    """One more than was wanted at any time of this life."""
    replicas: int = model.manifest["spec"]["replicas"]
    return max(4, replicas) + 1


def happen(model: Cluster, what: str, number: int) -> None:
    rollout = dict(model.manifest["spec"]["rollout"])
    match what:
        case "roll":
            model.roll_to("abcdf"[number])
        case "scale":
            model.change(replicas=number)
        case "pause":
            model.change(rollout={**rollout, "paused": not rollout.get("paused", False)})
        case "canary":
            rollout.pop("canary", None)
            strategy = {"strategy": "Auto"} if number else {}
            canary = {"canary": {"pods": number}} if number else {}
            model.change(rollout={**rollout, **strategy, **canary})
        case "promote":
            model.annotate("promoted-revision", model.hash)
        case "strategy":
            rollout.pop("canary", None)
            model.change(rollout={**rollout, "strategy": ["Auto", "Surge", "InPlace", "Recreate", "Auto"][number]})
        case "restart":
            model.annotate("restarted-at", str(number))
        case "cards":
            model.cards = max(1, number)
        case "delete" if model.active:
            model.delete(model.active[number % len(model.active)])
        case _:
            pass


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    replicas=st.integers(min_value=1, max_value=4),
    spare=st.integers(min_value=0, max_value=2),
    seed=st.integers(min_value=0, max_value=10_000),
    dies=st.sampled_from([0.0, 0.3]),
    two=st.booleans(),
    job_ticks=st.sampled_from([2, 40]),
    changes=st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(min_value=1, max_value=120)), min_size=1, max_size=5
    ),
)
def test_changes_in_the_middle_of_a_rollout_keep_its_ceiling_and_its_floor(  # noqa: PLR0917 - what happens on the way
    replicas: int, spare: int, seed: int, dies: float, two: bool, job_ticks: int, changes: list[tuple[str, int]]
) -> None:
    faults = {"d": "crash", "e": "check", "f": "never"}
    model = cluster(
        replicas=replicas,
        cards=replicas + spare,
        seed=seed,
        load=True,
        job_ticks=job_ticks,
        behaviour=faults,
        rollout=SOON,
    )
    model.settle()
    model.dies, model.two_operators = dies, two
    floor = replicas if spare else replicas - 1
    for revision, ticks in changes:
        model.roll_to(revision)
        for _ in range(ticks):
            model.tick()
            assert len(model.serving) >= floor
            assert len(model.active) <= replicas + 1
    assert model.violations == []
