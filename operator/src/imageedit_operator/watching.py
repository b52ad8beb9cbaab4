"""Wake-up calls from the cluster; the only module that knows kopf.

kopf lists and watches three kinds and each event that is news becomes a key in the work queue. Nothing
else of kopf is used: no state-keeping handlers, finalizers, timers, indexes or peering, so kopf writes nothing.

kopf runs in a thread with an event loop of its own. It takes every task that was born in its loop
for its own and cancels it when a run ends, it takes over the signals, and after a failed run it sets
a timer that kills the process; in a loop that ends with the run none of this reaches our workers.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import kopf

from imageedit_operator.kube.client import IMAGE_EDIT_DEPLOYMENTS, Resource
from imageedit_operator.kube.login import load_configuration
from imageedit_operator.wake_ups import SELECTOR, WATCHED, Sights, Told, keys_for, version_of
from imageedit_operator.workqueue import Key

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0
ALIVE_S = 5.0


class WatchEnded(Exception):
    """A kopf run ended although nobody asked for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Where to watch, and how to log in."""

    namespaces: tuple[str, ...]
    """Empty = the whole cluster."""
    kubeconfig: str


async def watch(
    scope: Scope,
    on_key: Callable[[Key, float], None],
    stop: asyncio.Event,
    *,
    on_told: Callable[[Told], None] = lambda _told: None,
    on_alive: Callable[[], None] = lambda: None,
) -> None:
    """One run of kopf; returns after `stop` was set. Raises WatchEnded when it ends by itself.

    All are called in the caller's event loop: `on_key` for every event that is news, with the seconds until the key
    is due, `on_told` after it for every event, news or not, `on_alive` every few seconds while kopf's loop turns.
    """
    ours = asyncio.get_running_loop()
    ended: asyncio.Future[BaseException | None] = ours.create_future()
    run = _Run(
        scope=scope,
        on_key=lambda key, delay_s: _tell(ours, lambda told: on_key(*told), (key, delay_s)),
        on_told=lambda told: _tell(ours, on_told, told),
        on_end=lambda error: _tell(ours, finish, error),
        on_alive=lambda: _tell(ours, lambda _: on_alive(), None),
    )

    def finish(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(error)

    thread = threading.Thread(target=run.main, name="kopf", daemon=True)
    thread.start()
    stopped = asyncio.create_task(stop.wait())
    either: set[asyncio.Future[Any]] = {ended, stopped}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            run.stop()
            await asyncio.wait({ended}, timeout=STOP_TIMEOUT_S)
            return
    finally:
        stopped.cancel()
        run.stop()
        if ended.done():
            thread.join()  # it has said its last word and returns at once
    raise WatchEnded(f"the watches ended: {ended.result()!r}")


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[Any], None], argument: object) -> None:
    try:
        loop.call_soon_threadsafe(call, argument)
    except RuntimeError:
        return  # our loop is closed: the process is ending


class _Run:
    """The thread's side of one run."""

    def __init__(
        self,
        *,
        scope: Scope,
        on_key: Callable[[Key, float], None],
        on_told: Callable[[Told], None],
        on_end: Callable[[BaseException | None], None],
        on_alive: Callable[[], None],
    ) -> None:
        self._scope = scope
        self._on_key = on_key
        self._on_told = on_told
        self._on_end = on_end
        self._on_alive = on_alive
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._stopping = False

    def main(self) -> None:
        """Runs kopf until it ends; every end is reported."""
        error: BaseException | None = None
        try:
            asyncio.run(self._operator())
        except BaseException as caught:
            error = caught
        self._on_end(error)

    def stop(self) -> None:
        """Asks the run to end; safe from any thread, at any time."""
        with self._lock:
            self._stopping = True
            if self._loop is not None and self._stop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _operator(self) -> None:
        with self._lock:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            if self._stopping:
                return
        beating = asyncio.create_task(self._beat())  # born before kopf's tasks, so not one of those that it ends
        try:
            await kopf.operator(
                registry=build_registry(self._scope, self._on_key, self._on_told),
                settings=build_settings(),
                clusterwide=not self._scope.namespaces,
                namespaces=self._scope.namespaces,
                stop_flag=self._stop,
            )
        finally:
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._on_alive()
            await asyncio.sleep(ALIVE_S)


def build_registry(
    scope: Scope, on_key: Callable[[Key, float], None], on_told: Callable[[Told], None]
) -> kopf.OperatorRegistry:
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
                gone, itself = event["type"] == "DELETED", resource == IMAGE_EDIT_DEPLOYMENTS
                delay_s = sights.delay_s(resource, body, gone=gone)
                if delay_s is not None:
                    on_key(key, delay_s)
                on_told(Told(key, itself, body["metadata"].get("uid", ""), version_of(body), gone))

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
