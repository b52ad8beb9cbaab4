"""How many pods are wanted in all, from `spec.replicas` or from the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed, ObservedDeployment, QueueSample
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.placement import free_pods
from imageedit_operator.core.pods import holds_card, is_active, is_serving
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.scaling import Decision, Memory, decide

SCRAPED_WITHIN_S = 60.0
"""Two periods of most scrapers: no longer does a pod need that runs before it has a series."""


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
        words_for_a_start(observed.queue, ours, now=now),
        resource.autoscaling,
        current=current,
        warm_pods=sum(is_serving(pod) for pod in ours),
        card_limit=None if free is None else free + sum(holds_card(pod) for pod in ours),
        now=now,
    )
    return decision.desired, decision, scaling


# | the queue      | pods that run              | what is said                     |
# | is not NoSeries| any                        | as it was                        |
# | NoSeries       | none                       | that there is nothing to scrape  |
# | NoSeries       | all for less than a minute | that there was no time to scrape |
# | NoSeries       | one for longer             | as it was: what to check         |
def words_for_a_start(
    queue: Known[QueueSample] | Unknown, ours: Iterable[ObservedPod], *, now: float
) -> Known[QueueSample] | Unknown:
    """A scraper that nothing is wrong with needs time: nobody is sent to look at it before."""
    if isinstance(queue, Known) or queue.reason != "NoSeries":
        return queue
    since = [pod.started_at for pod in ours if is_active(pod) and pod.started]
    if not since:
        return Unknown(reason=queue.reason, message="no server pod runs yet, so there is nothing to scrape")
    if now - min(since) < SCRAPED_WITHIN_S:
        words = "the server pods were only just started: Prometheus had no time to scrape them yet"
        return Unknown(reason=queue.reason, message=words)
    return queue


def free_places(resource: ImageEditDeployment, observed: Observed) -> int | None:
    """Pods that would find a card now; None where pods ask for none, or nobody may know."""
    return free_pods(observed.cards, cards_per_pod(resource), claims=True)


def cards_per_pod(resource: ImageEditDeployment) -> int:
    """Cards that each pod asks for; 0 when it asks for none."""
    return resource.accelerator.count if resource.accelerator.extended_resource else 0
