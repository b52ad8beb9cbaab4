"""The card of a pod: `spec.accelerator` as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.fields import choice, integer

DEVICES = ("npu", "cpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """The card of a pod; an empty `resource_name` asks for none."""

    device: str
    resource_name: str
    count: int

    def additions(self) -> dict[str, Any]:
        """The fields that are younger than the first release and not at their default, as they stand in a spec."""
        return {}

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec."""
        return {
            "device": self.device,
            "resourceName": self.resource_name,
            "count": self.count,
            **self.additions(),
        }


def parse_accelerator(accelerator: Mapping[str, Any]) -> Accelerator:
    """Typed values; raises InvalidResource."""
    return Accelerator(
        device=choice(accelerator, "device", "spec.accelerator.device", DEVICES),
        resource_name=str(accelerator.get("resourceName", "huawei.com/Ascend910")),
        count=integer(accelerator, "count", "spec.accelerator.count", default=1, low=1, high=16),
    )
