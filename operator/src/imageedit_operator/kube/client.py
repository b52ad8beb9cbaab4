"""The apiserver as a small Protocol over plain JSON objects, and its implementation.

`kubernetes.aio` brings the authentication (service account with token rotation, kubeconfig with
its plugins) and the connection pool. Its typed models and its dynamic client are not used: the
operator handles few kinds, and raw JSON costs neither their memory nor a discovery round at start.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote

from kubernetes.aio.client import ApiClient

from imageedit_operator.errors import ApiError
from imageedit_operator.kube import answers
from imageedit_operator.kube.clock import ClusterClock
from imageedit_operator.kube.kinds import Resource
from imageedit_operator.kube.patience import Patience
from imageedit_operator.kube.requests import WHOLE, Renew, RequestDone, Requests

Manifest: TypeAlias = answers.Manifest
FIELD_MANAGER = "imageedit-operator"
TEMPLATE_MANAGER = "imageedit-operator-template"
"""Applies `spec.template`: what it and the first one both set is a conflict, and nobody's value wins in silence."""
PAGE_SIZE = 250
NO_VERSION = "1"
"""No object has this version. An apply that asks for it creates what is not there and is refused over what is;
unlike a POST it leaves the fields to the manager of later applies, which can then take them away again."""
_APPLY = "application/apply-patch+yaml"
_METADATA_ALONE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Kube(Protocol):
    """What the operator asks of an apiserver. Every method raises ApiError."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Manifest:
        """One object; ApiError with `not_found` when there is none."""
        ...

    def pages(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", bare: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        """All objects, page by page; an empty namespace means all namespaces, `bare` their metadata alone."""
        ...

    async def list_all(self, resource: Resource, namespace: str = "", *, labels: str = "") -> list[Manifest]:
        """All objects at once."""
        ...

    async def create(self, resource: Resource, namespace: str, manifest: Mapping[str, Any]) -> Manifest:
        """A new object; ApiError with `conflict` when it exists."""
        ...

    async def apply(
        self, resource: Resource, namespace: str, manifest: Mapping[str, Any], *, uid: str | None = None
    ) -> Manifest:
        """Server-side apply as the operator's field manager, with force.

        `uid` is a precondition: only over this object, or, where it is empty, only where there is none yet;
        else an ApiError with `conflict`. None = over whatever is there.
        """
        ...

    async def apply_beside(
        self,
        resource: Resource,
        namespace: str,
        manifest: Mapping[str, Any],
        *,
        manager: str,
        dry_run: bool,
        force: bool = False,
    ) -> Manifest:
        """Server-side apply as another field manager; a dry run stores nothing.

        Without force, what others own with another value is an ApiError with `contested`; `metadata.uid` and
        `metadata.resourceVersion` are preconditions.
        """
        ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        strategic: bool = False,
        subresource: str = "",
    ) -> Manifest:
        """A merge patch; `metadata.uid` and `metadata.resourceVersion` in the body are preconditions."""
        ...

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, resource_version: str = ""
    ) -> None:
        """Delete the object with this uid (and version); ApiError with `conflict` when it is another one."""
        ...

    async def serves(self, resource: Resource) -> bool:
        """True when the apiserver knows this kind."""
        ...


class KubeClient:
    """`Kube` over HTTP; with `dry_run` the apiserver tries every write and stores none."""

    def __init__(
        self,
        api: ApiClient,
        *,
        timeout_s: float,
        on_request: RequestDone,
        page_size: int = PAGE_SIZE,
        field_manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        renew: Renew | None = None,
        clock: ClusterClock | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._requests = Requests(
            api,
            timeout_s=timeout_s,
            on_request=on_request,
            user_agent=field_manager,
            renew=renew,
            clock=clock,
            patience=patience,
        )
        self._trying = {"dryRun": "All"} if dry_run else {}
        # A file that is tried is checked as kubectl checks it: an unknown field is an error and not dropped.
        strict = {"fieldValidation": "Strict"} if dry_run else {}
        self._writing = {"fieldManager": field_manager, **self._trying, **strict}
        self._page_size = page_size

    async def get(self, resource: Resource, namespace: str, name: str) -> Manifest:
        return await self._requests.send("get", _path(resource, namespace, name))

    async def pages(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", bare: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        query = {"limit": str(self._page_size), "labelSelector": labels, "fieldSelector": fields, "continue": ""}
        while True:
            accept = _METADATA_ALONE if bare else WHOLE
            answer = await self._requests.send("list", _path(resource, namespace), query=query, accept=accept)
            items = answer.get("items") or []
            yield items if bare else [_typed(item, answer) for item in items]
            query["continue"] = answer.get("metadata", {}).get("continue") or ""
            if not query["continue"]:
                return

    async def list_all(self, resource: Resource, namespace: str = "", *, labels: str = "") -> list[Manifest]:
        return [item async for page in self.pages(resource, namespace, labels=labels) for item in page]

    async def create(self, resource: Resource, namespace: str, manifest: Mapping[str, Any]) -> Manifest:
        return await self._requests.send("create", _path(resource, namespace), query=self._writing, body=manifest)

    async def apply(
        self, resource: Resource, namespace: str, manifest: Mapping[str, Any], *, uid: str | None = None
    ) -> Manifest:
        path = _path(resource, namespace, manifest["metadata"]["name"])
        query = {**self._writing, "force": "true"}
        expected = {} if uid is None else {"uid": uid} if uid else {"resourceVersion": NO_VERSION}
        body = {**manifest, "metadata": {**manifest["metadata"], **expected}}
        return await self._requests.send("apply", path, query=query, body=body, content=_APPLY)

    async def apply_beside(
        self,
        resource: Resource,
        namespace: str,
        manifest: Mapping[str, Any],
        *,
        manager: str,
        dry_run: bool,
        force: bool = False,
    ) -> Manifest:
        path = _path(resource, namespace, manifest["metadata"]["name"])
        trying = {"dryRun": "All"} if dry_run else self._trying
        query = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower(), **trying}
        return await self._requests.send("apply", path, query=query, body=manifest, content=_APPLY)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        strategic: bool = False,
        subresource: str = "",
    ) -> Manifest:
        content = "application/strategic-merge-patch+json" if strategic else "application/merge-patch+json"
        path = _path(resource, namespace, name, subresource)
        return await self._requests.send("patch", path, query=self._writing, body=body, content=content)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, resource_version: str = ""
    ) -> None:
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        body = {"propagationPolicy": "Background", "preconditions": preconditions}
        await self._requests.send("delete", _path(resource, namespace, name), query=self._trying, body=body)

    async def serves(self, resource: Resource) -> bool:
        try:
            answer = await self._requests.send("get", resource.root)
        except ApiError as error:
            if error.not_found:
                return False
            raise
        return any(entry.get("name") == resource.plural for entry in answer.get("resources", []))


def _typed(item: Manifest, listed: Manifest) -> Manifest:
    """The item as it would be read alone: in a list of a built-in kind it lacks its type."""
    kind = str(listed.get("kind") or "").removesuffix("List")
    return {"apiVersion": listed.get("apiVersion"), "kind": kind, **item}


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    scope = f"/namespaces/{quote(namespace)}" if resource.namespaced and namespace else ""
    tail = "".join(f"/{quote(part)}" for part in (resource.plural, name, subresource) if part)
    return resource.root + scope + tail
