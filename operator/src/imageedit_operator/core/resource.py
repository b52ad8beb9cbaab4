"""The custom resource as typed values, defaults applied whether or not the apiserver did."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEVICES = ("npu", "cpu")
STRATEGIES = ("Auto", "Surge", "InPlace", "Recreate")
POLICIES = ("QueueDepth",)

_DURATION = re.compile(r"([1-9][0-9]*)([smh])")
_SIZE = re.compile(r"([0-9]{2,4})x([0-9]{2,4})")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class InvalidResource(Exception):
    """A field has a value that the schema would refuse; the message names the field."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the checkpoint lies; exactly one of the kinds `pvc`, `hostPath` and `demo`."""

    kind: str
    claim_name: str = ""
    path: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """What the server loads; `revision` is free text, a change of it rolls."""

    name: str
    revision: str
    source: Source


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """How the server runs."""

    image: str
    sizes: tuple[str, ...]
    steps: int
    queue_hard_limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """The card of a pod; an empty `resource_name` asks for none."""

    device: str
    resource_name: str
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Autoscaling:
    """Bounds and signal of the queue-depth policy."""

    min_replicas: int
    max_replicas: int
    target_per_replica: int
    prometheus_address: str
    max_age_s: float
    hold_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageEditDeployment:
    """One resource: identity and spec. The status is an observation and lives elsewhere."""

    name: str
    namespace: str
    uid: str
    generation: int
    deleting: bool
    model: Model
    server: Server
    accelerator: Accelerator
    replicas: int
    autoscaling: Autoscaling | None
    strategy: str


def parse(manifest: Mapping[str, Any]) -> ImageEditDeployment:
    """Typed values of a manifest.

    Raises:
        InvalidResource: a field is missing or out of range. The apiserver refuses these
            too; an object stored under an older schema can still carry one.
    """
    metadata = _mapping(manifest, "metadata", "metadata")
    spec = _mapping(manifest, "spec", "spec")
    autoscaling = spec.get("autoscaling")
    return ImageEditDeployment(
        name=_text(metadata, "name", "metadata.name", limit=40),
        namespace=str(metadata.get("namespace", "default")),
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        deleting=bool(metadata.get("deletionTimestamp")),
        model=_model(_mapping(spec, "model", "spec.model")),
        server=_server(_mapping(spec, "server", "spec.server")),
        accelerator=_accelerator(_mapping(spec, "accelerator", "spec.accelerator", optional=True)),
        replicas=_integer(spec, "replicas", "spec.replicas", default=1, low=0, high=1000),
        autoscaling=None if autoscaling is None else _autoscaling(_mapping(spec, "autoscaling", "spec.autoscaling")),
        strategy=_choice(
            _mapping(spec, "rollout", "spec.rollout", optional=True),
            "strategy",
            "spec.rollout.strategy",
            STRATEGIES,
        ),
    )


