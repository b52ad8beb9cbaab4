"""The answer Progressing: what a start or a rollout does, or waits for; what it shares with RolloutStuck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imageedit_operator.core import outage
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pod_words import card_words, lost_words, place_words, unbegun_words
from imageedit_operator.core.pods import volume_message
from imageedit_operator.core.progress import Answer, Situation
from imageedit_operator.core.stored import find
from imageedit_operator.core.target import Failure
from imageedit_operator.core.unplaced import could_get_room

HELD = ("Paused", "Prefetch", "Canary")
"""Modes of a rollout that is held."""


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
    if situation.hold is not None and situation.mode in HELD and not _copies_in_vain(situation):
        paused = situation.mode == "Paused"
        return Answer(status=not paused, reason=situation.hold.reason, message=situation.hold.message)
    if situation.lost is not None:
        return Answer(status=True, reason="NodeLost", message=lost_words(situation.lost))
    if situation.unmounted is not None:
        return not_mounted(situation.unmounted)
    if situation.failure is not None:
        return Answer(status=True, reason="RollingBack", message=f"{failed(situation.failure)}; {back(situation)}")
    unplaced = no_place(situation)
    if situation.rolling and unplaced is not None and _is_out_of_place(situation):
        return unplaced
    if situation.rolling and situation.mode == "Surge" and situation.cardless is not None and not situation.handed:
        words = card_words(situation.cardless, situation.resource_name, situation.holders, situation.nowhere)
        words += "" if situation.strategy == "Auto" or situation.nowhere else _OR_ANOTHER_STRATEGY
        return Answer(status=True, reason="WaitingForCard", message=words)
    if situation.rolling:
        return Answer(status=True, reason="RollingOut", message=_towards(situation))
    if unplaced is not None:
        return unplaced
    if situation.shrinking:
        words = "pods finish what they accepted before they leave, for spec.rollout.drainTimeout at most"
        return Answer(status=True, reason="ScalingDown", message=words)
    if situation.unbegun is not None:
        return Answer(status=True, reason="Starting", message=unbegun_words(situation.unbegun))
    return Answer(status=True, reason="Starting", message=_starting(situation))


def _starting(situation: Situation) -> str:
    if not situation.placed:
        return "pods wait to be placed on nodes"
    last_s = situation.expected_warmup_s
    return "pods load the model and warm every size" + (
        "" if last_s is None else f", which took about {last_s:.0f} s the last time"
    )


def not_mounted(pod: ObservedPod) -> Answer:
    """Nodes and the scheduler try again by themselves: it is under way until the pod's time is over."""
    return Answer(status=True, reason="VolumeNotReady", message=volume_message(pod))


def _copies_in_vain(situation: Situation) -> bool:
    """A copy is waited for that cannot come: its claim has no volume."""
    return situation.mode == "Prefetch" and situation.unmounted is not None


def _complete(situation: Situation) -> Answer:
    if situation.failure is not None:
        words = f"{failed(situation.failure)}; all pods serve revision {situation.hash} again; {RETRY}"
        return Answer(status=False, reason="RolledBack", message=words)
    words = f"all pods serve revision {situation.hash}" if situation.wanted else "no pods are wanted"
    return Answer(status=False, reason="Complete", message=words)


RETRY = "change the spec, or the annotation imageedit.dev/restarted-at, to try again"

_OR_ANOTHER_STRATEGY = ", or set spec.rollout.strategy to Auto or InPlace: an old pod then gives its own"

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
        start=situation.expected_start_s,
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


def failed(failure: Failure) -> str:
    """Which revision was given up, and why."""
    return f"revision {failure.revision} failed: {failure.message or failure.reason}"


def back(situation: Situation) -> str:
    """How far the way back is."""
    return f"going back to revision {situation.hash}" if not situation.complete else f"back at {situation.hash}"


def no_place(situation: Situation) -> Answer | None:
    """What a pod without a place waits for; None where none does."""
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
