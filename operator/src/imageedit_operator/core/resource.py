"""The custom resource as typed values, defaults applied whether or not the apiserver did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.accelerator import Accelerator, AutoInjection, parse_accelerator
from imageedit_operator.core.fields import (
    InvalidResource,
    absolute_path,
    choice,
    integer,
    mapping,
    optional_text,
    seconds,
    text,
)
from imageedit_operator.core.managed_fields import scaled_by
from imageedit_operator.core.prefetch_spec import Prefetch, parse_prefetch
from imageedit_operator.core.rollout_spec import Rollout, parse_rollout
from imageedit_operator.core.server_spec import Server, parse_server
from imageedit_operator.core.service_spec import ServiceSpec, parse_service
from imageedit_operator.core.template_spec import Template, parse_template

POLICIES = ("QueueDepth",)
AUTO = AutoInjection()
DEFAULT_REPLICAS = 1

RESTARTED_AT = "imageedit.dev/restarted-at"
PROMOTED = "imageedit.dev/promoted-revision"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


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
    manifest_digest: str = ""
    """Digest that the files must have; empty: any."""
    prefetch: Prefetch | None = None
    """Where copies are made before pods need them; None: pods read the source."""

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec."""
        digest = {"manifestDigest": self.manifest_digest} if self.manifest_digest else {}
        prefetch = {"prefetch": self.prefetch.manifest()} if self.prefetch is not None else {}
        return {"name": self.name, "revision": self.revision, "source": self.source.manifest(), **digest, **prefetch}


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
    service: ServiceSpec = field(default_factory=ServiceSpec)
    template: Template = field(default_factory=Template)
    restarted_at: str = ""
    """Any text; a change of it rolls."""
    promoted: str = ""
    """Hash of the revision whose canary may go on."""
    scaled_by: str = ""
    """Who writes `replicas` through the scale subresource; empty when nobody does."""


def parse(manifest: Mapping[str, Any], auto: AutoInjection = AUTO) -> ImageEditDeployment:
    """Typed values of a manifest; `auto` is what the operator was told about the cluster's cards.

    Raises:
        InvalidResource: a field is missing or out of range. The apiserver refuses these
            too; an object stored under an older schema can still carry one.
    """
    metadata = mapping(manifest, "metadata", "metadata")
    spec = mapping(manifest, "spec", "spec")
    autoscaling = spec.get("autoscaling")
    replicas = integer(spec, "replicas", "spec.replicas", default=DEFAULT_REPLICAS, low=0, high=1000)
    return ImageEditDeployment(
        name=text(metadata, "name", "metadata.name", limit=40),
        namespace=str(metadata.get("namespace", "default")),
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        deleting=bool(metadata.get("deletionTimestamp")),
        model=parse_model(mapping(spec, "model", "spec.model")),
        server=parse_server(mapping(spec, "server", "spec.server")),
        accelerator=parse_accelerator(mapping(spec, "accelerator", "spec.accelerator", optional=True), auto),
        replicas=replicas,
        autoscaling=None if autoscaling is None else _autoscaling(mapping(spec, "autoscaling", "spec.autoscaling")),
        rollout=parse_rollout(mapping(spec, "rollout", "spec.rollout", optional=True)),
        history_limit=integer(spec, "revisionHistoryLimit", "spec.revisionHistoryLimit", default=3, low=0, high=10),
        service=parse_service(mapping(spec, "service", "spec.service", optional=True)),
        template=parse_template(spec),
        restarted_at=_annotation(metadata, RESTARTED_AT),
        promoted=_annotation(metadata, PROMOTED),
        scaled_by=scaled_by(metadata, filled_in=replicas == DEFAULT_REPLICAS),
    )


def _annotation(metadata: Mapping[str, Any], name: str) -> str:
    return str((metadata.get("annotations") or {}).get(name, ""))


def parse_model(model: Mapping[str, Any]) -> Model:
    """Typed values; raises InvalidResource."""
    return Model(
        name=text(model, "name", "spec.model.name", limit=128),
        revision=text(model, "revision", "spec.model.revision", limit=128),
        source=_source(mapping(model, "source", "spec.model.source")),
        manifest_digest=_digest(optional_text(model, "manifestDigest", "spec.model.manifestDigest", limit=71)),
        prefetch=parse_prefetch(model),
    )


def _digest(text_: str) -> str:
    if text_ and _DIGEST.fullmatch(text_) is None:
        raise InvalidResource(f"spec.model.manifestDigest: {text_!r} must be sha256: and 64 hexadecimal digits")
    return text_


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
        path = absolute_path(text(body, "path", f"{field}.path", limit=4096), f"{field}.path")
        return Source(kind="hostPath", path=path)
    return Source(kind="demo")


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
