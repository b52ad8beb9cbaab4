"""The operator's own metrics; the only module that knows prometheus_client.

docs/metrics.md lists them; a test holds that table and this module together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from imageedit_operator.core.actions import REMOVED_FOR
from imageedit_operator.core.stored import find
from imageedit_operator.workqueue import Key

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
RESULTS = ("ok", "gone", "invalid", "moved", "error", "timeout")
RECONCILE_BUCKETS_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
DIRECTIONS = ("up", "down")
PER_RESOURCE = ("imageedit_namespace", "imageedit_deployment")

# Else each counter has a second series, with its time of birth, that nobody reads.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Telemetry:
    """One set of metrics in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        prefix = "imageedit_operator_"
        self._reconcile = Counter(
            prefix + "reconcile", "Passes over one resource by result.", ["result"], registry=self.registry
        )
        self._reconcile_s = Histogram(
            prefix + "reconcile_seconds", "Duration of one pass.", buckets=RECONCILE_BUCKETS_S, registry=self.registry
        )
        self._depth = Gauge(
            prefix + "workqueue_depth", "Resources that are due and wait for a worker.", registry=self.registry
        )
        self._oldest_s = Gauge(
            prefix + "workqueue_oldest_seconds", "Age of the resource that waits longest.", registry=self.registry
        )
        self._requests = Counter(
            prefix + "api_requests",
            "Requests to the apiserver, those of the watches excluded.",
            ["verb", "code"],
            registry=self.registry,
        )
        self._watch_restarts = Counter(
            prefix + "watch_restarts", "Times that the watches had to start anew.", registry=self.registry
        )
        self._leading = Gauge(
            prefix + "leading", "1 while this process acts, 0 while it waits for the Lease.", registry=self.registry
        )
        self._resync_s = Gauge(
            prefix + "last_resync_timestamp_seconds", "When the last full list completed.", registry=self.registry
        )
        self._free_cards = Gauge(
            prefix + "free_cards", "Cards that a new pod could get now.", PER_RESOURCE, registry=self.registry
        )
        self._cards_known = Gauge(
            prefix + "free_cards_known", "1 when free_cards was measured.", PER_RESOURCE, registry=self.registry
        )
        self._desired = Gauge(
            prefix + "desired_replicas", "Replicas that the operator wants.", PER_RESOURCE, registry=self.registry
        )
        self._ready = Gauge(prefix + "ready_replicas", "Pods that serve.", PER_RESOURCE, registry=self.registry)
        self._updated = Gauge(
            prefix + "updated_replicas", "Pods of the wanted revision.", PER_RESOURCE, registry=self.registry
        )
        self._degraded = Gauge(
            prefix + "degraded",
            "1 while the condition Degraded is True.",
            PER_RESOURCE,
            registry=self.registry,
        )
        self._removed = Counter(
            prefix + "pods_removed",
            "Pods that were over, or could not serve on a sick card, and were removed.",
            ["reason", *PER_RESOURCE],
            registry=self.registry,
        )
        self._sick_left = Counter(
            prefix + "sick_cards_left",
            "Pods that were chosen to give way to one on another card, for theirs is sick.",
            PER_RESOURCE,
            registry=self.registry,
        )
        self._sample_known = Gauge(
            prefix + "queue_sample_known",
            "1 when Prometheus gave a queue sample.",
            PER_RESOURCE,
            registry=self.registry,
        )
        self._sample_age_s = Gauge(
            prefix + "queue_sample_age_seconds",
            "Age of the oldest scrape in the sample.",
            PER_RESOURCE,
            registry=self.registry,
        )
        self._decisions = Counter(
            prefix + "scaling_decisions",
            "Changes of the wanted replicas.",
            ["direction", *PER_RESOURCE],
            registry=self.registry,
        )
        for result in RESULTS:
            self._reconcile.labels(result)

    def queue_seen(self, depth: int, oldest_s: float) -> None:
        """The work queue now; written by the loop that owns it, for scrapes come from another thread."""
        self._depth.set(depth)
        self._oldest_s.set(oldest_s)

    def reconciled(self, result: str, seconds: float) -> None:
        """One pass ended; `result` is one of RESULTS."""
        self._reconcile.labels(result).inc()
        self._reconcile_s.observe(seconds)

    def requested(self, verb: str, code: str) -> None:
        """One request to the apiserver ended."""
        self._requests.labels(verb, code).inc()

    def watch_restarted(self) -> None:
        """The watches had to start anew."""
        self._watch_restarts.inc()

    def leads(self, yes: bool) -> None:
        """Whether this process acts now."""
        self._leading.set(1 if yes else 0)

    def resynced(self, now: float) -> None:
        """A full list completed at this UTC epoch time in seconds."""
        self._resync_s.set(now)

    def status_seen(self, key: Key, status: Mapping[str, Any]) -> None:
        """The wanted status of a resource after a pass."""
        self._desired.labels(*key).set(status.get("desiredReplicas") or 0)
        self._ready.labels(*key).set(status.get("readyReplicas") or 0)
        self._updated.labels(*key).set(status.get("updatedReplicas") or 0)
        self._degraded.labels(*key).set(find(status, "Degraded").get("status") == "True")
        self._sick_left.labels(*key)
        for reason in REMOVED_FOR:
            self._removed.labels(reason, *key)
        for direction in DIRECTIONS:  # from zero, so that a rate sees the first decision
            self._decisions.labels(direction, *key)

    def cards_seen(self, key: Key, free: int | None) -> None:
        """Free cards for a resource; None = unknown."""
        self._cards_known.labels(*key).set(0 if free is None else 1)
        if free is None:
            _drop(self._free_cards, *key)
        else:
            self._free_cards.labels(*key).set(free)

    def sample_seen(self, key: Key, age_s: float | None) -> None:
        """Age of the queue sample of a resource that scales on it; None = no sample."""
        self._sample_known.labels(*key).set(0 if age_s is None else 1)
        if age_s is None:
            _drop(self._sample_age_s, *key)
        else:
            self._sample_age_s.labels(*key).set(age_s)

    def decided(self, key: Key, before: int, after: int) -> None:
        """The wanted replicas changed."""
        self._decisions.labels("up" if after > before else "down", *key).inc()

    def removed(self, key: Key, reason: str) -> None:
        """A pod was removed for one of REMOVED_FOR."""
        self._removed.labels(reason, *key).inc()

    def left_sick_cards(self, key: Key, pods: int) -> None:
        """So many pods were chosen to leave their sick cards."""
        self._sick_left.labels(*key).inc(pods)

    def forget_sample(self, key: Key) -> None:
        """The resource no longer scales on its queue."""
        _drop(self._sample_known, *key)
        _drop(self._sample_age_s, *key)

    def forget(self, key: Key) -> None:
        """The resource is gone: so are its series."""
        for gauge in (self._free_cards, self._cards_known, self._desired, self._ready, self._updated, self._degraded):
            _drop(gauge, *key)
        _drop(self._sick_left, *key)
        for reason in REMOVED_FOR:
            _drop(self._removed, reason, *key)
        self.forget_sample(key)
        for direction in DIRECTIONS:
            _drop(self._decisions, direction, *key)

    def render(self) -> bytes:
        """The text that Prometheus scrapes, of CONTENT_TYPE."""
        return generate_latest(self.registry)


def _drop(metric: Gauge | Counter, *labels: str) -> None:
    try:
        metric.remove(*labels)
    except KeyError:
        return  # this resource never had the series
