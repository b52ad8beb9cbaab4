"""What a forecast could not see, and what it takes for granted instead. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from imageedit_operator.core.known import Unknown
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_active
from imageedit_operator.core.resource import ImageEditDeployment


# | what was not seen                              | said when                                       |
# | the queue                                      | spec.autoscaling is set                         |
# | how the operator was told to inject devices    | injection is Auto on NPUs, without runtimeClassName |
# | free cards                                     | they are not known, and pods ask for some       |
# | sick cards that the device plugin names        | it was asked, and could not be read             |
# | budgets                                        | they are not known                              |
# | what pods have to finish                       | a pod that runs did not say                     |
def made(resource: ImageEditDeployment, observed: Observed, *, pods: int, health_unread: str = "") -> tuple[str, ...]:
    """Each as a sentence; `pods` is the number that the forecast is about."""
    return tuple(_sentences(resource, observed, pods, health_unread))


def _sentences(resource: ImageEditDeployment, observed: Observed, pods: int, health_unread: str) -> Iterator[str]:
    accelerator = resource.accelerator
    if resource.autoscaling is not None:
        yield f"Prometheus was not asked: the number of pods stays {pods}, whatever the queue is"
    if accelerator.device == "npu" and accelerator.injection == "Auto" and not accelerator.runtime_class:
        yield (
            "the operator's settings were not read: injection Auto is taken for Runtime "
            "(accelerator.autoInjection of its chart may say another), which changes the pods and no card"
        )
    if isinstance(observed.cards, Unknown) and accelerator.extended_resource:
        yield f"free cards are not known, so none is taken for free: {observed.cards.message}"
    elif health_unread:
        yield f"cards that only the device plugin calls sick were not seen, and count as well: {health_unread}"
    if isinstance(observed.budgets, Unknown):
        yield f"what evictions may take was not seen: {observed.budgets.message}"
    silent = sorted(pod.name for pod in observed.pods if _is_silent(pod))
    if silent:
        more = f" and {len(silent) - 1} more" if silent[1:] else ""
        yield f"pod {silent[0]}{more} did not say what it works on: it is taken to drain for the whole drainTimeout"


def _is_silent(pod: ObservedPod) -> bool:
    return pod.started and is_active(pod) and isinstance(pod.report, Unknown)
