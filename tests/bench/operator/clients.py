"""Clients of a Service without kube-proxy: they know the endpoints from its EndpointSlices, as kube-proxy does."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import Resource
from imageedit_server.loadtest.asking import asking, sample_picture
from imageedit_server.loadtest.http import Address

SLICES = Resource(group="discovery.k8s.io", version="v1", plural="endpointslices")
LOOK_S = 0.2
PAUSE_S = 0.3
TIMEOUT_S = 120.0


class Clients:
    """Each edits again and again; every request has one fate.

    | fate | when |
    | --- | --- |
    | answered | 200 |
    | refused | 429 or 503, no connection, or no endpoint: nothing was accepted |
    | lost | anything else |
    """

    def __init__(self, kube: KubeClient, namespace: str, service: str) -> None:
        self._kube, self._namespace, self._service = kube, namespace, service
        self._endpoints: list[str] = []
        self.fates: Counter[str] = Counter()
        picture = asking(
            Address(host="-", port=1, tls=False, prefix=""),
            picture=sample_picture(),
            prompt="-",
            size=None,
            steps=None,
            api_key=None,
            timeout_s=TIMEOUT_S,
        )
        self._picture = picture

    async def follow(self) -> None:
        """The ready endpoints, as often as a busy kube-proxy hears of them."""
        labels = f"kubernetes.io/service-name={self._service}"
        while True:
            slices = await self._kube.list_all(SLICES, self._namespace, labels=labels)
            self._endpoints = [
                address
                for one in slices
                for endpoint in one.get("endpoints") or []
                if endpoint.get("conditions", {}).get("ready")
                for address in endpoint["addresses"]
            ]
            await asyncio.sleep(LOOK_S)

    async def edit(self, client: int) -> None:
        """One client; those of even number keep their connections open, which drains must bear with."""
        connector = aiohttp.TCPConnector(force_close=client % 2 == 1)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        number = client * 1_000_000
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
            while True:
                number += 1
                fate = await self._fate(http, number)
                self.fates[fate] += 1
                if fate == "refused":
                    await asyncio.sleep(PAUSE_S)

    async def _fate(self, http: aiohttp.ClientSession, number: int) -> str:
        if not self._endpoints:
            return "refused"
        url = f"http://{random.choice(self._endpoints)}:8000/v1/edit"
        try:
            async with http.post(url, data=self._picture.body(number), headers=self._picture.headers) as answer:
                body = await answer.read()
        except aiohttp.ClientConnectorError:
            return "refused"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"lost: {error!r}"
        if answer.status == 200:
            return "answered"
        return "refused" if answer.status in (429, 503) else f"lost: {answer.status} {json.loads(body)}"


@asynccontextmanager
async def editing(kube: KubeClient, namespace: str, service: str, *, count: int) -> AsyncIterator[Clients]:
    """That many clients at work; those on their way are cut off only after the count is taken."""
    clients = Clients(kube, namespace, service)
    working = [asyncio.create_task(clients.follow()), *(asyncio.create_task(clients.edit(n)) for n in range(count))]
    try:
        yield clients
    finally:
        for task in working:
            task.cancel()
        await asyncio.wait(working)
