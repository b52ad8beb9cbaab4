"""How an edit reaches the server: through the apiserver to the Service, or straight to an address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, urlsplit

import aiohttp

from imageedit_operator.cli import edit_files
from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.cli.session import Place, Session, session
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS

PATH = "/v1/images/edits"
PORT = "api"
"""Name of the Service's port."""

Send: TypeAlias = Callable[
    [aiohttp.FormData, dict[str, str], aiohttp.ClientTimeout], AbstractAsyncContextManager[aiohttp.ClientResponse]
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """POSTs a form to the API; `proxied` where the apiserver is in between."""

    send: Send
    proxied: bool


@asynccontextmanager
async def through_cluster(place: Place, service: str) -> AsyncIterator[Way]:
    """By the proxy of the Service, with the login of the kubeconfig. Raises ApiError, CommandFailed."""
    async with session(place) as opened:
        name = service or await _only(opened)
        target = f"namespaces/{quote(opened.namespace, safe='')}/services/{quote(name, safe='')}:{PORT}"

        def send(
            data: aiohttp.FormData, headers: dict[str, str], timeout: aiohttp.ClientTimeout
        ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
            return opened.proxy.request("POST", target, PATH, timeout=timeout, data=data, headers=headers)

        yield Way(send=send, proxied=True)


@asynccontextmanager
async def straight(url: str, key_file: Path | None) -> AsyncIterator[Way]:
    """To the API at this address, with or without /v1 at its end. Raises CommandFailed."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandFailed(Exit.USAGE, f"--url {url} is not an address such as http://127.0.0.1:8000.")
    key = {} if key_file is None else {"Authorization": f"Bearer {edit_files.key(key_file)}"}
    address = url.rstrip("/").removesuffix("/v1") + PATH
    async with aiohttp.ClientSession(trust_env=True) as http:

        def send(
            data: aiohttp.FormData, headers: dict[str, str], timeout: aiohttp.ClientTimeout
        ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
            return http.post(address, data=data, headers={**headers, **key}, timeout=timeout)

        yield Way(send=send, proxied=False)


async def _only(opened: Session) -> str:
    """The resource of the namespace, where it has exactly one."""
    found = await opened.kube.list_all(IMAGE_EDIT_DEPLOYMENTS, opened.namespace)
    names = sorted(str(item["metadata"]["name"]) for item in found)
    if not names:
        words = f"There is no ImageEditDeployment in namespace {opened.namespace}. Choose another one with -n, or give"
        raise CommandFailed(Exit.NOT_FOUND, f"{words} --url.")
    if len(names) > 1:
        words = f"Namespace {opened.namespace} has several: {', '.join(names)}. Choose one with --service."
        raise CommandFailed(Exit.USAGE, words)
    return names[0]
