"""How kopf is set up: the login, one handler for each watched kind, and settings with their reasons."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import kopf

from imageedit_operator.kube.kinds import Resource
from imageedit_operator.kube.login import load_configuration
from imageedit_operator.wake_ups import SELECTOR, WATCHED, Sights, Told, keys_for, version_of

CHUNK = 100
"""Objects to a page of kopf's lists."""
IDLE_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Where to watch, and how to log in."""

    namespaces: tuple[str, ...]
    """Empty = the whole cluster."""
    kubeconfig: str


def build_registry(scope: Scope, on_told: Callable[[Told], None]) -> kopf.OperatorRegistry:
    """A fresh registry with the login and one event handler for each watched kind."""
    registry = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await _login(scope.kubeconfig)

    kopf.on.login(registry=registry, id="login")(login)
    sights = Sights()

    def wake(resource: Resource) -> Callable[..., Any]:
        async def on_event(event: Mapping[str, Any], **_: Any) -> None:
            body = event["object"]  # as it came: kopf's views of it cost more than what is done here
            for key in keys_for(resource, body):
                gone = event["type"] == "DELETED"
                delay_s = sights.delay_s(resource, body, gone=gone)
                on_told(Told(key, resource, body["metadata"].get("uid", ""), version_of(body), gone, delay_s))

        return on_event

    for resource in WATCHED:
        kopf.on.event(
            resource.group, resource.version, resource.plural, registry=registry, id=f"wake-{resource.plural}"
        )(wake(resource))
    return registry


def build_settings() -> kopf.OperatorSettings:
    """kopf's settings; the reasons stand beside them."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True  # a foreign peering object must not freeze us
    settings.posting.enabled = False  # our own few Events are written by the plan
    settings.scanning.disabled = (
        True  # no list and watch of CRDs and namespaces; start-up checks that our kind is served
    )
    settings.watching.label_selectors["deployments.v1.apps"] = SELECTOR  # only key forms like these match anything
    settings.watching.label_selectors["pods.v1"] = SELECTOR
    settings.watching.label_selectors["services.v1"] = SELECTOR
    settings.watching.chunk_size = CHUNK  # else a list of a thousand pods is 100 MB at once, and never given back
    settings.queueing.idle_timeout = IDLE_S  # for so long after an event kopf keeps the whole object
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 10
    settings.watching.reconnect_backoff = 1.0
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _EndlessBackoff()  # an outage of minutes must not end the run
    settings.process.ultimate_exiting_timeout = None  # the run's own loop ends with it; nothing is to be killed
    settings.persistence.diffbase_storage = _NoEssence()
    settings.persistence.finalizer = "imageedit.dev/unused"  # named after us, should a state handler ever appear
    return settings


class _NoEssence(kopf.DiffBaseStorage):  # type: ignore[misc] # kopf's name for it is not typed
    """No copy and no comparison of each object: only state-keeping handlers would need them, and there are none.

    They were an eighth of the operator's time while a thousand resources started.
    """

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        return


class _EndlessBackoff:
    """Delays in seconds between attempts: 1 doubling to 30, with jitter, without end."""

    def __iter__(self) -> Iterator[float]:
        delay_s = 1.0
        while True:
            yield delay_s * random.uniform(0.75, 1.25)
            delay_s = min(30.0, delay_s * 2)


async def _login(kubeconfig: str) -> kopf.ConnectionInfo:
    """Called at the start and after each 401, so that a rotated token is read from its file again."""
    configuration = await load_configuration(kubeconfig)
    header = await configuration.get_api_key_with_prefix("BearerToken") or ""
    scheme, _, token = header.rpartition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        scheme=scheme or ("Bearer" if token else None),
        token=token or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        proxy_url=configuration.proxy,
    )
