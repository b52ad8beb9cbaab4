"""One client's HTTP/1.1 connection.

asyncio and h11: both are in the server's image already (h11 is part of uvicorn), one thread holds hundreds of clients,
and a time limit or Ctrl-C cancels a request wherever it stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a service is; `prefix` is the path before /v1."""

    host: str
    port: int
    tls: bool
    prefix: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `http://host:8000`, with or without /v1 at its end.

        Raises:
            ValueError: it is not the address of a service.
        """
        text = url if "://" in url else f"http://{url}"
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an address such as http://127.0.0.1:8000")
        tls = parts.scheme == "https"
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return cls(host=parts.hostname, port=parts.port or (443 if tls else 80), tls=tls, prefix=prefix)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}{self.prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class ConnectionBroken(Exception):
    """The service closed the connection before its answer was whole."""


class HttpClient:
    """Keeps its connection from one request to the next, and makes a new one after an error."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._tls = ssl.create_default_context() if address.tls else None
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection] | None = None

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        """Send one request and wait for its whole answer.

        Raises:
            OSError: the service cannot be reached.
            ConnectionBroken: it ended in the middle, or what came is not HTTP.
        """
        whole = False
        try:
            reader, writer, http = await self._connected()
            writer.writelines(self._packed(http, method, path, headers or {}, body))
            await writer.drain()
            answer = await _answer(reader, http)
            whole = True
        except (h11.ProtocolError, ConnectionResetError, BrokenPipeError) as error:
            raise ConnectionBroken(str(error) or type(error).__name__) from error
        finally:
            # In the middle of an answer nothing else can be asked on this connection.
            if not whole:
                self.close()
        if http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
        else:
            self.close()
        return answer

    def close(self) -> None:
        """Drop the connection."""
        if self._open is not None:
            _, writer, _ = self._open
            self._open = None
            with contextlib.suppress(OSError, RuntimeError):
                writer.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection]:
        if self._open is not None and self._open[0].at_eof():
            self.close()
        if self._open is None:
            reader, writer = await asyncio.open_connection(
                self._address.host, self._address.port, ssl=self._tls, limit=READ_BYTES
            )
            self._open = reader, writer, h11.Connection(h11.CLIENT)
        return self._open

    def _packed(
        self, http: h11.Connection, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> list[bytes]:
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        sent = {"host": f"{host}:{self._address.port}", "content-length": str(len(body)), **headers}
        request = h11.Request(method=method, target=self._address.prefix + path, headers=list(sent.items()))
        parts = [http.send(request), http.send(h11.Data(data=body)) if body else b"", http.send(h11.EndOfMessage())]
        return [part for part in parts if part]


async def _answer(reader: asyncio.StreamReader, http: h11.Connection) -> Answer:
    head: h11.Response | None = None
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
            return Answer(status=head.status_code, headers=headers, body=bytes(body))
        elif isinstance(event, h11.ConnectionClosed):
            raise ConnectionBroken("closed before an answer")
