"""An OTLP/HTTP receiver on a loopback port, which can also be one that fails or never answers."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from server.running import until


@dataclass
class Receiver:
    """What came in; `status` is answered, and None is no answer."""

    port: int
    status: int | None
    spans: list[Span] = field(default_factory=list)
    resources: dict[str, dict[str, object]] = field(default_factory=dict)
    """Attributes of who sent the spans, by trace."""
    bodies: list[bytes] = field(default_factory=list)
    calls: int = 0

    def environ(self) -> dict[str, str]:
        """The variables that lead a server here."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "NO_PROXY": "127.0.0.1",
        }

    def trace(self, trace_id: str) -> dict[str, Span]:
        """Spans of one trace, by name."""
        return {span.name: span for span in list(self.spans) if span.trace_id.hex() == trace_id}

    def named(self, name: str) -> list[Span]:
        """All spans of that name."""
        return [span for span in list(self.spans) if span.name == name]

    def wait_for(self, name: str, count: int = 1) -> list[Span]:
        """Wait until that many spans of a name have come."""
        until(lambda: len(self.named(name)) >= count, timeout_s=30, what=f"{count} spans {name}")
        return self.named(name)


def attributes(span: Span) -> dict[str, object]:
    """Attributes of a span as plain values."""
    return {one.key: _plain(one.value) for one in span.attributes}


@contextlib.contextmanager
def receiver(*, status: int | None = 200) -> Iterator[Receiver]:
    """Receive at /v1/traces until the end of the context."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.calls += 1
            if received.status is None:
                ended.wait(60)
                return
            if received.status == 200 and self.path == "/v1/traces":
                _keep(received, gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
            self.send_response(received.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received = Receiver(port=server.server_address[1], status=status)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _keep(received: Receiver, body: bytes) -> None:
    received.bodies.append(body)
    message = ExportTraceServiceRequest.FromString(body)
    for of_resource in message.resource_spans:
        resource = {one.key: _plain(one.value) for one in of_resource.resource.attributes}
        for scope in of_resource.scope_spans:
            received.resources |= {span.trace_id.hex(): resource for span in scope.spans}
            received.spans.extend(scope.spans)


def _plain(value: AnyValue) -> object:
    return getattr(value, value.WhichOneof("value") or "string_value")
