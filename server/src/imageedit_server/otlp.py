"""Traces by OpenTelemetry, sent as OTLP over HTTP; the only module that knows opentelemetry.

The SDK itself reads the standard variables (endpoint, headers, sampler, resource, queue). Spans go into its bounded
queue, and a thread of its own sends them: a collector that is away, slow or broken costs spans, never a request.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from imageedit_server.logs import fields
from imageedit_server.settings import Settings
from imageedit_server.tracing import Attribute, Span

log = logging.getLogger("imageedit.tracing")

# A pod that ends has better things to do than to wait for a collector.
LAST_SPANS_S = 2.0
QUIET_S = 60.0
# What the exporter and its HTTP client log about every failure.
NOISY_LOGGERS = ("opentelemetry", "urllib3")


class OtlpTraces:
    """Traces of one serving process."""

    def __init__(self, settings: Settings, *, instance: str) -> None:
        _quieten(time.monotonic)
        # Variables win over what is known here: Resource.create merges them last.
        resource = Resource.create().merge(Resource(_unset(_known(settings, instance))))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("imageedit_server")
        self._propagator = TraceContextTextMapPropagator()
        # Spans that are told afterwards have monotonic times.
        self._epoch_s = time.time() - time.monotonic()
        log.info("traces_on", extra=fields(service=str(resource.attributes.get("service.name"))))

    @contextmanager
    def request(self, *, method: str, route: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """The server span of a request."""
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route, "url.scheme": "http"},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield _OtlpSpan(span)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Attribute] | None = None) -> Iterator[Span]:
        """A part of the current span."""
        # Exceptions can quote what a client sent, so only their class is told.
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            told = _OtlpSpan(span)
            try:
                yield told
            except BaseException as error:
                told.fail(type(error).__name__)
                raise

    def past(
        self,
        name: str,
        *,
        start_s: float,
        end_s: float,
        attributes: Mapping[str, Attribute] | None = None,
        failed: str | None = None,
    ) -> None:
        """A part that is over."""
        span = self._tracer.start_span(name, attributes=attributes, start_time=self._epoch_ns(start_s))
        if failed is not None:
            _OtlpSpan(span).fail(failed)
        span.end(self._epoch_ns(end_s))

    def note(self, name: str, value: Attribute) -> None:
        """Add to the current span."""
        trace.get_current_span().set_attribute(name, value)

    async def close(self) -> None:
        """Send what is left. The thread is a daemon: one that hangs does not keep the process."""
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            _tell(loop, sent)

        threading.Thread(target=shut_down, name="last-spans", daemon=True).start()
        try:
            await asyncio.wait_for(sent.wait(), LAST_SPANS_S)
        except TimeoutError:
            log.warning("last_spans_not_sent", extra=fields(waited_s=LAST_SPANS_S))

    def _epoch_ns(self, monotonic_s: float) -> int:
        return int((monotonic_s + self._epoch_s) * 1e9)


class _OtlpSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    def set(self, name: str, value: Attribute) -> None:
        self._span.set_attribute(name, value)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR))


class OnceInAWhile(logging.Handler):
    """One line of ours for all that is logged within a while, so that a collector that is away fills no log."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__(logging.WARNING)
        self._now_s = now_s
        self._quiet_until_s = -1.0
        self._untold = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on, or count it; called under the handler's own lock."""
        now_s = self._now_s()
        if now_s < self._quiet_until_s:
            self._untold += 1
            return
        self._quiet_until_s = now_s + QUIET_S
        untold, self._untold = self._untold, 0
        log.warning("traces_not_sent", extra=fields(why=record.getMessage()[:300], untold_before=untold))


def _quieten(now_s: Callable[[], float]) -> None:
    handler = OnceInAWhile(now_s)
    for name in NOISY_LOGGERS:
        noisy = logging.getLogger(name)
        noisy.handlers, noisy.propagate = [handler], False


def _known(settings: Settings, instance: str) -> dict[str, str]:
    return {
        "service.name": "imageedit-server",
        "service.instance.id": instance,
        "service.version": _version(),
        "k8s.namespace.name": settings.namespace,
        "k8s.pod.name": settings.pod,
        "imageedit.deployment": settings.deployment,
        "imageedit.revision": settings.revision_hash,
    }


def _unset(known: Mapping[str, str]) -> dict[str, str]:
    """What the variables leave open; the SDK's own default of the service's name says nothing."""
    given = Resource.create().attributes
    return {
        name: text
        for name, text in known.items()
        if text and (name not in given or str(given[name]).startswith("unknown_service"))
    }


def _version() -> str:
    try:
        return version("imageedit-server")
    except PackageNotFoundError:
        return ""


def _tell(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(event.set)
    except RuntimeError:
        return  # the loop has ended: nobody waits any more
