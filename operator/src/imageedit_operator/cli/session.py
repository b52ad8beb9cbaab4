"""From the flags that kubectl users know to a client of their cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.cli.proxy import Proxy
from imageedit_operator.kube.client import KubeClient

FIELD_MANAGER = "kubectl-imageedit"
REQUEST_TIMEOUT_S = 30.0
POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Which cluster and namespace; empty values are those of the kubeconfig."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A cluster, and the namespace that commands are about."""

    kube: KubeClient
    proxy: Proxy
    namespace: str
    preview: Callable[[str], KubeClient]
    """A client for a field manager whose writes are only tried: nothing is stored."""


@asynccontextmanager
async def session(place: Place) -> AsyncIterator[Session]:
    """Logged in for as long as the context lasts. Raises CommandFailed."""
    configuration, namespace = await _login(place)
    async with ApiClient(configuration=configuration) as api:
        yield Session(
            kube=_client(api, FIELD_MANAGER, dry_run=False),
            proxy=Proxy(api),
            namespace=place.namespace or namespace,
            preview=lambda manager: _client(api, manager, dry_run=True),
        )


def _client(api: ApiClient, field_manager: str, *, dry_run: bool) -> KubeClient:
    return KubeClient(
        api,
        timeout_s=REQUEST_TIMEOUT_S,
        on_request=lambda _verb, _code: None,
        field_manager=field_manager,
        dry_run=dry_run,
    )


# | --kubeconfig, KUBECONFIG or ~/.kube/config | in a pod | logs in with        |
# | there                                      | any      | it                  |
# | not there                                  | yes      | the service account |
# | not there                                  | no       | nothing: exit 2     |
async def _login(place: Place) -> tuple[Configuration, str]:
    configuration = Configuration()
    in_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
    asked = bool(place.kubeconfig or place.context or os.environ.get("KUBECONFIG"))
    try:
        if in_pod and not asked and not (Path.home() / ".kube/config").exists():
            load_incluster_config(client_configuration=configuration)
            return configuration, _namespace_of_pod()
        loader = await load_kube_config(
            config_file=place.kubeconfig or None,
            context=place.context or None,
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        words = str(error).rstrip(".").replace("\n", " ")
        raise CommandFailed(
            Exit.USAGE, f"No way to log in to a cluster: {words}. Give --kubeconfig or --context, or set KUBECONFIG."
        ) from error
    chosen = loader.current_context.get("context") or {}
    return configuration, str(chosen.get("namespace") or "default")


def _namespace_of_pod() -> str:
    try:
        return POD_NAMESPACE.read_text().strip() or "default"
    except OSError:
        return "default"
