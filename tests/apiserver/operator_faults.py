"""A plain HTTP proxy before a bare apiserver that can misbehave on purpose, and the kubeconfig for it."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from imageedit_operator.kube.client import load_configuration
from localcluster.controlplane import ControlPlane

GONE = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"},
}
LEADER_CHANGED = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcdserver: leader changed"},
}


class FaultProxy:
    """Forwards with the admin's certificate; `inject`, `down` and `refuse_watches` are the faults."""

    def __init__(self, upstream: str, http: aiohttp.ClientSession) -> None:
        self.refuse_watches = 0
        """HTTP status for every new watch; 0 = none."""
        self.listed: list[dict[str, str]] = []
        """Path and query of every list and watch."""
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

    def inject(self, event: Mapping[str, Any]) -> int:
        """Writes a line into every open watch and ends it; the number of watches."""
        line = json.dumps(event).encode() + b"\n"
        for queue in list(self._watches):
            queue.put_nowait(line)
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
            body = {"kind": "Status", "code": self.refuse_watches, "message": "refused by the test"}
            return web.json_response(body, status=self.refuse_watches)
        headers = {name: request.headers[name] for name in ("Content-Type", "Accept") if name in request.headers}
        headers["User-Agent"] = request.headers.get("User-Agent", "")
        upstream = self._http.request(
            request.method, self._upstream + request.path_qs, headers=headers, data=await request.read() or None
        )
        async with upstream as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            if watching:
                await self._stream(answer, response)
            else:
                await response.write(await answer.read())
            return response

    async def _stream(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()

        async def copy() -> None:
            async for line in answer.content:
                lines.put_nowait(line)
            lines.put_nowait(None)

        copying = asyncio.create_task(copy())
        self._watches.add(lines)
        try:
            while (line := await lines.get()) is not None:
                await response.write(line)
        finally:
            self._watches.discard(lines)
            copying.cancel()
            await asyncio.wait({copying})


@asynccontextmanager
async def faulty(plane: ControlPlane) -> AsyncIterator[FaultProxy]:
    """A proxy before this apiserver, for as long as the context lasts."""
    configuration = await load_configuration(str(plane.kubeconfig))
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.load_cert_chain(configuration.cert_file, configuration.key_file)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=2**21) as http:
        proxy = FaultProxy(plane.url, http)
        await proxy.up()
        try:
            yield proxy
        finally:
            await proxy.close()
    await asyncio.sleep(0.1)  # aborted TLS connections need a turn of the loop to close their sockets
