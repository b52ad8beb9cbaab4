"""How the Service of a resource is offered: `spec.service` as typed values. No part of a revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.fields import InvalidResource, choice, mapping

TYPES = ("ClusterIP", "NodePort", "LoadBalancer")
MOST_ANNOTATIONS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSpec:
    """Type and annotations of the Service."""

    type: str = "ClusterIP"
    annotations: Mapping[str, str] = field(default_factory=dict)


def parse_service(service: Mapping[str, Any]) -> ServiceSpec:
    """Typed values; raises InvalidResource."""
    annotations = mapping(service, "annotations", "spec.service.annotations", optional=True)
    if len(annotations) > MOST_ANNOTATIONS or not all(isinstance(value, str) for value in annotations.values()):
        raise InvalidResource(f"spec.service.annotations: give at most {MOST_ANNOTATIONS}, with texts as values")
    return ServiceSpec(type=choice(service, "type", "spec.service.type", TYPES), annotations=dict(annotations))
