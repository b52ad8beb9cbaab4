"""Where a rollout or a start is: the situation of one look, and the answers Progressing and RolloutStuck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core import outage
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pod_words import card_words, lost_words, place_words, unbegun_words
from imageedit_operator.core.pods import Trouble, volume_message
from imageedit_operator.core.scaling import Decision
from imageedit_operator.core.stored import find
from imageedit_operator.core.target import Failure
from imageedit_operator.core.unplaced import could_get_room


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What the conditions are derived from."""

    name: str
    """Of the resource."""
    wanted: int
    hash: str
    """The revision that the pods go to."""
    spec_hash: str
    """The revision that the spec asks for; another one after a roll back."""
    serving: int
    """Warm, ready pods of every revision."""
    complete: bool
    """All wanted pods serve, all of the revision `hash`, nothing old left."""
    rolling: bool
    proven: bool
    """The revision `hash` was complete before."""
    failure: Failure | None
    """Why the spec's revision was given up."""
    hold: Hold | None
    still: bool
    """Nothing has moved for the progress deadline."""
    strategy: str
    mode: str
    outage: bool
    expected_drain_s: float
    expected_handover_s: float
    expected_warmup_s: float | None
    trouble: Trouble | None
    cardless: ObservedPod | None
    """A pod of the wanted revision that finds no card."""
    unschedulable: ObservedPod | None
    """A pod of the wanted revision that the scheduler finds no place for, for another reason than card or volume."""
    lost: ObservedPod | None
    """A pod of the wanted revision whose node is not ready or gone."""
    resource_name: str
    holders: tuple[str, ...]
    """Who holds cards of that name, as far as it is known: pods of ours that are terminating, then everybody else."""
    shrinking: bool
    decision: Decision | None
    """None without autoscaling."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Those that pods of the wanted revision ask of a node, where the spec is of that revision."""
    nowhere: str = ""
    """Why no node offers such a pod any card, and what to look at; empty where one does, or nobody knows."""
    unbegun: ObservedPod | None = None
    """A pod of the wanted revision that has a node, and for a minute no container."""
    unmounted: ObservedPod | None = None
    """A pod of the wanted revision that its node cannot give its volumes, or no node, for its claims have none."""
    placed: bool = True
    """A pod of the wanted revision has a node."""
    scaled_by: str = ""
    """Who writes `spec.replicas` through the scale subresource."""
    children: Answer = field(
        default_factory=lambda: Answer(status=True, reason="AsWritten", message="nobody else wrote to the children")
    )
    """Whether the children are as the operator wrote them."""
    handed: str = ""
    """Whose card the pods without one get, who leaves or soon will; empty where none of ours comes free for them."""
    degraded: Trouble | None = None
    """What is wrong although pods may serve: a sick card, a kubelet that refuses pods."""


NO_ROLLOUT = "NoRollout"
"""Reason of RolloutStuck while none is under way; the status remembers by it that one was."""

_HELD = ("Paused", "Prefetch", "Canary")
"""Modes of a rollout that is held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Status, reason and message of one condition."""

    status: bool
    reason: str
    message: str


