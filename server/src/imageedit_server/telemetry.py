"""The server's metrics, and the only module that knows prometheus_client.

A registry of its own, and three labels on every series that it writes, so that no scrape configuration can lose them.
`docs/metrics.md` describes each metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from imageedit_server import metric_labels
from imageedit_server.gate.refusals import REASONS
from imageedit_server.worker.protocol import EditResult, WarmReport

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

ERROR_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5)

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
        self.work_ahead_s = Gauge(
            "imageedit_work_ahead_seconds",
            "Estimated seconds until all edits that are in are done, at the last change of the queue.",
            registry=registry,
        )
        self.cost_error = Histogram(
            "imageedit_cost_error_ratio",
            "By what part of an edit's real seconds its estimate was off.",
            buckets=ERROR_BUCKETS,
            registry=registry,
        )
        self.dropped = Counter(
            "imageedit_dropped_edits_total",
            "Accepted edits that were given up, by reason.",
            ("reason",),
            registry=registry,
        )
        self.attached = Counter(
            "imageedit_attached_requests_total",
            "Requests that attached to an edit that was here already, by what they were recognised by.",
            ("by",),
            registry=registry,
        )
        self.safety_refused = Counter(
            "imageedit_safety_refused_total",
            "Requests and results that the safety hook refused, by what it looked at.",
            ("reason",),
            registry=registry,
        )
        self.denylist_stale = Gauge(
            "imageedit_denylist_stale",
            "1 while the prompt denylist is away or broken and an earlier one is in force.",
            registry=registry,
        )
        self.classifier_up = Gauge(
            "imageedit_safety_classifier_up", "1 while the safety classifier can look at pictures.", registry=registry
        )
        self.jobs = Gauge("imageedit_jobs", "Jobs that wait on disk or run.", ("state",), registry=registry)
        self.jobs_ended = Counter(
            "imageedit_jobs_ended_total", "Jobs that ended, by how.", ("state",), registry=registry
        )
        self.warm = Gauge("imageedit_warm", "1 while the model is loaded, warmed and checked.", registry=registry)
        self.draining = Gauge("imageedit_draining", "1 from the start of a drain.", registry=registry)
        self.worker_up = Gauge("imageedit_worker_up", "1 while the worker process can take an edit.", registry=registry)
        self.worker_restarts = Counter(
            "imageedit_worker_restarts_total", "Worker processes replaced.", registry=registry
        )
        self.worker_failures = Counter(
            "imageedit_worker_failures_total",
            "Failed edits, lost workers and failed starts, each once, by reason.",
            ("reason",),
            registry=registry,
        )
        self.decode_retries = Counter(
            "imageedit_decode_retries_total",
            "Results that were no picture until they were decoded again in float32.",
            registry=registry,
        )
        self.stage_s = Histogram(
            "imageedit_stage_seconds",
            "Seconds of each stage of an edit.",
            ("stage",),
            buckets=(0.001, 0.005, *WAIT_BUCKETS_S),
            registry=registry,
        )
        self.warm_shape_s = Gauge(
            "imageedit_warm_shape_seconds",
            "Seconds of one edit in the last warm-up, by everything that was warmed.",
            ("size", "pictures", "cfg"),
            registry=registry,
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
        for route in metric_labels.ROUTES:
            self.request_s.labels(route)
            for code in metric_labels.CODES:
                self.requests.labels(route, str(code))
        for at in metric_labels.SAFETY_REASONS:
            self.safety_refused.labels(at)
        for reason in REASONS:
            self.refused.labels(reason)
        for state in metric_labels.JOBS_OPEN:
            self.jobs.labels(state)
        for state in metric_labels.JOBS_ENDED:
            self.jobs_ended.labels(state)
        for drop in metric_labels.DROPS:
            self.dropped.labels(drop)
        for by in metric_labels.ATTACHED_BY:
            self.attached.labels(by)
        for failure in metric_labels.FAILURES:
            self.worker_failures.labels(failure)
        for stage in metric_labels.STAGES:
            self.stage_s.labels(stage)
        for size in sizes:
            self.warm_shape_s.labels(size, "1", "off")
            self.edit_s.labels(size)
            self.warm_edit_s.labels(size)

    def waited(self, seconds: float) -> None:
        """Note how long an edit waited for the card."""
        self.queue_wait_s.observe(seconds)
        self.stage_s.labels("wait").observe(seconds)

    def edited(self, result: EditResult) -> None:
        """Note the parts of an edit on the card."""
        stages = result.stages
        for stage, seconds in (
            ("prepare", stages.prepare_s),
            ("denoise", stages.denoise_s),
            ("finish", stages.finish_s),
        ):
            self.stage_s.labels(stage).observe(seconds)
        self.decode_retries.inc(int(result.retried_in_fp32))

    def warmed(self, report: WarmReport) -> None:
        """Note what is served."""
        for size, seconds in report.edit_s_by_size.items():
            self.warm_edit_s.labels(size).set(seconds)
        for warmed in report.served:
            shape = warmed.shape
            cfg = "on" if shape.cfg else "off"
            self.warm_shape_s.labels(str(shape.size), str(shape.references), cfg).set(warmed.edit_s)

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
