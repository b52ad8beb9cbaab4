"""The spec page shows each condition as the operator writes it, word for word."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from imageedit_operator.core import conditions
from imageedit_operator.core.degraded import sick_words
from imageedit_operator.core.intact import answer
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed, QueueSample
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.pods import Trouble, trouble
from imageedit_operator.core.progress import Situation
from imageedit_operator.core.resource import Autoscaling
from imageedit_operator.core.scaling import Decision, Memory, decide
from imageedit_operator.core.stored import epoch_s
from imageedit_operator.core.target import Failure
from unit.operator_core.builders import deployment, pending_pod, resource, serving_pod, starting_pod
from unit.operator_core.situations import two_that_serve

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec" / "imageeditdeployment.md"
NEW, OLD = "9b0c11d2aa", "44e4a7822c"
THEN = "2026-11-30T03:00:00Z"

PART = PAGE.read_text().split("### Conditions")[1].split("| reason | meaning")[0]
EXAMPLES = dict(re.findall(r"^#### `(\w+)`\n(.*?)(?=^####|\Z)", PART, flags=re.M | re.S))

REST = replace(two_that_serve(NEW), expected_drain_s=5.0, expected_handover_s=5.0, expected_start_s=47.0)
"""Two pods of one revision serve."""

WAITS = replace(
    pending_pod(f"qwen-edit-{NEW}-x"),
    unschedulable_message="0/1 nodes are available: 1 Insufficient huawei.com/Ascend910.",
)
EMPTY = replace(
    starting_pod(f"qwen-edit-{NEW}-x"),
    waiting_reason="CrashLoopBackOff",
    last_exit_code=1,
    last_exit_message="ModelMissing: /models/qwen-image-edit-2511 has no model_index.json",
)
FAULT = trouble(EMPTY) or Trouble(reason="", message="")
SICK = sick_words(
    [replace(serving_pod(f"qwen-edit-{NEW}-x"), node="npu-1", sick_card="Ascend910-3", sick_words="it is being reset")],
    {},
    (),
    Known(value=CardLedger(allocatable=1, requested=1)),
    found=None,
    rolling=False,
    now=0.0,
)
SPEC = Autoscaling(
    min_replicas=1,
    max_replicas=8,
    target_per_replica=2,
    prometheus_address="http://prometheus:9090",
    max_age_s=60.0,
    hold_s=300.0,
)


def decided(*, waiting: float, age_s: float) -> Decision:
    """What the queue of eight warm pods asks for."""
    queue = Known(value=QueueSample(waiting=waiting, running=8.0, pods=8), age_s=age_s)
    decision, _ = decide(Memory(), queue, SPEC, current=8, warm_pods=8, card_limit=None, now=0.0)
    return decision


EDITED = Observed(
    deployments=(
        deployment(
            1,
            NEW,
            name=f"qwen-edit-{NEW}",
            changed=(
                "spec.template.spec.containers[name=server].image by kubectl-set",
                "spec.template.spec.readinessGates taken away",
            ),
        ),
    )
)

SHOWN: dict[str, Situation] = {
    "Available": REST,
    "Ready": REST,
    "Progressing": replace(REST, complete=False, serving=0, rolling=True, mode="InPlace", outage=True, placed=False),
    "Degraded": replace(REST, degraded=SICK),
    "RolloutStuck": replace(REST, hash=OLD, failure=Failure(revision=NEW, reason=FAULT.reason, message=FAULT.message)),
    "WaitingForCard": replace(REST, complete=False, cardless=WAITS, holders=("pod lab/notebook-0",)),
    "ScalingActive": replace(REST, decision=decided(waiting=30.0, age_s=5.0)),
    "MetricsAvailable": replace(REST, decision=decided(waiting=30.0, age_s=90.0)),
    "ChildrenIntact": replace(REST, children=answer(resource(), EDITED, NEW, None)),
}


def written(kind: str) -> dict[str, Any]:
    """The condition as the operator would store it."""
    made = conditions.build(SHOWN[kind], {}, generation=3, now=epoch_s(THEN))
    return next(item for item in made if item["type"] == kind)


def test_each_condition_has_an_example() -> None:
    assert tuple(EXAMPLES) == conditions.TYPES == tuple(SHOWN)


@pytest.mark.parametrize("kind", conditions.TYPES)
def test_an_example_is_what_the_operator_writes(kind: str) -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", EXAMPLES.get(kind, ""), flags=re.M | re.S)
    assert yaml.safe_load(block) == [written(kind)]