# | first that fits                              | status | reason                        |
# | a pod is in trouble, or a name is taken      | False  | the trouble's                 |
# | rolled back, complete                        | False  | RolledBack                    |
# | complete                                     | False  | Complete                      |
# | a sick card or a refused pod, and not rolling| True   | the fault's                   |
# | no pod is warm, by plan                      | True   | PlannedReplacement            |
# | paused                                       | False  | Paused                        |
# | copies of the model are not there yet, and   | True   | Prefetching                   |
# | no pod's volumes are missing for that        |        |                               |
# | the canary is warm and holds                 | True   | CanaryHold                    |
# | a new pod's node is lost                     | True   | NodeLost                      |
# | a new pod's volumes are not there            | True   | VolumeNotReady                |
# | rolling back                                 | True   | RollingBack                   |
# | rolling, no node for a pod, whatever leaves  | True   | Unschedulable                 |
# | rolling by Surge, no card, none comes        | True   | WaitingForCard                |
# | rolling                                      | True   | RollingOut                    |
# | no card for a pod yet: another's comes       | True   | CardHandedOver                |
# | no place for a pod: the card, something else | True   | WaitingForCard, Unschedulable |
# | pods drain to leave                          | True   | ScalingDown                   |
# | else                                         | True   | Starting                      |
def progressing(  # noqa: PLR0911, PLR0912 - one return a row
    situation: Situation, previous: Mapping[str, Any]
) -> Answer:
    """Whether something is under way."""
    if situation.trouble is not None:
        stands = situation.mode == "Stopped" or (situation.mode == "Template" and situation.serving)
        stopped = "; the rollout stops here and the old revision serves on" if stands else ""
        return Answer(status=False, reason=situation.trouble.reason, message=situation.trouble.message + stopped)
    if situation.complete:
        return _complete(situation)
    if situation.degraded is not None and not situation.rolling:
        return Answer(status=True, reason=situation.degraded.reason, message=situation.degraded.message)
    if situation.outage:
        return _planned(situation, previous)
    if situation.hold is not None and situation.mode in _HELD and not _copies_in_vain(situation):
        paused = situation.mode == "Paused"
        return Answer(status=not paused, reason=situation.hold.reason, message=situation.hold.message)
    if situation.lost is not None:
        return Answer(status=True, reason="NodeLost", message=lost_words(situation.lost))
    if situation.unmounted is not None:
        return _not_mounted(situation.unmounted)
    if situation.failure is not None:
        return Answer(status=True, reason="RollingBack", message=f"{_failed(situation.failure)}; {_back(situation)}")
    no_place = _no_place(situation)
    if situation.rolling and no_place is not None and _is_out_of_place(situation):
        return no_place
    if situation.rolling and situation.mode == "Surge" and situation.cardless is not None and not situation.handed:
        words = card_words(situation.cardless, situation.resource_name, situation.holders, situation.nowhere)
        words += "" if situation.strategy == "Auto" or situation.nowhere else _OR_ANOTHER_STRATEGY
        return Answer(status=True, reason="WaitingForCard", message=words)
    if situation.rolling:
        return Answer(status=True, reason="RollingOut", message=_towards(situation))
    if no_place is not None:
        return no_place
    if situation.shrinking:
        words = "pods finish what they accepted before they leave, for spec.rollout.drainTimeout at most"
        return Answer(status=True, reason="ScalingDown", message=words)
    if situation.unbegun is not None:
        return Answer(status=True, reason="Starting", message=unbegun_words(situation.unbegun))
    return Answer(status=True, reason="Starting", message=_starting(situation))


# | first that fits                                        | status | reason                                       |
# | the spec's revision was given up                       | True   | RolledBack                                   |
# | complete, or the revision was good and nothing is old  | False  | NoRollout                                    |
# | a pod is in trouble, or a name is taken                | True   | the trouble's                                |
# | held                                                   | False  | Paused, Prefetching, CanaryHold              |
# | nothing moved for the progress deadline                | True   | WaitingForCard, Unschedulable,               |
# |                                                        |        | VolumeNotReady, NoProgress                   |
# | else                                                   | False  | Moving                                       |
def rollout_stuck(situation: Situation) -> Answer:  # noqa: PLR0911 - one return a row
    """Whether a rollout, or the first start of a revision, needs a person."""
    if situation.failure is not None:
        words = f"{_failed(situation.failure)}; {_back(situation)}; {_RETRY}"
        return Answer(status=True, reason="RolledBack", message=words)
    if situation.complete or (situation.proven and not situation.rolling):
        return Answer(status=False, reason=NO_ROLLOUT, message="no rollout is under way")
    if situation.trouble is not None:
        return Answer(status=True, reason=situation.trouble.reason, message=situation.trouble.message)
    if situation.hold is not None and situation.mode in _HELD:
        return Answer(status=False, reason=situation.hold.reason, message=situation.hold.message)
    no_place = _no_place(situation)
    if situation.still and no_place is not None:
        return no_place
    if situation.still and situation.unmounted is not None:
        return _not_mounted(situation.unmounted)
    if situation.still:
        words = (
            "nothing has moved for the progress deadline, and no pod says why: read the events, "
            f"kubectl describe deployments,replicasets,pods -l imageedit.dev/deployment={situation.name}"
        )
        return Answer(status=True, reason="NoProgress", message=words)
    return Answer(status=False, reason="Moving", message=_MOVES)


