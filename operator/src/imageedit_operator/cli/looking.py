"""What commands read from the cluster about one resource, as raw objects. Raises ApiError or CommandFailed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from imageedit_operator.cli.exits import CommandFailed, Exit, is_unknown_kind
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_pod import WarmReport
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, EVENTS, IMAGE_EDIT_DEPLOYMENTS, PODS
from imageedit_operator.kube.parsing import DEPLOYMENT_LABEL, foreign_owner

Report = Known[WarmReport] | Unknown

NOT_LOOKED_AT = Unknown(reason="NotAsked", message="the pod does not run")


@dataclass(frozen=True, kw_only=True, slots=True)
class Children:
    """The objects of one resource; `events` is None where they may not be read."""

    deployments: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]
    events: tuple[Manifest, ...] | None


async def resource(kube: Kube, namespace: str, name: str) -> Manifest:
    """The resource of this name; CommandFailed that says where to look when there is none."""
    try:
        return await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, name)
    except ApiError as error:
        if error.not_found and not is_unknown_kind(error):
            words = (
                f"There is no ImageEditDeployment {name} in namespace {namespace}. Choose another namespace with -n,"
            )
            raise CommandFailed(Exit.NOT_FOUND, f"{words} or look with kubectl get ied -A.") from error
        raise


async def children(kube: Kube, manifest: Manifest) -> Children:
    """Deployments that the resource controls, its pods, and its Events."""
    metadata = manifest["metadata"]
    deployments, pods, events = await asyncio.gather(
        revisions(kube, manifest),
        kube.list_all(PODS, metadata["namespace"], labels=f"{DEPLOYMENT_LABEL}={metadata['name']}"),
        _events(kube, metadata["namespace"], metadata["uid"]),
    )
    return Children(deployments=deployments, pods=tuple(pods), events=events)


async def revisions(kube: Kube, manifest: Manifest) -> tuple[Manifest, ...]:
    """The Deployments that the resource controls, oldest first."""
    metadata = manifest["metadata"]
    found = await kube.list_all(DEPLOYMENTS, metadata["namespace"], labels=f"{DEPLOYMENT_LABEL}={metadata['name']}")
    owned = (item for item in found if not foreign_owner(item, owner_uid=metadata["uid"]))
    return tuple(sorted(owned, key=lambda item: (item["metadata"].get("creationTimestamp", ""), _name(item))))


async def _events(kube: Kube, namespace: str, uid: str) -> tuple[Manifest, ...] | None:
    try:
        pages = [page async for page in kube.pages(EVENTS, namespace, fields=f"regarding.uid={uid}")]
    except ApiError as error:
        if error.forbidden:
            return None
        raise
    return tuple(item for page in pages for item in page)


def _name(item: Manifest) -> str:
    return str(item["metadata"]["name"])
