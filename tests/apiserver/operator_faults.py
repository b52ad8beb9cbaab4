"""A plain HTTP proxy before a bare apiserver that can misbehave on purpose, and the kubeconfig for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from apiserver.operator_plane import eventually
from imageedit_operator.kube.login import load_configuration
from localcluster.controlplane import ControlPlane

GONE = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"},
}
LEADER_CHANGED = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcdserver: leader changed"},
}


WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LISTENS_S = 1.0
NO_WRITES = ("/selfsubjectaccessreviews",)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What a request is answered with instead of being forwarded; status 0 = it is forwarded, after the delay."""

    status: int = 0
    message: str = "refused by the test"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Write:
    """A request that changes something, and the status that the apiserver gave."""

    method: str
    path: str
    status: int


def forward_all(_method: str, _path: str) -> Refusal | None:
    """No fault."""
    return None


class FaultProxy:
    """Forwards with the admin's certificate; the public fields and methods are the faults."""

    def __init__(self, upstream: str, http: aiohttp.ClientSession) -> None:
        self.refuse_watches = 0
        """HTTP status for every new watch; 0 = none."""
        self.rule: Callable[[str, str], Refusal | None] = forward_all
        """Asked with method and path for each request that is no watch."""
        self.refused = 0
        """Requests that the rule refused or delayed."""
        self.on_write: Callable[[Write], None] = lambda _: None
        """Called after the apiserver has answered a write, before the client learns of it."""
        self.muted = False
        """Watches stay open and say nothing; what they would have said is lost."""
        self.listed: list[dict[str, str]] = []
        """Path and query of every list and watch."""
        self.written: list[Write] = []
        """Every forwarded write, in the order of the answers."""
        self._upstream = upstream
        self._http = http
        self._watches: set[asyncio.Queue[bytes | None]] = set()
        self._runner: web.AppRunner | None = None
        # Bound and never listening: while the proxy is down, nobody else gets its port.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self._port: int = self._reserved.getsockname()[1]

    async def up(self) -> None:
        """Listens, on the same port each time."""
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()

    async def down(self) -> None:
        """Cuts every connection and refuses new ones."""
        for queue in list(self._watches):
            queue.put_nowait(None)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def close(self) -> None:
        """Ends for good."""
        await self.down()
        self._reserved.close()

    def inject(self, event: Mapping[str, Any], *, watches: int | None = None) -> int:
        """Writes a line into so many open watches, or into all, and ends them; the number of open watches."""
        line = json.dumps(event).encode() + b"\n"
        for queue in list(self._watches)[:watches]:
            queue.put_nowait(line)
            queue.put_nowait(None)
        return len(self._watches)

    def cut_in_the_middle(self) -> int:
        """Sends the first half of an event into every open watch and cuts the connection; the number of watches."""
        half = b'{"type":"MODIFIED","object":{"metadata":{"name":"cut'
        for queue in list(self._watches):
            queue.put_nowait(half)
            queue.put_nowait(None)
        return len(self._watches)

    def open_watches(self) -> int:
        """Watches that stream now."""
        return len(self._watches)

    def write_kubeconfig(self, path: Path) -> Path:
        """A kubeconfig that leads through the proxy."""
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "users": [{"name": "u", "user": {}}],
            "contexts": [context],
            "current-context": "x",
        }
        path.write_text(json.dumps(config))
        return path

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        watching = request.query.get("watch") == "true"
        if request.method == "GET":
            self.listed.append({"path": request.path, **request.query})
        if watching and self.refuse_watches:
            return _answer(Refusal(status=self.refuse_watches))
        refusal = None if watching else self.rule(request.method, request.path)
        if refusal is not None:
            self.refused += 1
            await asyncio.sleep(refusal.delay_s)
            if refusal.status:
                return _answer(refusal)
        headers = {name: request.headers[name] for name in ("Content-Type", "Accept") if name in request.headers}
        headers["User-Agent"] = request.headers.get("User-Agent", "")
        upstream = self._http.request(
            request.method, self._upstream + request.path_qs, headers=headers, data=await request.read() or None
        )
        async with upstream as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            if watching:
                await response.prepare(request)
                await self._stream(answer, response, request)
            else:
                body = await answer.read()
                self._note(request, answer.status)
                await response.prepare(request)
                await response.write(body)
            return response

    def _note(self, request: web.Request, status: int) -> None:
        if request.method in WRITES and not request.path.endswith(NO_WRITES):
            write = Write(method=request.method, path=request.path, status=status)
            self.written.append(write)
            self.on_write(write)

    async def _stream(self, answer: aiohttp.ClientResponse, response: web.StreamResponse, request: web.Request) -> None:
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()

        async def copy() -> None:
            async for line in answer.content:
                if not self.muted:
                    lines.put_nowait(line)
            lines.put_nowait(None)

        copying = asyncio.create_task(copy())
        self._watches.add(lines)
        try:
            while request.transport is not None:  # a client that went is noticed, although there is nothing to tell it
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LISTENS_S):
                        line = await lines.get()
                    if line is None:
                        return
                    await response.write(line)
        finally:
            self._watches.discard(lines)
            copying.cancel()
            await asyncio.wait({copying})


def _answer(refusal: Refusal) -> web.Response:
    reason = {401: "Unauthorized", 403: "Forbidden", 409: "Conflict", 429: "TooManyRequests"}.get(refusal.status, "")
    body = {"kind": "Status", "code": refusal.status, "reason": reason, "message": refusal.message}
    return web.json_response(body, status=refusal.status, headers=refusal.headers)


@asynccontextmanager
async def faulty(plane: ControlPlane) -> AsyncIterator[FaultProxy]:
    """A proxy before this apiserver, for as long as the context lasts."""
    configuration = await load_configuration(str(plane.kubeconfig))
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.load_cert_chain(configuration.cert_file, configuration.key_file)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=60)
    sockets: list[socket.socket] = []

    def remembered(address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        sockets.append(socket.socket(family=family, type=kind, proto=protocol))
        return sockets[-1]

    connector = aiohttp.TCPConnector(ssl=context, limit=0, socket_factory=remembered)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=2**21) as http:
        proxy = FaultProxy(plane.url, http)
        await proxy.up()
        try:
            yield proxy
        finally:
            await proxy.close()
    await _closed(sockets)


async def _closed(sockets: Sequence[socket.socket]) -> None:
    """TLS says goodbye and waits for the other side: a loop that ended before would leave its sockets open."""

    async def look() -> bool | None:
        return True if all(one.fileno() == -1 for one in sockets) else None

    await eventually(look, what="the end of the connections to the apiserver")
