"""The custom resource as typed values, defaults applied whether or not the apiserver did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.fields import InvalidResource, choice, integer, mapping, seconds, text
from imageedit_operator.core.rollout_spec import Rollout, parse_rollout

DEVICES = ("npu", "cpu")
POLICIES = ("QueueDepth",)

RESTARTED_AT = "imageedit.dev/restarted-at"
PROMOTED = "imageedit.dev/promoted-revision"

_SIZE = re.compile(r"([0-9]{2,4})x([0-9]{2,4})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the checkpoint lies; exactly one of the kinds `pvc`, `hostPath` and `demo`."""

    kind: str
    claim_name: str = ""
    path: str = ""

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec."""
        if self.kind == "pvc":
            return {"pvc": {"claimName": self.claim_name, **({"path": self.path} if self.path else {})}}
        return {self.kind: {"path": self.path} if self.kind == "hostPath" else {}}


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
    rollout: Rollout
    history_limit: int
    """Deployments of earlier revisions that are kept at no replicas."""
    restarted_at: str = ""
    """Any text; a change of it rolls."""
    promoted: str = ""
    """Hash of the revision whose canary may go on."""


def parse(manifest: Mapping[str, Any]) -> ImageEditDeployment:
    """Typed values of a manifest.

    Raises:
        InvalidResource: a field is missing or out of range. The apiserver refuses these
            too; an object stored under an older schema can still carry one.
    """
    metadata = mapping(manifest, "metadata", "metadata")
    spec = mapping(manifest, "spec", "spec")
    autoscaling = spec.get("autoscaling")
    return ImageEditDeployment(
        name=text(metadata, "name", "metadata.name", limit=40),
        namespace=str(metadata.get("namespace", "default")),
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        deleting=bool(metadata.get("deletionTimestamp")),
        model=_model(mapping(spec, "model", "spec.model")),
        server=_server(mapping(spec, "server", "spec.server")),
        accelerator=_accelerator(mapping(spec, "accelerator", "spec.accelerator", optional=True)),
        replicas=integer(spec, "replicas", "spec.replicas", default=1, low=0, high=1000),
        autoscaling=None if autoscaling is None else _autoscaling(mapping(spec, "autoscaling", "spec.autoscaling")),
        rollout=parse_rollout(mapping(spec, "rollout", "spec.rollout", optional=True)),
        history_limit=integer(spec, "revisionHistoryLimit", "spec.revisionHistoryLimit", default=3, low=0, high=10),
        restarted_at=_annotation(metadata, RESTARTED_AT),
        promoted=_annotation(metadata, PROMOTED),
    )


def _annotation(metadata: Mapping[str, Any], name: str) -> str:
    return str((metadata.get("annotations") or {}).get(name, ""))


def _model(model: Mapping[str, Any]) -> Model:
    return Model(
        name=text(model, "name", "spec.model.name", limit=128),
        revision=text(model, "revision", "spec.model.revision", limit=128),
        source=_source(mapping(model, "source", "spec.model.source")),
    )


def _source(source: Mapping[str, Any]) -> Source:
    kinds = [kind for kind in ("pvc", "hostPath", "demo") if source.get(kind) is not None]
    if len(kinds) != 1:
        raise InvalidResource("spec.model.source: set exactly one of pvc, hostPath and demo")
    field = f"spec.model.source.{kinds[0]}"
    body = mapping(source, kinds[0], field)
    if kinds[0] == "pvc":
        path = str(body.get("path", ""))
        if path.startswith("/") or ".." in path.split("/"):
            raise InvalidResource(f"{field}.path: {path!r} must be relative to the volume, without '..'")
        return Source(kind="pvc", claim_name=text(body, "claimName", f"{field}.claimName", limit=253), path=path)
    if kinds[0] == "hostPath":
        path = text(body, "path", f"{field}.path", limit=4096)
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
    steps = mapping(server, "steps", "spec.server.steps", optional=True)
    queue = mapping(server, "queue", "spec.server.queue", optional=True)
    return Server(
        image=text(server, "image", "spec.server.image", limit=1024),
        sizes=tuple(str(size) for size in sizes),
        steps=integer(steps, "standard", "spec.server.steps.standard", default=16, low=2, high=100),
        queue_hard_limit=integer(queue, "hardLimit", "spec.server.queue.hardLimit", default=50, low=0, high=1000),
    )


def _accelerator(accelerator: Mapping[str, Any]) -> Accelerator:
    return Accelerator(
        device=choice(accelerator, "device", "spec.accelerator.device", DEVICES),
        resource_name=str(accelerator.get("resourceName", "huawei.com/Ascend910")),
        count=integer(accelerator, "count", "spec.accelerator.count", default=1, low=1, high=16),
    )


def _autoscaling(autoscaling: Mapping[str, Any]) -> Autoscaling:
    low = integer(autoscaling, "minReplicas", "spec.autoscaling.minReplicas", default=1, low=1, high=1000)
    high = integer(autoscaling, "maxReplicas", "spec.autoscaling.maxReplicas", default=None, low=1, high=1000)
    if high < low:
        raise InvalidResource(f"spec.autoscaling.maxReplicas: {high} is below minReplicas {low}")
    choice(autoscaling, "policy", "spec.autoscaling.policy", POLICIES)
    depth = mapping(autoscaling, "queueDepth", "spec.autoscaling.queueDepth", optional=True)
    metrics = mapping(autoscaling, "metrics", "spec.autoscaling.metrics")
    prometheus = mapping(metrics, "prometheus", "spec.autoscaling.metrics.prometheus")
    field = "spec.autoscaling.metrics.prometheus.address"
    address = text(prometheus, "address", field, limit=2048)
    if not address.startswith(("http://", "https://")):
        raise InvalidResource(f"{field}: {address!r} must begin with http:// or https://")
    return Autoscaling(
        min_replicas=low,
        max_replicas=high,
        target_per_replica=integer(
            depth, "targetPerReplica", "spec.autoscaling.queueDepth.targetPerReplica", default=2, low=1, high=1000
        ),
        prometheus_address=address,
        max_age_s=seconds(metrics.get("maxAge", "60s"), "spec.autoscaling.metrics.maxAge"),
        hold_s=seconds(autoscaling.get("hold", "5m"), "spec.autoscaling.hold"),
    )
