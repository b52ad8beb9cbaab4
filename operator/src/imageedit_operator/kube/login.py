"""Who the operator is to the apiserver: read from its files at the start, and again whenever the apiserver says 401.

A token or a certificate lives shorter than the process: whoever issues them writes the next one to the same file.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias
from urllib.request import getproxies

import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from imageedit_operator.errors import PreflightFailed

logger = logging.getLogger(__name__)

Credentials: TypeAlias = tuple[str | bytes, ...]


async def load_configuration(kubeconfig: str) -> Configuration:
    """Where the apiserver is and how to log in; raises PreflightFailed when neither is known.

    A service account's token file is read again each minute, so that most rotations come before any refusal.
    """
    configuration = Configuration()
    try:
        if kubeconfig:
            await load_kube_config(config_file=kubeconfig, client_configuration=configuration, persist_config=False)
        elif os.environ.get("KUBERNETES_SERVICE_HOST"):
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(client_configuration=configuration, persist_config=False)
    except (ConfigException, OSError, yaml.YAMLError, TypeError) as error:  # the last two: a file that is half written
        raise PreflightFailed(
            f"no way to log in to a cluster: {error}; run in a pod with a service account, or give --kubeconfig"
        ) from error
    # With it, each request looks into ~/.netrc, in another thread; an apiserver's login never stands there.
    configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
    return configuration


class Login:
    """The HTTP client of the present login; those of former ones live as long as `stack`, for requests on their way."""

    def __init__(self, kubeconfig: str, stack: AsyncExitStack) -> None:
        self._kubeconfig = kubeconfig
        self._stack = stack
        self._lock = asyncio.Lock()
        self._credentials: Credentials = ()
        self._api: ApiClient | None = None

    async def begin(self) -> ApiClient:
        """The first login. Raises PreflightFailed."""
        return await self._enter(await load_configuration(self._kubeconfig))

    # | since `refused` was made           | what is tried now         |
    # | another request logged in anew     | that login                |
    # | the files say the same             | nothing: the 401 is right |
    # | the files cannot be read just now  | nothing                   |
    # | the files say something else       | that                      |
    async def renew(self, refused: ApiClient) -> ApiClient | None:
        """Another login than the one that got a 401; None when there is none to try."""
        async with self._lock:
            if self._api is not refused:
                return self._api
            try:
                configuration = await load_configuration(self._kubeconfig)
                if await credentials(configuration) == self._credentials:
                    return None
                logger.info("the login was refused and has changed on disk; the new one is used")
                return await self._enter(configuration)
            except (PreflightFailed, OSError, ValueError) as error:
                logger.warning("the login was refused, and could not be read again: %s", error)
                return None

    async def _enter(self, configuration: Configuration) -> ApiClient:
        self._credentials = await credentials(configuration)
        self._api = await self._stack.enter_async_context(ApiClient(configuration=configuration))
        return self._api


async def credentials(configuration: Configuration) -> Credentials:
    """What a login consists of; two with the same fare the same."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    token = await configuration.get_api_key_with_prefix("BearerToken") or ""
    return (configuration.host, token, *map(_content, files))


def _content(file: str | None) -> bytes:
    return Path(file).read_bytes() if file else b""
