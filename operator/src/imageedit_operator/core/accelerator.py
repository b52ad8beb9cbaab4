"""The card of a pod: `spec.accelerator` as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.fields import (
    InvalidResource,
    absolute_path,
    choice,
    integer,
    mapping,
    objects,
    optional_text,
    text,
)
from imageedit_operator.core.tolerations import Place

DEVICES = ("npu", "cpu")
INJECTIONS = ("Auto", "Runtime", "Plugin", "Privileged", "DRA")
AUTO_INJECTIONS = ("Runtime", "Plugin", "Privileged")
"""What `Auto` may stand for. Not DRA: pods that claim cards and pods that count them look different to the plan."""
DRIVER_ROOT = "/usr/local/Ascend/driver"
DEVICE_CLASS = "npu.huawei.com"
DEVICE_GROUP = 1000
"""HwHiAiUser, the group that owns the device nodes of Ascend drivers."""
MOST_TOLERATIONS = 16
MOST_LABELS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoInjection:
    """What the operator was told about the cluster."""

    injection: str = "Runtime"
    """What `Auto` stands for; one of AUTO_INJECTIONS."""
    runtime_class: str = ""
    """RuntimeClass of pods with injection Runtime that name none; empty: the node's default runtime."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """The card of a pod; an empty `resource_name` asks for none."""

    device: str
    resource_name: str
    count: int
    injection: str = "Auto"
    runtime_class: str = ""
    driver_root: str = DRIVER_ROOT
    device_group: int = DEVICE_GROUP
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    compile_cache: str = ""
    """Folder of the node that compiled operators are kept in; empty: they go with the pod."""
    device_class: str = DEVICE_CLASS
    auto: AutoInjection = field(default_factory=AutoInjection)
    """No part of a revision: a setting of the operator must not restart pods."""

    @property
    def claims(self) -> bool:
        """Whether a pod claims its card (dynamic resource allocation) and does not request it as a number."""
        return self.device == "npu" and self.injection == "DRA"

    @property
    def extended_resource(self) -> str:
        """The extended resource that a pod requests; empty when it requests none."""
        return "" if self.claims else self.resource_name

    def place(self) -> Place:
        """Where the pods may land. Card nodes are often reserved by a taint of the resource's name."""
        reserved = {"key": self.resource_name, "operator": "Exists", "effect": "NoSchedule"}
        own = (reserved,) if self.resource_name and self.device == "npu" else ()
        return Place(node_selector=self.node_selector, tolerations=(*own, *self.tolerations))

    def additions(self) -> dict[str, Any]:
        """The fields that are younger than the first release and not at their default, as they stand in a spec."""
        whole: dict[str, tuple[object, object]] = {
            "injection": (self.injection, "Auto"),
            "runtimeClassName": (self.runtime_class, ""),
            "driverRoot": (self.driver_root, DRIVER_ROOT),
            "deviceGroup": (self.device_group, DEVICE_GROUP),
            "nodeSelector": (dict(self.node_selector), {}),
            "tolerations": ([dict(item) for item in self.tolerations], []),
            "compileCache": ({"hostPath": self.compile_cache} if self.compile_cache else {}, {}),
            "deviceClassName": (self.device_class, DEVICE_CLASS),
        }
        return {name: value for name, (value, default) in whole.items() if value != default}

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec."""
        return {
            "device": self.device,
            "resourceName": self.resource_name,
            "count": self.count,
            **self.additions(),
        }


def parse_accelerator(accelerator: Mapping[str, Any], auto: AutoInjection) -> Accelerator:
    """Typed values; raises InvalidResource."""
    where = "spec.accelerator"
    injection = choice(accelerator, "injection", f"{where}.injection", INJECTIONS)
    runtime_class = optional_text(accelerator, "runtimeClassName", f"{where}.runtimeClassName", limit=253)
    if runtime_class and injection not in ("Auto", "Runtime"):
        raise InvalidResource(f"{where}.runtimeClassName: injection {injection} runs under the node's default runtime")
    root = accelerator.get("driverRoot", DRIVER_ROOT)
    device_class = optional_text(accelerator, "deviceClassName", f"{where}.deviceClassName", limit=253)
    return Accelerator(
        device=choice(accelerator, "device", f"{where}.device", DEVICES),
        resource_name=str(accelerator.get("resourceName", "huawei.com/Ascend910")),
        count=integer(accelerator, "count", f"{where}.count", default=1, low=1, high=16),
        injection=injection,
        runtime_class=runtime_class,
        driver_root=absolute_path(str(root), f"{where}.driverRoot").rstrip("/"),
        device_group=integer(
            accelerator, "deviceGroup", f"{where}.deviceGroup", default=DEVICE_GROUP, low=1, high=2**31 - 1
        ),
        node_selector=_node_selector(mapping(accelerator, "nodeSelector", f"{where}.nodeSelector", optional=True)),
        tolerations=objects(accelerator, "tolerations", f"{where}.tolerations", limit=MOST_TOLERATIONS),
        compile_cache=_compile_cache(accelerator),
        device_class=device_class or DEVICE_CLASS,
        auto=auto,
    )


def _compile_cache(accelerator: Mapping[str, Any]) -> str:
    if accelerator.get("compileCache") is None:
        return ""
    field_ = "spec.accelerator.compileCache"
    cache = mapping(accelerator, "compileCache", field_)
    return absolute_path(text(cache, "hostPath", f"{field_}.hostPath", limit=1024), f"{field_}.hostPath")


def _node_selector(labels: Mapping[str, Any]) -> dict[str, str]:
    if len(labels) > MOST_LABELS or not all(isinstance(value, str) for value in labels.values()):
        raise InvalidResource(f"spec.accelerator.nodeSelector: give at most {MOST_LABELS} labels with texts as values")
    return dict(labels)
