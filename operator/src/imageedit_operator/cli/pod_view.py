"""One pod as people see it: a word for its state, where it is, what it works on. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_draining, is_over, is_serving, trouble, volume_message
from imageedit_operator.core.unplaced import seeks, volume_words


@dataclass(frozen=True, kw_only=True, slots=True)
class PodView:
    """One pod; `running` and `waiting` are None where it does not answer."""

    name: str
    state: str
    trouble: str
    """What waiting does not cure, in words; else empty."""
    node: str
    cards: dict[str, int]
    age_s: float
    restarts: int
    running: int | None
    waiting: int | None


def pod_view(pod: ObservedPod, *, now: float) -> PodView:
    """The pod at `now`."""
    fault = trouble(pod)
    report = pod.report.value if isinstance(pod.report, Known) else None
    return PodView(
        name=pod.name,
        state=state(pod),
        trouble=fault.message if fault is not None else volume_message(pod) or pod.unschedulable_message,
        node=pod.node,
        cards=dict(pod.cards or {}),
        age_s=max(0.0, now - pod.created_at),
        restarts=pod.restarts,
        running=None if report is None else report.running,
        waiting=None if report is None else report.waiting,
    )


# | first that fits                                | state             |
# | deleted, and still there                       | Leaving           |
# | over, removed soon                             | its reason        |
# | chosen to leave                                | Draining          |
# | waiting does not cure it                       | the fault's reason|
# | gets requests                                  | Warm              |
# | the scheduler finds no volume for its claims   | VolumeNotReady    |
# | the scheduler finds no place                   | WaitingForPlace   |
# | no node yet                                    | Scheduling        |
# | its server runs                                | WarmingUp         |
# | else (image pull, volumes)                     | Starting          |
def state(pod: ObservedPod) -> str:  # noqa: PLR0911 - one return a row
    """One CamelCase word."""
    fault = trouble(pod)
    if pod.terminating:
        return "Leaving"
    if is_over(pod):
        return pod.failed_reason or pod.phase
    if is_draining(pod):
        return "Draining"
    if fault is not None:
        return fault.reason
    if is_serving(pod):
        return "Warm"
    if seeks(pod):
        return "VolumeNotReady" if volume_words(pod) else "WaitingForPlace"
    if not pod.node:
        return "Scheduling"
    return "WarmingUp" if pod.started else "Starting"


def tone(view: PodView) -> str:
    """How the state is shown."""
    if view.state == "Warm":
        return "good"
    if view.trouble:
        return "bad"
    return "dim" if view.state in ("Leaving", "Draining") else "warn"
