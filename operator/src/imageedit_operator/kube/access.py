"""The rights that the operator uses, and the question whether it has them.

The chart's roles carry exactly these (tests/contract compares them).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import ACCESS_REVIEWS


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """Verbs on one resource of one API group."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""
    """The only object that they are for; empty = all."""

    def __str__(self) -> str:
        return (
            f"{','.join(self.verbs)} on {self.resource}"
            + (f".{self.group}" if self.group else "")
            + (f" named {self.name}" if self.name else "")
        )


REQUIRED = (
    Right(group="imageedit.dev", resource="imageeditdeployments", verbs=("get", "list", "watch")),
    Right(group="imageedit.dev", resource="imageeditdeployments/status", verbs=("patch",)),
    Right(group="apps", resource="deployments", verbs=("get", "list", "watch", "create", "patch", "delete")),
    Right(group="", resource="pods", verbs=("list", "watch", "patch", "delete")),
    Right(group="", resource="pods/status", verbs=("patch",)),
    Right(group="batch", resource="jobs", verbs=("list", "create", "delete")),
    Right(group="", resource="services", verbs=("get", "list", "watch", "create", "patch")),
    Right(group="resource.k8s.io", resource="resourceclaimtemplates", verbs=("get", "list", "create", "patch")),
    Right(group="policy", resource="poddisruptionbudgets", verbs=("get", "list", "create", "patch", "delete")),
    Right(group="events.k8s.io", resource="events", verbs=("create",)),
)
"""In every served namespace; without one of them the operator does not start."""

FOR_WORDS = (Right(group="events.k8s.io", resource="events", verbs=("list",)),)
"""In every served namespace; without it nobody says why a node cannot give a pod its volumes."""

FOR_CARDS = (
    Right(group="", resource="nodes", verbs=("list",)),
    Right(group="", resource="pods", verbs=("list",)),
)
"""In the whole cluster; without them the number of free cards is unknown."""


FOR_HEALTH = (Right(group="", resource="configmaps", verbs=("get",)),)
"""In `kube-system`; without it only the kubelet says which cards are sick."""


def for_lease(name: str) -> tuple[Right, ...]:
    """In the namespace of the Lease, with leader election; `create` cannot be bound to a name."""
    group, resource = "coordination.k8s.io", "leases"
    return (
        Right(group=group, resource=resource, verbs=("create",)),
        Right(group=group, resource=resource, verbs=("get", "patch"), name=name),
    )


async def missing(kube: Kube, rights: Sequence[Right], namespace: str) -> list[Right]:
    """The rights among these that this account lacks; an empty namespace means the whole cluster. Raises ApiError."""
    questions = [(right, verb) for right in rights for verb in right.verbs]
    answers = await asyncio.gather(*(_may(kube, right, verb, namespace) for right, verb in questions))
    refused = [(right, verb) for (right, verb), may in zip(questions, answers, strict=True) if not may]
    return [replace(right, verbs=(verb,)) for right, verb in refused]


async def _may(kube: Kube, right: Right, verb: str, namespace: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
        "name": right.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    answer = await kube.create(ACCESS_REVIEWS, "", review)
    return bool((answer.get("status") or {}).get("allowed"))
