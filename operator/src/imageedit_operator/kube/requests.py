"""Requests to the apiserver over HTTP: a refused login is read again, a failed read is sent again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import ApiClient

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.answers import Answer, Manifest, decoded
from imageedit_operator.kube.clock import ClusterClock
from imageedit_operator.kube.patience import Patience

WHOLE = "application/json"
UNAUTHORIZED = 401

RequestDone: TypeAlias = Callable[[str, str], None]
"""Called after each request with its verb and its status code, `error` when there was no answer."""
Renew: TypeAlias = Callable[[ApiClient], Awaitable[ApiClient | None]]
"""Another login than the one that was refused; None when there is none."""

_METHODS = {"get": "GET", "list": "GET", "create": "POST", "apply": "PATCH", "patch": "PATCH", "delete": "DELETE"}


class Requests:
    """Sends as one login until that is refused; without `patience` every failure is final."""

    def __init__(
        self,
        api: ApiClient,
        *,
        timeout_s: float,
        on_request: RequestDone,
        user_agent: str,
        renew: Renew | None,
        clock: ClusterClock | None,
        patience: Patience | None,
    ) -> None:
        self._api = api
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(5.0, timeout_s))
        self._on_request = on_request
        self._user_agent = user_agent
        self._renew = renew
        self._clock = clock
        self._patience = patience

    async def send(
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = "application/json",
        accept: str = WHOLE,
    ) -> Manifest:
        """The object of the answer; empty values of `query` are left out. ApiError when refused, or when none comes."""
        text = urlencode({name: value for name, value in (query or {}).items() if value})
        target = path + ("?" + text if text else "")
        types = {"Accept": accept, "Content-Type": content}
        tries = 0
        while True:
            tries += 1
            try:
                return await self._try(verb, target, body, types)
            except ApiError as error:
                if self._patience is None or not await self._patience.again(verb, error, tries=tries):
                    raise

    async def _try(self, verb: str, target: str, body: Mapping[str, Any] | None, types: Mapping[str, str]) -> Manifest:
        used = self._api
        answer = await self._send(used, verb, target, body, types)
        if answer.status == UNAUTHORIZED and self._renew is not None:
            fresh = await self._renew(used)
            if fresh is not None:
                self._api = fresh
                answer = await self._send(fresh, verb, target, body, types)
        return decoded(verb, target.partition("?")[0], answer.status, answer.headers, answer.data)

    async def _send(
        self, api: ApiClient, verb: str, path: str, body: Mapping[str, Any] | None, types: Mapping[str, str]
    ) -> Answer:
        code = "error"
        try:
            configuration = api.configuration
            auth = (await configuration.auth_settings()).get("BearerToken")
            headers = {**types, "User-Agent": self._user_agent}
            if auth:
                headers["Authorization"] = auth["value"]
            sent_s = self._clock.stopwatch() if self._clock is not None else 0.0
            answer = await api.rest_client.request(
                _METHODS[verb],
                configuration.host + path,
                headers=headers,
                body=body,
                _request_timeout=self._timeout,
            )
            code = str(answer.status)
            if self._clock is not None:
                self._clock.heard(answer.headers, sent_s)
            return Answer(status=answer.status, headers=answer.headers, data=await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            code = "error"
            message = str(error) or "no answer in time"
            raise ApiError(
                status=0,
                reason="Unreachable",
                message=f"{verb} {path.partition('?')[0]}: {message}",
                late=isinstance(error, TimeoutError),
            ) from error
        finally:
            self._on_request(verb, code)
