"""HTTP by hand, for what no client library would send."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 40.0


@dataclass(frozen=True, kw_only=True)
class RawAnswer:
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The error object of the body."""
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found


class RawClient:
    """One connection; reads answers one after the other."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._left = b""

    def send(self, data: bytes) -> None:
        """Send bytes; a server that has closed already is none of the caller's business."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def answer(self, *, of_head: bool = False) -> RawAnswer:
        """Read one answer; `of_head`: it answers a HEAD, and so has no body."""
        while b"\r\n\r\n" not in self._left:
            self._left += self._more()
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ")[1])
        length = 0 if of_head or status == 100 else int(headers["content-length"])
        while len(self._left) < length:
            self._left += self._more()
        body, self._left = self._left[:length], self._left[length:]
        return RawAnswer(status=status, headers=headers, body=body)

    def rest(self) -> bytes:
        """What the server still says until it has closed."""
        try:
            while data := self.socket.recv(65_536):
                self._left += data
        except ConnectionResetError:
            pass
        return self._left

    def closed(self) -> bool:
        """Wait until the server has closed, whatever it still says."""
        self.rest()
        return True

    def _more(self) -> bytes:
        data = self.socket.recv(65_536)
        if not data:
            raise ConnectionError(f"closed after {self._left[:200]!r}")
        return data


@contextmanager
def raw_client(port: int) -> Iterator[RawClient]:
    """A connection of one's own."""
    client = RawClient(port)
    try:
        yield client
    finally:
        client.socket.close()


def head(method: str = "GET", path: str = "/v1/models", *headers: str, version: str = "1.1") -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/{version}", "Host: here", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