def _starting(situation: Situation) -> str:
    if not situation.placed:
        return "pods wait to be placed on nodes"
    last_s = situation.expected_warmup_s
    return "pods load the model and warm every size" + (
        "" if last_s is None else f", which took about {last_s:.0f} s the last time"
    )


def _not_mounted(pod: ObservedPod) -> Answer:
    """Nodes and the scheduler try again by themselves: it is under way until the pod's time is over."""
    return Answer(status=True, reason="VolumeNotReady", message=volume_message(pod))


def _copies_in_vain(situation: Situation) -> bool:
    """A copy is waited for that cannot come: its claim has no volume."""
    return situation.mode == "Prefetch" and situation.unmounted is not None


def _complete(situation: Situation) -> Answer:
    if situation.failure is not None:
        words = f"{_failed(situation.failure)}; all pods serve revision {situation.hash} again; {_RETRY}"
        return Answer(status=False, reason="RolledBack", message=words)
    words = f"all pods serve revision {situation.hash}" if situation.wanted else "no pods are wanted"
    return Answer(status=False, reason="Complete", message=words)


_RETRY = "change the spec, or the annotation imageedit.dev/restarted-at, to try again"

_OR_ANOTHER_STRATEGY = ", or set spec.rollout.strategy to Auto or InPlace: an old pod then gives its own"

_MOVES = "the rollout moves, or has waited for less than its progress deadline"

_HOW = {
    "Surge": "each replacement is warm before an old pod drains",
    "InPlace": "one pod at a time gives its card to its replacement",
    "Recreate": "all old pods leave before the new ones start",
    "Steady": "the new pods start",
    "Stopped": "stopped",
    "Template": "its Deployment gets spec.template first",
    "Paused": "paused",
    "Prefetch": "held until copies of the model are there",
    "Canary": "held at its canary",
}


def _planned(situation: Situation, previous: Mapping[str, Any]) -> Answer:
    before = find(previous, "Progressing")
    towards = previous.get("rollout", {}).get("revision")
    if before.get("reason") == "PlannedReplacement" and situation.hash == towards:
        # Cards come free and warm-ups are measured while it lasts; what was announced stays.
        return Answer(status=True, reason="PlannedReplacement", message=str(before.get("message", "")))
    length = outage.words(
        drain=situation.expected_drain_s,
        handover=situation.expected_handover_s,
        warmup=situation.expected_warmup_s,
        placed=situation.placed,
    )
    because = f"the strategy is {situation.strategy}"
    if situation.strategy == "Auto":
        lacks_card = situation.cardless is not None or situation.unschedulable is None
        because = "no card is free" if lacks_card else "the new pod finds no other place"
    message = f"planned replacement: {length}, because {because}"
    return Answer(status=True, reason="PlannedReplacement", message=message)


def _towards(situation: Situation) -> str:
    # Where an old pod is to leave its card to the replacement, that one is not warm before.
    how = situation.handed if situation.mode == "Surge" and situation.handed else _HOW[situation.mode]
    words = f"to revision {situation.hash}: {how}"
    return words if situation.unbegun is None else f"{words}; {unbegun_words(situation.unbegun)}"


def _failed(failure: Failure) -> str:
    return f"revision {failure.revision} failed: {failure.message or failure.reason}"


def _back(situation: Situation) -> str:
    return f"going back to revision {situation.hash}" if not situation.complete else f"back at {situation.hash}"


def _no_place(situation: Situation) -> Answer | None:
    if situation.cardless is not None:
        if situation.handed:
            return Answer(status=True, reason="CardHandedOver", message=situation.handed)
        return Answer(
            status=True,
            reason="WaitingForCard",
            message=card_words(situation.cardless, situation.resource_name, situation.holders, situation.nowhere),
        )
    pod = situation.unschedulable
    if pod is None:
        return None
    return Answer(status=True, reason="Unschedulable", message=place_words(pod, situation.node_labels))


def _is_out_of_place(situation: Situation) -> bool:
    """No pod that leaves makes room for the new one, and no card is what it lacks."""
    pod = situation.unschedulable
    return situation.cardless is None and pod is not None and not could_get_room(pod)
