"""Fields of the pod that users set under `spec.server`: what they may say, and what stays ours.

Everything here goes into the pod as it stands; the names that the operator itself uses are refused,
because the later of two entries of one name would win in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.fields import InvalidResource, absolute_path, mapping, objects, optional_text, text

MOST_VARIABLES = 64
MOST_VOLUMES = 16
MOST_MOUNTS = 32
MOST_PULL_SECRETS = 8
RESOURCES = ("cpu", "memory", "ephemeral-storage")
VOLUME_KINDS = ("secret", "configMap", "persistentVolumeClaim", "emptyDir", "hostPath")

RESERVED_VARIABLES = (
    "IMAGEEDIT_DEPLOYMENT",
    "IMAGEEDIT_NAMESPACE",
    "IMAGEEDIT_POD",
    "IMAGEEDIT_POD_UID",
    "IMAGEEDIT_HOST",
    "IMAGEEDIT_PORT",
    "IMAGEEDIT_PROBE_PORT",
    "IMAGEEDIT_TERMINATION_LOG",
    "IMAGEEDIT_MODEL_NAME",
    "IMAGEEDIT_MODEL_DIR",
    "IMAGEEDIT_MODEL_REVISION",
    "IMAGEEDIT_REVISION_HASH",
    "IMAGEEDIT_DEVICE",
    "IMAGEEDIT_SIZES",
    "IMAGEEDIT_STEPS",
    "IMAGEEDIT_QUEUE_HARD_LIMIT",
    "IMAGEEDIT_MAX_WAIT",
    "IMAGEEDIT_STEPS_HIGH",
    "IMAGEEDIT_DYNAMIC_STEPS",
    "IMAGEEDIT_MAX_REFERENCES",
    "IMAGEEDIT_WARM_CFG",
    "IMAGEEDIT_MANIFEST_DIGEST",
    "ASCEND_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_DOCKER_RUNTIME",
    "ASCEND_WORK_PATH",
    "ASCEND_CACHE_PATH",
    "ACL_OP_COMPILER_CACHE_DIR",
    "HOME",
)
"""Set by the operator, given by a field, or the device plugin's to decide."""

RESERVED_VOLUMES = ("models", "tmp", "shm", "work", "compile-cache")
RESERVED_VOLUME_PREFIX = "ascend-"

