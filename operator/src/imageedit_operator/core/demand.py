"""How many pods are wanted in all, from `spec.replicas` or from the queue."""

from __future__ import annotations

from collections.abc import Sequence

from imageedit_operator.core.observed import Observed, ObservedDeployment, ObservedPod
from imageedit_operator.core.placement import free_pods
from imageedit_operator.core.pods import holds_card, is_serving
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.scaling import Decision, Memory, decide


def wanted_pods(
    resource: ImageEditDeployment,
    observed: Observed,
    memory: Memory,
    owned: Sequence[ObservedDeployment],
    ours: Sequence[ObservedPod],
    *,
    now: float,
) -> tuple[int, Decision | None, Memory]:
    """The total number of pods, from `spec.replicas` or from the queue."""
    if resource.autoscaling is None:
        return resource.replicas, None, Memory()
    current = observed.status.get("desiredReplicas")
    if not isinstance(current, int):
        # A status that was lost (a restored backup) must not remove pods that serve.
        current = sum(item.replicas for item in owned)
    # Another resource's waiting pods are ahead of one that is not created yet.
    free = free_places(resource, observed)
    decision, scaling = decide(
        memory,
        observed.queue,
        resource.autoscaling,
        current=current,
        warm_pods=sum(is_serving(pod) for pod in ours),
        card_limit=None if free is None else free + sum(holds_card(pod) for pod in ours),
        now=now,
    )
    return decision.desired, decision, scaling


def free_places(resource: ImageEditDeployment, observed: Observed) -> int | None:
    """Pods that would find a card now; None where pods ask for none, or nobody may know."""
    return free_pods(observed.cards, cards_per_pod(resource), claims=True)


def cards_per_pod(resource: ImageEditDeployment) -> int:
    """Cards that each pod asks for; 0 when it asks for none."""
    return resource.accelerator.count if resource.accelerator.extended_resource else 0
