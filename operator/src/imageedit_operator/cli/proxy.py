"""HTTP to pods and Services through the apiserver: it works from wherever kubectl works, without a port-forward."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from kubernetes.aio.client import ApiClient

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_pod import WarmReport
from imageedit_operator.http_reading import read_bounded
from imageedit_operator.kube.warmz import LONGEST_REPORT_BYTES, PROBES_PORT, parse_warm_report

ASK_TIMEOUT_S = 5.0


class Proxy:
    """The `proxy` subresource of pods and Services.

    The apiserver takes the header `Authorization` for itself: a key for the server cannot pass.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    @asynccontextmanager
    async def request(
        self,
        method: str,
        target: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        data: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; `target` is such as `namespaces/team/services/qwen-edit:80`. Raises aiohttp.ClientError."""
        configuration = self._api.configuration
        auth = (await configuration.auth_settings()).get("BearerToken")
        sent = {**(headers or {}), **({"Authorization": auth["value"]} if auth else {})}
        more = {"server_hostname": configuration.tls_server_name} if configuration.tls_server_name else {}
        if self._api.rest_client.proxy:
            more["proxy"] = self._api.rest_client.proxy
        url = f"{configuration.host}/api/v1/{target}/proxy{path}"
        async with self._pool().request(method, url, data=data, headers=sent, timeout=timeout, **more) as answer:
            yield answer

    def _pool(self) -> aiohttp.ClientSession:
        rest = self._api.rest_client
        if rest.pool_manager is None:  # it is made with the first request
            rest.pool_manager = rest._create_pool_manager()
        pool: aiohttp.ClientSession = rest.pool_manager
        return pool

    async def warm_report(self, namespace: str, pod: str) -> Known[WarmReport] | Unknown:
        """A pod's `/warmz`; never raises."""
        target = f"namespaces/{namespace}/pods/{pod}:{PROBES_PORT}"
        timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
        try:
            async with self.request("GET", target, "/warmz", timeout=timeout) as answer:
                body = await read_bounded(answer, LONGEST_REPORT_BYTES)
            return Known(value=parse_warm_report(json.loads(body)))
        except (ValueError, KeyError, TypeError, AttributeError):
            return Unknown(reason="BadAnswer", message="no report through the apiserver")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Unknown(reason="Unreachable", message=str(error) or "no answer in time")
