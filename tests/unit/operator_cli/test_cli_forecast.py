"""The forecast: how the operator's own plan would go on a cluster in which nothing fails."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.cli.forecast import Forecast, forecast
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.next_look import DARK_S
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.offer import Offer
from imageedit_operator.core.outage import PROPAGATION_S, handover_s, start_s
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import revision_hash
from unit.operator_cli.builders import CARD, NOW
from unit.operator_core import builders as core

WARMUP_S = 90.0


def served(count: int, old: ImageEditDeployment, **pods: Any) -> tuple[Any, ...]:
    """Pods of a revision that serve, each with its card."""
    hash_ = revision_hash(old)
    return tuple(
        core.serving_pod(f"old-{at}", revision_hash=hash_, cards={CARD: 1}, **pods) for at in range(1, count + 1)
    )


def went(
    *, replicas: int = 1, free: int | None = 1, busy: int = 0, pods: int | None = None, rollout: Any = None, **spec: Any
) -> Forecast:
    """From revision a, complete, to revision b."""
    old = core.resource(replicas=replicas)
    there = replicas if pods is None else pods
    report = core.known(revision_hash=revision_hash(old), running=busy, edit_s_by_size={"768x768": 20.0})
    new = core.resource(
        replicas=replicas,
        rollout=rollout or {},
        model={"name": "qwen", "revision": "b", "source": {"demo": {}}},
        **spec,
    )
    cards: Any = Unknown(reason="Forbidden", message="no") if free is None else None
    observed = Observed(
        deployments=(core.deployment(there, revision_hash(old)),) if there else (),
        pods=served(there, old, report=report),
        service_exists=True,
        service_matches=True,
        cards=cards or Known(value=CardLedger(allocatable=there + (free or 0), requested=there)),
        status={"currentRevision": revision_hash(old), "lastGoodRevision": revision_hash(old)} if there else {},
    )
    return forecast(new, observed, warmup_s=WARMUP_S, now=NOW)


def test_with_a_free_card_no_moment_is_without_a_warm_pod() -> None:
    seen = went(free=1)
    assert (seen.outcome, seen.outage_s, seen.fewest_warm, seen.most_pods) == ("Complete", 0.0, 1, 2)


def test_a_surge_takes_a_warm_up_and_little_more() -> None:
    assert WARMUP_S <= went(free=1).seconds <= WARMUP_S + 40


def test_one_pod_without_a_free_card_is_an_outage_of_drain_and_warm_up() -> None:
    seen = went(free=0, busy=2)
    assert seen.outcome == "Complete"
    assert seen.outage_s is not None
    assert WARMUP_S + 40 <= seen.outage_s <= WARMUP_S + 40 + 30
    assert seen.fewest_warm == 0


def test_an_idle_pod_without_a_free_card_is_an_outage_as_long_as_the_condition_says() -> None:
    said = PROPAGATION_S + handover_s(()) + (start_s(WARMUP_S, ()) or 0.0)
    seen = went(free=0, busy=0)
    assert seen.outage_s is not None
    assert said <= seen.outage_s <= said + 4 * DARK_S


def test_several_pods_without_a_free_card_change_one_after_the_other() -> None:
    seen = went(replicas=3, free=0)
    assert (seen.outcome, seen.outage_s, seen.fewest_warm, seen.most_pods) == ("Complete", 0.0, 2, 4)
    assert seen.seconds >= 3 * WARMUP_S


def test_surge_without_a_card_waits_and_loses_nothing() -> None:
    seen = went(free=0, rollout={"strategy": "Surge"})
    assert (seen.outcome, seen.outage_s) == ("WaitingForCard", 0.0)


def test_recreate_is_an_outage_though_a_card_is_free() -> None:
    seen = went(free=1, rollout={"strategy": "Recreate"})
    assert seen.outcome == "Complete"
    assert seen.outage_s is not None
    assert seen.outage_s >= WARMUP_S


def test_cards_that_nobody_may_count_are_taken_for_none() -> None:
    assert went(free=None).fewest_warm == 0


def test_a_paused_rollout_stays_where_it_is() -> None:
    seen = went(free=1, rollout={"paused": True})
    assert (seen.outcome, seen.fewest_warm) == ("Paused", 1)


def test_a_canary_rests_at_its_pods() -> None:
    seen = went(replicas=2, free=1, rollout={"canary": {"pods": 1}})
    assert seen.outcome == "CanaryHold"


def test_a_first_start_has_no_outage_to_speak_of() -> None:
    seen = went(pods=0, replicas=2, free=2)
    assert (seen.outcome, seen.outage_s) == ("Complete", None)


def test_pods_that_ask_for_no_card_need_none() -> None:
    seen = went(free=0, accelerator={"resourceName": ""})
    assert (seen.outcome, seen.outage_s) == ("Complete", 0.0)


NOT_HELPFUL = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


@pytest.mark.parametrize("free", [0, 1, None])
@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (f'0/1 nodes are available: persistentvolumeclaim "models" not found. {NOT_HELPFUL}', "VolumeNotReady"),
        (
            f"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}",
            "Unschedulable",
        ),
    ],
)
def test_a_pod_that_no_node_takes_is_not_foretold_to_serve_or_to_lack_a_card(
    free: int | None, words: str, outcome: str
) -> None:
    old, new = core.resource(), core.resource(model={"name": "qwen", "revision": "b", "source": {"demo": {}}})
    stuck = core.pending_pod("new", revision_hash=revision_hash(new), unschedulable_message=words)
    cards: Any = Known(value=CardLedger(allocatable=1 + (free or 0), requested=1))
    observed = Observed(
        deployments=(core.deployment(1, revision_hash(old)), core.deployment(1, revision_hash(new))),
        pods=(*served(1, old), stuck),
        service_exists=True,
        service_matches=True,
        cards=cards if free is not None else Unknown(reason="Forbidden", message="no"),
        status={"currentRevision": revision_hash(old), "lastGoodRevision": revision_hash(old)},
    )
    seen = forecast(new, observed, warmup_s=WARMUP_S, now=NOW)
    assert (seen.outcome, seen.fewest_warm) == (outcome, 1)


@pytest.mark.parametrize(
    ("accelerator", "offer", "outcome", "words"),
    [
        ({"nodeSelector": {"zone": "mars"}}, Offer(nodes=1, unlabelled=1), "Unschedulable", "has the labels zone=mars"),
        ({}, Offer(nodes=1, repelled=1, taints=("a: b",)), "Unschedulable", "tolerate the taint a=b"),
        ({"count": 2}, Offer(), "WaitingForCard", "no node offers 2 "),
    ],
)
def test_no_pod_is_foretold_to_drain_where_no_node_has_the_cards(
    accelerator: Any, offer: Offer, outcome: str, words: str
) -> None:
    old = core.resource()
    new = core.resource(accelerator=accelerator, model={"name": "qwen", "revision": "b", "source": {"demo": {}}})
    observed = Observed(
        deployments=(core.deployment(1, revision_hash(old)),),
        pods=served(1, old),
        service_exists=True,
        service_matches=True,
        cards=Known(value=CardLedger(allocatable=0, requested=0, offer=offer)),
        status={"currentRevision": revision_hash(old), "lastGoodRevision": revision_hash(old)},
    )
    seen = forecast(new, observed, warmup_s=WARMUP_S, now=NOW)
    assert (seen.outcome, seen.fewest_warm, seen.outage_s) == (outcome, 1, 0.0)
    assert words in seen.message


def test_the_steps_tell_the_order() -> None:
    words = [step.what for step in went(free=1).steps]
    kinds = [next(key for key in ("creates", "scales", "serves", "drains") if key in word) for word in words]
    assert kinds[:4] == ["creates", "scales", "serves", "drains"]
    assert [step.at_s for step in went(free=1).steps] == sorted(step.at_s for step in went(free=1).steps)


def test_copies_come_first_and_cost_no_time_without_a_warm_pod() -> None:
    model = {"name": "qwen", "revision": "b", "source": {"pvc": {"claimName": "models"}}}
    old = core.resource()
    observed = Observed(
        deployments=(core.deployment(1, revision_hash(old)),),
        pods=served(1, old),
        service_exists=True,
        service_matches=True,
        cards=Known(value=CardLedger(allocatable=2, requested=1)),
        nodes=Known(value={"n1": "u1", "n2": "u2"}),
        status={"currentRevision": revision_hash(old), "lastGoodRevision": revision_hash(old)},
    )
    new = core.resource(model={**model, "prefetch": {"hostPath": {"path": "/data"}}})
    result = forecast(new, observed, warmup_s=WARMUP_S, now=NOW)
    assert (result.outcome, result.outage_s) == ("Complete", 0.0)
    copies = [step.what for step in result.steps if step.what.startswith("copies the model to node")]
    assert len(copies) == 2
    before = [step.what for step in result.steps]
    assert before.index(copies[-1]) < next(at for at, what in enumerate(before) if "scales" in what)