def seconds(text: object, field: str) -> float:
    """Seconds of a duration such as `60s`, `5m` or `1h`; `field` is named when it is none."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidResource(f"{field}: {text!r} is not a duration such as 60s, 5m or 1h")
    return float(int(match[1]) * _SECONDS[match[2]])


def _model(model: Mapping[str, Any]) -> Model:
    return Model(
        name=_text(model, "name", "spec.model.name", limit=128),
        revision=_text(model, "revision", "spec.model.revision", limit=128),
        source=_source(_mapping(model, "source", "spec.model.source")),
    )


def _source(source: Mapping[str, Any]) -> Source:
    kinds = [kind for kind in ("pvc", "hostPath", "demo") if source.get(kind) is not None]
    if len(kinds) != 1:
        raise InvalidResource("spec.model.source: set exactly one of pvc, hostPath and demo")
    field = f"spec.model.source.{kinds[0]}"
    body = _mapping(source, kinds[0], field)
    if kinds[0] == "pvc":
        path = str(body.get("path", ""))
        if path.startswith("/") or ".." in path.split("/"):
            raise InvalidResource(f"{field}.path: {path!r} must be relative to the volume, without '..'")
        return Source(kind="pvc", claim_name=_text(body, "claimName", f"{field}.claimName", limit=253), path=path)
    if kinds[0] == "hostPath":
        path = _text(body, "path", f"{field}.path", limit=4096)
        if not path.startswith("/") or ".." in path.split("/"):
            raise InvalidResource(f"{field}.path: {path!r} must be absolute, without '..'")
        return Source(kind="hostPath", path=path)
    return Source(kind="demo")


def _server(server: Mapping[str, Any]) -> Server:
    sizes = server.get("sizes", ["768x768"])
    if not isinstance(sizes, list | tuple) or not 1 <= len(sizes) <= 16 or len(set(sizes)) != len(sizes):
        raise InvalidResource("spec.server.sizes: give 1 to 16 different sizes such as 768x768")
    for size in sizes:
        match = _SIZE.fullmatch(str(size))
        if match is None or any(int(side) % 32 or not 64 <= int(side) <= 2048 for side in match.groups()):
            raise InvalidResource(f"spec.server.sizes: both sides of {size!r} must be multiples of 32 from 64 to 2048")
    steps = _mapping(server, "steps", "spec.server.steps", optional=True)
    queue = _mapping(server, "queue", "spec.server.queue", optional=True)
    return Server(
        image=_text(server, "image", "spec.server.image", limit=1024),
        sizes=tuple(str(size) for size in sizes),
        steps=_integer(steps, "standard", "spec.server.steps.standard", default=16, low=2, high=100),
        queue_hard_limit=_integer(queue, "hardLimit", "spec.server.queue.hardLimit", default=50, low=0, high=1000),
    )


def _accelerator(accelerator: Mapping[str, Any]) -> Accelerator:
    return Accelerator(
        device=_choice(accelerator, "device", "spec.accelerator.device", DEVICES),
        resource_name=str(accelerator.get("resourceName", "huawei.com/Ascend910")),
        count=_integer(accelerator, "count", "spec.accelerator.count", default=1, low=1, high=16),
    )


def _autoscaling(autoscaling: Mapping[str, Any]) -> Autoscaling:
    low = _integer(autoscaling, "minReplicas", "spec.autoscaling.minReplicas", default=1, low=1, high=1000)
    high = _integer(autoscaling, "maxReplicas", "spec.autoscaling.maxReplicas", default=None, low=1, high=1000)
    if high < low:
        raise InvalidResource(f"spec.autoscaling.maxReplicas: {high} is below minReplicas {low}")
    _choice(autoscaling, "policy", "spec.autoscaling.policy", POLICIES)
    depth = _mapping(autoscaling, "queueDepth", "spec.autoscaling.queueDepth", optional=True)
    metrics = _mapping(autoscaling, "metrics", "spec.autoscaling.metrics")
    prometheus = _mapping(metrics, "prometheus", "spec.autoscaling.metrics.prometheus")
    field = "spec.autoscaling.metrics.prometheus.address"
    address = _text(prometheus, "address", field, limit=2048)
    if not address.startswith(("http://", "https://")):
        raise InvalidResource(f"{field}: {address!r} must begin with http:// or https://")
    return Autoscaling(
        min_replicas=low,
        max_replicas=high,
        target_per_replica=_integer(
            depth, "targetPerReplica", "spec.autoscaling.queueDepth.targetPerReplica", default=2, low=1, high=1000
        ),
        prometheus_address=address,
        max_age_s=seconds(metrics.get("maxAge", "60s"), "spec.autoscaling.metrics.maxAge"),
        hold_s=seconds(autoscaling.get("hold", "5m"), "spec.autoscaling.hold"),
    )


def _mapping(parent: Mapping[str, Any], key: str, field: str, *, optional: bool = False) -> Mapping[str, Any]:
    value = parent.get(key)
    if value is None and optional:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidResource(f"{field}: is required and must be an object")
    return value


def _text(parent: Mapping[str, Any], key: str, field: str, *, limit: int) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        raise InvalidResource(f"{field}: is required, a text of 1 to {limit} characters")
    return value


def _integer(parent: Mapping[str, Any], key: str, field: str, *, default: int | None, low: int, high: int) -> int:
    value = parent.get(key, default)
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)  # some JSON writers turn 2 into 2.0
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidResource(f"{field}: {value!r} must be a whole number from {low} to {high}")
    return value


def _choice(parent: Mapping[str, Any], key: str, field: str, choices: tuple[str, ...]) -> str:
    value = parent.get(key, choices[0])
    if value not in choices:
        raise InvalidResource(f"{field}: {value!r} must be one of {', '.join(choices)}")
    return str(value)
