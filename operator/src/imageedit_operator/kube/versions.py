"""The versions of every resource and of its children: what changed between two lists, without reading it.

A whole look at a thousand resources is minutes of a processor in an hour, and at rest it finds nothing.
Their metadata come in a few answers.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.kinds import (
    BUDGETS,
    CLAIM_TEMPLATES,
    DEPLOYMENTS,
    IMAGE_EDIT_DEPLOYMENTS,
    JOBS,
    PODS,
    SERVICES,
    Resource,
)
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL
from imageedit_operator.wake_ups import keys_for, version_of
from imageedit_operator.workqueue import Key

logger = logging.getLogger(__name__)

CHILDREN = (DEPLOYMENTS, PODS, SERVICES, JOBS, CLAIM_TEMPLATES)
"""What a pass reads of the resource's own, and finds by its label; budgets come besides, with those of others."""
READ_OF_EACH = (IMAGE_EDIT_DEPLOYMENTS, DEPLOYMENTS, PODS, SERVICES, BUDGETS)
"""What a pass reads of every resource; Jobs and templates of claims only few have."""

Family: TypeAlias = frozenset[tuple[str, str]]
"""Uid and version of a resource, of each of its children, and of what others' budgets in its namespace are.

Only equality means anything.
"""

Families: TypeAlias = Mapping[Key, set[tuple[str, str]]]
Show: TypeAlias = Callable[[Resource, Manifest], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Versions:
    """What one list of everything showed."""

    resources: Mapping[Key, str]
    """The version of each resource itself."""
    families: Mapping[Key, Family] | None
    """None when not all children could be listed."""


async def read(kube: Kube, namespaces: tuple[str, ...], *, show: Show | None = None) -> Versions:
    """The versions now; no namespaces means all of them. Raises ApiError when the resources cannot be listed.

    `show` gets each object of the kinds that passes read of every resource, whole; without it only metadata are read.
    """
    lister = _Lister(kube, show)
    resources: dict[Key, str] = {}
    families: dict[Key, set[tuple[str, str]]] = {}
    for namespace in namespaces or ("",):
        async for item in lister.items(IMAGE_EDIT_DEPLOYMENTS, namespace):
            for key in keys_for(IMAGE_EDIT_DEPLOYMENTS, item):
                resources[key] = version_of(item)
                families[key] = {(item["metadata"]["uid"], version_of(item))}
    try:
        for namespace in namespaces or ("",):
            await _add_children(lister, namespace, families)
            await _add_budgets(lister, namespace, families)
    except ApiError as error:
        logger.warning("not all children could be listed, so every resource is looked at: %s", error)
        return Versions(resources=resources, families=None)
    return Versions(resources=resources, families={key: frozenset(family) for key, family in families.items()})


class _Lister:
    """Reads whole objects where somebody wants to see them, and metadata else."""

    def __init__(self, kube: Kube, show: Show | None) -> None:
        self._kube = kube
        self._show = show

    async def items(self, kind: Resource, namespace: str, *, labels: str = "") -> AsyncIterator[Manifest]:
        shown = self._show if kind in READ_OF_EACH else None
        async for page in self._kube.pages(kind, namespace, labels=labels, bare=shown is None):
            for item in page:
                yield item
                if shown is not None:
                    shown(kind, item)


async def _add_children(lister: _Lister, namespace: str, families: Families) -> None:
    for kind in CHILDREN:
        try:
            async for item in lister.items(kind, namespace, labels=DEPLOYMENT_LABEL):
                _add(item, kind, families)
        except ApiError as error:
            # Claims on cards came with Kubernetes 1.34: where they are not served, nobody made any.
            if kind != CLAIM_TEMPLATES or not error.not_found:
                raise


# | a budget                   | counts for                     | as                                    |
# | with our label             | its resource                   | its version                           |
# | of others                  | every resource in its namespace| its generation: its status is no news |
async def _add_budgets(lister: _Lister, namespace: str, families: Families) -> None:
    others: dict[str, list[tuple[str, int]]] = {}
    async for item in lister.items(BUDGETS, namespace):
        metadata = item["metadata"]
        if not _add(item, BUDGETS, families):
            found = others.setdefault(str(metadata.get("namespace")), [])
            found.append((str(metadata["uid"]), metadata.get("generation", 0)))
    digests = {where: repr(sorted(found)) for where, found in others.items()}
    for key, family in families.items():
        if namespace in {"", key.namespace}:
            family.add((f"budgets of others in {key.namespace}", digests.get(key.namespace, "")))


def _add(item: Manifest, kind: Resource, families: Families) -> bool:
    """Whether the object is one of a resource that the list showed."""
    keys = [key for key in keys_for(kind, item) if key in families]
    for key in keys:
        families[key].add((item["metadata"]["uid"], version_of(item)))
    return bool(keys)
