"""How long the plan of one resource with sixteen pods takes, in this thread's processor time."""

from __future__ import annotations

import time

from bench.figures import AT_MOST, Figure
from bench.operator.reaction import percentile
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.revision import revision_hash
from unit.operator_core.builders import OLD, deployment, resource, serving_pod

PODS = 16
CALLS = 3000


def plan_p99() -> Figure:
    """In the middle of a rollout: half of the pods are new, and there is status to compare with."""
    wanted = resource(replicas=PODS)
    hash_ = revision_hash(wanted)
    pods = tuple(
        serving_pod(f"pod-{number}", ip=f"10.0.0.{number}", revision_hash=hash_ if number < PODS // 2 else OLD)
        for number in range(PODS)
    )
    revisions = (deployment(PODS // 2, hash_), deployment(PODS // 2, OLD))
    cards = Known(value=CardLedger(allocatable=32, requested=28))
    seen = Observed(deployments=revisions, pods=pods, service_exists=True, service_matches=True, cards=cards, status={})
    first, memory = plan(wanted, seen, PlanMemory(), 1000.0)
    seen = Observed(
        deployments=revisions, pods=pods, service_exists=True, service_matches=True, cards=cards, status=first.status
    )
    took: list[float] = []
    for call in range(CALLS):
        began_s = time.thread_time()
        plan(wanted, seen, memory, 1001.0 + call)
        took.append(time.thread_time() - began_s)
    return Figure(
        name="plan_p99_ms",
        value=round(1000 * percentile(sorted(took), 0.99), 3),
        target=(AT_MOST, 2),
        how=f"{CALLS} plans in a rollout with {PODS} pods, processor time of the thread; median "
        f"{1000 * percentile(sorted(took), 0.5):.3f} ms",
    )
