"""The whole wanted status of a resource."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from imageedit_operator.core import conditions, history, record, relief, target
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_active, is_draining, is_serving
from imageedit_operator.core.progress import Answer, Situation
from imageedit_operator.core.record import Record
from imageedit_operator.core.relief import Case
from imageedit_operator.core.scaling import Decision
from imageedit_operator.core.stored import cut, find, timestamp
from imageedit_operator.core.target import Failure

LONGEST_REASON = 1000
RECENT_WARMUPS = 20
"""Measured warm-ups that are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What the status reports besides the situation."""

    generation: int
    selector: str
    pods: tuple[ObservedPod, ...]
    """Of every revision that is ours."""
    cards: Known[CardLedger] | Unknown
    warmups_s: tuple[float, ...]
    """Of pods whose gate opens in this plan."""
    revisions: tuple[Mapping[str, Any], ...]
    failure: Failure | None
    record: Record
    prefetch: Mapping[str, Any]
    """`status.prefetch` by its name, or nothing."""
    cases: tuple[Case, ...] = ()


def build(situation: Situation, facts: Facts, previous: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """The status; equal to `previous` byte for byte while nothing is decided and no pod changes."""
    active = [pod for pod in facts.pods if is_active(pod)]
    ready = sum(is_serving(pod) and not is_draining(pod) for pod in active)
    revisions = _revisions(situation, active, previous)
    status: dict[str, Any] = {
        "observedGeneration": facts.generation,
        "phase": _phase(situation, active),
        "replicas": len(active),
        "readyReplicas": ready,
        "updatedReplicas": sum(pod.revision_hash == situation.spec_hash for pod in active),
        "startingReplicas": sum(not is_serving(pod) and not is_draining(pod) for pod in active),
        "desiredReplicas": situation.wanted,
        "ready": f"{ready}/{situation.wanted}",
        "selector": facts.selector,
        "updateRevision": situation.spec_hash,
        **revisions,
        **_model(revisions.get("currentRevision", ""), facts.revisions),
        **target.write(facts.failure),
        **({} if situation.complete else {"rollout": record.write(facts.record)}),
        "revisions": _marked(facts, revisions.get("lastGoodRevision", ""), previous, now=now),
        **facts.prefetch,
        **_scaling(situation.wanted, situation.decision, previous, now=now),
        **_warmup(facts.warmups_s, previous),
        **relief.write(facts.cases),
        "conditions": list(conditions.build(situation, previous, generation=facts.generation, now=now)),
    }
    return {**status, "cards": _cards(facts.cards, situation.resource_name, status, previous)}


def invalid(message: str, previous: Mapping[str, Any], *, generation: int, now: float) -> dict[str, Any]:
    """The status of a resource that cannot be read; what serves is left alone, so its figures stay."""
    words = f"{message}; correct it: what serves is left alone until then"
    answer = Answer(status=False, reason="InvalidSpec", message=words)
    said = {kind: conditions.written(kind, answer, previous, generation=generation, now=now) for kind in _INVALID_SAYS}
    said["Degraded"] = _degraded(answer, previous, generation=generation, now=now)
    return {
        **previous,
        "observedGeneration": generation,
        "phase": "Degraded",
        "conditions": _replaced(previous, said),
    }


_INVALID_SAYS = ("Ready", "Progressing")
LONGEST_REFUSAL = 4000
_REFUSAL_ADVICE = "change what refuses it, or the field that it names: it is tried again at least every 2 minutes"


# | condition        | in the plan's status | after a refused write      |
# | Progressing      | any                  | False WriteRefused         |
# | Degraded         | any                  | True WriteRefused          |
# | Available, Ready | True                 | as it is: the pods serve   |
# | Available, Ready | False, or none       | False WriteRefused         |
# | others           | any                  | as they are                |
def refused(
    message: str, wanted: Mapping[str, Any], previous: Mapping[str, Any], *, generation: int, now: float
) -> dict[str, Any]:
    """The status of a plan that the apiserver did not let through, in the apiserver's own words."""
    words = f"{message[:LONGEST_REFUSAL].strip().rstrip('.')}; {_REFUSAL_ADVICE}"
    answer = Answer(status=False, reason="WriteRefused", message=words)
    bad = [kind for kind in ("Available", "Ready") if find(wanted, kind).get("status") != "True"]
    said = {
        kind: conditions.written(kind, answer, previous, generation=generation, now=now)
        for kind in (*bad, "Progressing")
    }
    said["Degraded"] = _degraded(answer, previous, generation=generation, now=now)
    return {**wanted, "phase": "Degraded", "conditions": _replaced(wanted, said)}