RESERVED_PATHS = (
    "/models",
    "/tmp",
    "/dev",
    "/proc",
    "/sys",
    "/var/lib/imageedit",
    "/var/cache/imageedit",
    "/var/run/secrets",
    "/run/secrets",
    "/usr/local/Ascend",
    "/usr/local/dcmi",
    "/opt/imageedit",
)
"""These and what lies below them."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PodFields:
    """What users add to the server's pod, as the Kubernetes API spells it."""

    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """`requests` and `limits` of cpu, memory and ephemeral-storage; cards come from `spec.accelerator`."""
    env: tuple[Mapping[str, Any], ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()
    volume_mounts: tuple[Mapping[str, Any], ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    service_account_name: str = ""
    priority_class_name: str = ""

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec, without what is empty."""
        whole: dict[str, Any] = {
            "resources": {kind: dict(amounts) for kind, amounts in self.resources.items()},
            "env": [dict(item) for item in self.env],
            "volumes": [dict(item) for item in self.volumes],
            "volumeMounts": [dict(item) for item in self.volume_mounts],
            "imagePullSecrets": [{"name": name} for name in self.image_pull_secrets],
            "serviceAccountName": self.service_account_name,
            "priorityClassName": self.priority_class_name,
        }
        return {name: value for name, value in whole.items() if value}


def parse_pod_fields(server: Mapping[str, Any]) -> PodFields:
    """Typed values; raises InvalidResource for what the schema would refuse."""
    volumes = _volumes(objects(server, "volumes", "spec.server.volumes", limit=MOST_VOLUMES))
    mounts = objects(server, "volumeMounts", "spec.server.volumeMounts", limit=MOST_MOUNTS)
    secrets = objects(server, "imagePullSecrets", "spec.server.imagePullSecrets", limit=MOST_PULL_SECRETS)
    return PodFields(
        resources=_resources(mapping(server, "resources", "spec.server.resources", optional=True)),
        env=_env(objects(server, "env", "spec.server.env", limit=MOST_VARIABLES)),
        volumes=volumes,
        volume_mounts=_mounts(mounts, {str(volume["name"]) for volume in volumes}),
        image_pull_secrets=tuple(
            text(item, "name", "spec.server.imagePullSecrets[].name", limit=253) for item in secrets
        ),
        service_account_name=optional_text(server, "serviceAccountName", "spec.server.serviceAccountName", limit=253),
        priority_class_name=optional_text(server, "priorityClassName", "spec.server.priorityClassName", limit=253),
    )


def _resources(resources: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for kind in ("requests", "limits"):
        amounts = mapping(resources, kind, f"spec.server.resources.{kind}", optional=True)
        foreign = sorted(set(amounts) - set(RESOURCES))
        if foreign:
            raise InvalidResource(
                f"spec.server.resources.{kind}: {foreign[0]!r} is none of {', '.join(RESOURCES)};"
                " the card is asked for by spec.accelerator"
            )
        if amounts:
            # 8 and "8" are the same amount, and one revision.
            found[kind] = {name: str(amounts[name]) for name in RESOURCES if name in amounts}
    return found


def _env(env: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    for item in env:
        name = text(item, "name", "spec.server.env[].name", limit=128)
        if _VARIABLE.fullmatch(name) is None:
            raise InvalidResource(
                f"spec.server.env: {name!r} must be letters, digits and _, not beginning with a digit"
            )
        if name in RESERVED_VARIABLES:
            raise InvalidResource(f"spec.server.env: {name} is set by the operator or by a field of the spec")
        if ("value" in item) == ("valueFrom" in item):
            raise InvalidResource(f"spec.server.env: give {name} exactly one of value and valueFrom")
    _different([str(item["name"]) for item in env], "spec.server.env")
    return tuple(env)


def _volumes(volumes: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    for item in volumes:
        name = text(item, "name", "spec.server.volumes[].name", limit=63)
        if _LABEL.fullmatch(name) is None:
            raise InvalidResource(f"spec.server.volumes: {name!r} must be lower-case letters, digits and -")
        if name in RESERVED_VOLUMES or name.startswith(RESERVED_VOLUME_PREFIX):
            raise InvalidResource(f"spec.server.volumes: {name} is a name that the operator uses; take another one")
        if sum(item.get(kind) is not None for kind in VOLUME_KINDS) != 1:
            raise InvalidResource(f"spec.server.volumes: give {name} exactly one of {', '.join(VOLUME_KINDS)}")
    _different([str(item["name"]) for item in volumes], "spec.server.volumes")
    return tuple(volumes)


def _mounts(mounts: Sequence[Mapping[str, Any]], volumes: set[str]) -> tuple[Mapping[str, Any], ...]:
    for item in mounts:
        field_ = "spec.server.volumeMounts"
        name = text(item, "name", f"{field_}[].name", limit=63)
        path = absolute_path(text(item, "mountPath", f"{field_}[].mountPath", limit=256), f"{field_}[].mountPath")
        if name not in volumes:
            raise InvalidResource(f"{field_}: {name} is no volume of spec.server.volumes")
        if any(path == ours or path.startswith(f"{ours}/") for ours in RESERVED_PATHS):
            raise InvalidResource(f"{field_}: {path} is the operator's or the system's; mount it elsewhere")
    _different([str(item["mountPath"]) for item in mounts], "spec.server.volumeMounts")
    return tuple(mounts)


def _different(names: Sequence[str], field_: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidResource(f"{field_}: {twice} stands there twice")
