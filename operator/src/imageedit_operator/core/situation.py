"""What the conditions are derived from, read from one look and the step that follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.core import leaving, offer, outage
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, is_serving, volume_message
from imageedit_operator.core.progress import NO_ROLLOUT, Answer, Situation
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.rollout import Step, is_steady
from imageedit_operator.core.scaling import Decision
from imageedit_operator.core.stored import find
from imageedit_operator.core.target import Target
from imageedit_operator.core.unplaced import seeks, volume_words

UNBEGUN_S = 60.0
"""A pod without a container for so long is worth a word: pulls and mounts take seconds where nothing is wrong."""


def read(
    resource: ImageEditDeployment,
    previous: Mapping[str, Any],
    fleet: Fleet | None,
    step: Step,
    *,
    decision: Decision | None,
    trouble: Trouble | None,
    wanted: int,
    goal: Target,
    spec_hash: str,
    hold: Hold | None,
    still: bool,
    degraded: Trouble | None,
    ours: Sequence[ObservedPod],
    intact: Answer,
    cardless: Sequence[ObservedPod],
    handed: str,
    cards: Known[CardLedger] | Unknown,
    now: float,
    copying: bool,
) -> Situation:
    """The situation of one look, with the step that was decided on it; `cardless` are the pods that find no card."""
    live = fleet.wanted.live if fleet is not None else ()
    serving = sum(is_serving(pod) for pod in ours)
    complete = fleet is not None and is_steady(fleet, wanted)
    served = previous.get("currentRevision", goal.revision)
    rolling = not complete and _rolls(fleet, previous, goal.revision, served=str(served), wanted=wanted)
    warmup_s = outage.warmup_s(previous, ours)
    announced = find(previous, "Progressing").get("reason") == "PlannedReplacement"
    return Situation(
        name=resource.name,
        wanted=wanted,
        hash=goal.revision,
        spec_hash=spec_hash,
        serving=serving,
        complete=complete,
        rolling=rolling,
        proven=previous.get("lastGoodRevision") == goal.revision,
        failure=goal.failure,
        hold=hold,
        still=still,
        strategy=resource.rollout.strategy,
        mode=step.mode,
        outage=step.outage or (announced and rolling and serving == 0),
        expected_drain_s=outage.drain_s(fleet),
        expected_handover_s=outage.handover_s(ours),
        expected_start_s=outage.start_s(warmup_s, ours),
        expected_warmup_s=warmup_s,
        trouble=trouble,
        placed=any(pod.node for pod in live),
        cardless=cardless[0] if cardless else None,
        unschedulable=next((pod for pod in live if _finds_no_node(pod, cardless)), None),
        lost=next((pod for pod in live if pod.lost), None),
        unmounted=next((pod for pod in live if _lacks_volume(pod, copying=copying)), None),
        resource_name=resource.accelerator.extended_resource,
        holders=(
            *leaving.holders(ours, resource_name=resource.accelerator.extended_resource, now=now),
            *(cards.value.holders if isinstance(cards, Known) else ()),
        ),
        nowhere=_nowhere(resource, cards),
        shrinking=fleet is not None and len(fleet.wanted.pods) > wanted,
        decision=decision,
        unbegun=next((pod for pod in live if _is_unbegun(pod, now)), None),
        node_labels=resource.accelerator.node_selector if goal.revision == spec_hash else {},
        scaled_by=resource.scaled_by,
        children=intact,
        degraded=degraded,
        handed="" if still else handed,
    )


# | not all pods serve, and                                   | rolling |
# | pods of an older revision are there                       | yes     |
# | no pod is wanted                                          | no      |
# | another revision serves                                   | yes     |
# | another revision was the last that was complete           | yes     |
# | it was rolling, and the record of that rollout goes on    | yes     |
# | else: a first start, a scaling, a pod that was lost       | no      |
# The fourth row holds once the last old pod has left, and the fifth where the pods came back to the last good one.
def _rolls(fleet: Fleet | None, previous: Mapping[str, Any], goal: str, *, served: str, wanted: int) -> bool:
    if fleet is not None and fleet.old:
        return True
    if wanted == 0:
        return False
    went_on = previous.get("rollout", {}).get("revision") == goal and _was_rolling(previous, goal)
    return served != goal or previous.get("lastGoodRevision", goal) != goal or went_on


def _was_rolling(previous: Mapping[str, Any], goal: str) -> bool:
    """A fault takes the phase's place; of a rollout to a revision that was good RolloutStuck still tells."""
    if previous.get("phase") == "RollingOut":
        return True
    stuck = find(previous, "RolloutStuck").get("reason", NO_ROLLOUT)
    return previous.get("lastGoodRevision") == goal and stuck not in (NO_ROLLOUT, "RolledBack")


def _nowhere(resource: ImageEditDeployment, cards: Known[CardLedger] | Unknown) -> str:
    """A number of nodes would rewrite the status with each that comes or goes."""
    accelerator = resource.accelerator
    if isinstance(cards, Unknown) or cards.value.offer is None or not accelerator.extended_resource:
        return ""
    return offer.nowhere(
        cards.value.offer,
        accelerator.extended_resource,
        count=accelerator.count,
        labels=accelerator.node_selector,
        counted=False,
    )


def _finds_no_node(pod: ObservedPod, cardless: Sequence[ObservedPod]) -> bool:
    """For another reason than a card or a volume."""
    return seeks(pod) and pod not in cardless and not volume_words(pod)


# Where a copy of the model is still to come, its folder is not there yet, and that is as it should be. A claim that
# is not there is not as it should be: no copy comes into it.
def _lacks_volume(pod: ObservedPod, *, copying: bool) -> bool:
    return bool(volume_message(pod)) and not (copying and pod.mount_words)


def _is_unbegun(pod: ObservedPod, now: float) -> bool:
    """Longer on its node than a node needs to begin, and never with a container."""
    began = pod.started or pod.restarts > 0 or pod.last_exit_code is not None
    return pod.scheduled_at > 0 and now - pod.scheduled_at >= UNBEGUN_S and not began
