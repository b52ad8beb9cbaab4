"""The server's metrics, and the only module that knows prometheus_client.

A registry of its own, and three labels on every series that it writes, so that no scrape configuration can lose them.
`docs/reference/metrics-server.md` describes each metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

ROUTES = ("/v1/edit", "/v1/images/edits", "/v1/models", "/v1/models/{id}", "unknown")
EDIT_ROUTES = ("/v1/edit", "/v1/images/edits")
CODES = (200, 400, 404, 405, 413, 429, 499, 500, 503)
REFUSALS = ("queue_full", "too_many_uploads", "draining", "not_ready", "invalid")

# One edit takes 0.3 s with the demo checkpoint and up to two minutes on a card; a wait is up to fifty of them.
EDIT_BUCKETS_S = (0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300)
WAIT_BUCKETS_S = (0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)


class _WithLabels:
    """A view of a registry whose every sample carries the same further labels."""

    def __init__(self, registry: CollectorRegistry, labels: dict[str, str]) -> None:
        self._registry = registry
        self._labels = labels

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            labelled = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            # Without the `_created` series: they double the scrape and say only when this process began.
            labelled.samples = [
                sample._replace(labels={**self._labels, **sample.labels})
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ]
            yield labelled


class Telemetry:
    """All metrics, as attributes named after what they count."""

    def __init__(self, *, namespace: str, deployment: str, revision_hash: str, sizes: Sequence[str]) -> None:
        registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._registry = registry
        labels = {
            "imageedit_namespace": namespace,
            "imageedit_deployment": deployment,
            "imageedit_revision": revision_hash,
        }
        self._labelled: Collector = _WithLabels(registry, labels)

        self.waiting = Gauge("imageedit_waiting_requests", "Edits accepted and not started.", registry=registry)
        self.running = Gauge("imageedit_running_requests", "Edits on the card: 0 or 1.", registry=registry)
        self.requests = Counter(
            "imageedit_requests_total",
            "Requests answered, by route and HTTP status; 499 is a client that left before its answer.",
            ("route", "code"),
            registry=registry,
        )
        self.refused = Counter(
            "imageedit_refused_requests_total", "Edits not accepted, by reason.", ("reason",), registry=registry
        )
        self.request_s = Histogram(
            "imageedit_request_seconds",
            "Seconds from a request's first byte to its answer.",
            ("route",),
            buckets=WAIT_BUCKETS_S,
            registry=registry,
        )
        self.edit_s = Histogram(
            "imageedit_edit_seconds",
            "Seconds of an edit on the card, by size.",
            ("size",),
            buckets=EDIT_BUCKETS_S,
            registry=registry,
        )
        self.queue_wait_s = Histogram(
            "imageedit_queue_wait_seconds",
            "Seconds that an edit waited for the card.",
            buckets=WAIT_BUCKETS_S,
            registry=registry,
        )
        self.warm = Gauge("imageedit_warm", "1 while the model is loaded, warmed and checked.", registry=registry)
        self.draining = Gauge("imageedit_draining", "1 from the start of a drain.", registry=registry)
        self.worker_up = Gauge("imageedit_worker_up", "1 while the worker process can take an edit.", registry=registry)
        self.worker_restarts = Counter(
            "imageedit_worker_restarts_total", "Worker processes replaced.", registry=registry
        )
        self.warmup_s = Gauge(
            "imageedit_warmup_seconds",
            "Seconds from the start (or the loss of the worker) until warm; 0 before it.",
            registry=registry,
        )
        self.warm_edit_s = Gauge(
            "imageedit_warm_edit_seconds",
            "Seconds of one edit in the last warm-up, by size.",
            ("size",),
            registry=registry,
        )
        self.model_info = Gauge(
            "imageedit_model_info",
            "Always 1; the labels say which model is loaded.",
            ("model", "model_revision", "digest"),
            registry=registry,
        )
        self._start_at_zero(sizes)

    def _start_at_zero(self, sizes: Sequence[str]) -> None:
        """A series that appears with its first event has no rate for that event."""
        for route in ROUTES:
            self.request_s.labels(route)
            for code in CODES:
                self.requests.labels(route, str(code))
        for reason in REFUSALS:
            self.refused.labels(reason)
        for size in sizes:
            self.edit_s.labels(size)
            self.warm_edit_s.labels(size)

    def exposition(self) -> bytes:
        """All series as Prometheus text."""
        return generate_latest(self._labelled)

    def families(self) -> dict[str, str]:
        """Name and type of each metric of the server itself, as they are queried."""
        return {
            metric.name + ("_total" if metric.type == "counter" else ""): metric.type
            for metric in self._registry.collect()
            if metric.name.startswith("imageedit_")
        }
