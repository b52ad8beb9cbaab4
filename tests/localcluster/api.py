"""The few calls to the API server that the package makes itself, over the standard library's HTTP client."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcluster.errors import LocalClusterError


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """An API server and the client certificate to talk to it with."""

    url: str
    ca: Path
    cert: Path
    key: Path
    timeout_s: float = 10.0

    def connect(self) -> http.client.HTTPSConnection:
        """A new connection; the caller closes it."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(str(self.cert), str(self.key))
        parts = urlsplit(self.url)
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=self.timeout_s)

    def text(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, kind: str = "application/json"
    ) -> str:
        """The body of the answer; raises LocalClusterError for a status from 300 on, OSError without a connection."""
        connection = self.connect()
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, body=payload, headers={"Content-Type": kind, "Accept": "*/*"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise LocalClusterError(f"{method} {path}: {answer.status} {text[:300]}")
        return text

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, kind: str = "application/json"
    ) -> Any:
        """Like `text`, parsed as JSON."""
        return json.loads(self.text(method, path, body, kind=kind))

    def answers(self, path: str) -> bool:
        """Whether a GET of that path succeeds now."""
        try:
            self.text("GET", path)
        except (LocalClusterError, OSError, http.client.HTTPException):
            return False
        return True

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the server ends it or nothing came for the timeout."""
        connection = self.connect()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status >= 300:
                raise LocalClusterError(f"watch {path}: {answer.status}")
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()