def _degraded(answer: Answer, previous: Mapping[str, Any], *, generation: int, now: float) -> dict[str, Any]:
    return conditions.written("Degraded", replace(answer, status=True), previous, generation=generation, now=now)


def _replaced(status: Mapping[str, Any], said: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The conditions of a status, some of them new, in their fixed order."""
    kept = [item for item in status.get("conditions", ()) if item.get("type") not in said]
    order = {kind: place for place, kind in enumerate(conditions.TYPES)}
    return sorted([*kept, *said.values()], key=lambda item: order.get(str(item["type"]), len(order)))


# | first that fits                            | phase      |
# | the condition Degraded is True             | Degraded   |
# | none wanted, none there                    | Stopped    |
# | pods of another revision, or replacing one | RollingOut |
# | at least one pod serves                    | Serving    |
# | none wanted, the last ones leave           | Stopped    |
# | no pod has a node                          | Pending    |
# | else                                       | Starting   |
def _phase(situation: Situation, active: Iterable[ObservedPod]) -> str:
    pods = tuple(active)
    if situation.trouble is not None or situation.degraded is not None:
        return "Degraded"
    if situation.wanted == 0 and not pods:
        return "Stopped"
    if situation.rolling:
        return "RollingOut"
    if situation.serving:
        return "Serving"
    if situation.wanted == 0:
        return "Stopped"
    return "Starting" if any(pod.node for pod in pods) else "Pending"


def _revisions(situation: Situation, active: Iterable[ObservedPod], previous: Mapping[str, Any]) -> dict[str, str]:
    serving: dict[str, int] = {}
    for pod in active:
        if is_serving(pod):
            serving[pod.revision_hash] = serving.get(pod.revision_hash, 0) + 1
    before = str(previous.get("currentRevision", ""))
    if situation.complete and situation.wanted:
        current = situation.hash
    elif before in serving or not serving:
        current = before
    else:
        current = max(serving, key=lambda hash_: (serving[hash_], hash_ == situation.hash, hash_))
    good = situation.hash if situation.complete and situation.wanted else str(previous.get("lastGoodRevision", ""))
    return {name: hash_ for name, hash_ in (("currentRevision", current), ("lastGoodRevision", good)) if hash_}


def _model(current: str, entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The model's revision that serves, or served last: what people call the revision, for the printer column."""
    found = next((str(entry["model"]) for entry in entries if entry["hash"] == current and entry.get("model")), "")
    return {"currentModelRevision": found} if found else {}


def _marked(facts: Facts, good: str, previous: Mapping[str, Any], *, now: float) -> list[dict[str, Any]]:
    began_at = facts.record.started_at
    before = target.last_good(previous)
    return list(history.mark(facts.revisions, good=good, before=before, began_at=began_at, now=now))


def _scaling(
    wanted: int, decision: Decision | None, previous: Mapping[str, Any], *, now: float
) -> dict[str, dict[str, Any]]:
    before = previous.get("desiredReplicas")
    if decision is not None and isinstance(before, int) and before != wanted:
        made = {
            "lastScaleTime": timestamp(now),
            "decision": f"{before} -> {wanted}",
            "reasons": [cut(words, LONGEST_REASON) for words in decision.reasons],
        }
        return {"scaling": made}
    return {"scaling": dict(previous["scaling"])} if "scaling" in previous else {}


def _warmup(warmups_s: tuple[float, ...], previous: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    if warmups_s:
        seen = [*previous.get("warmup", {}).get("recentSeconds", ()), *(round(value, 1) for value in warmups_s)]
        recent = seen[-RECENT_WARMUPS:]
        return {"warmup": {"lastSeconds": recent[-1], "p95Seconds": _p95(recent), "recentSeconds": recent}}
    return {"warmup": dict(previous["warmup"])} if "warmup" in previous else {}


def _p95(values: list[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def _cards(
    cards: Known[CardLedger] | Unknown, resource_name: str, status: Mapping[str, Any], previous: Mapping[str, Any]
) -> Mapping[str, Any]:
    # Cards of a shared cluster come and go all day: the figures are those of the last change of anything else.
    # A resource definition that is older than the operator takes one field away, which is no change of it.
    before, model = previous.get("cards"), previous.get("currentModelRevision")
    rest = {name: value for name, value in status.items() if name != "currentModelRevision" or model is not None}
    if isinstance(before, Mapping) and {**rest, "cards": before} == previous:
        return before
    if not resource_name:
        return {"known": False, "message": "pods request no card by the name of a resource"}
    if isinstance(cards, Unknown):
        return {"known": False, "message": cut(cards.message)}
    return {"known": True, "allocatable": cards.value.allocatable, "free": cards.value.free}
