"""What the apiserver would store if a file were applied: defaults, its rules, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from imageedit_operator.kube.client import FIELD_MANAGER, KubeClient, Manifest
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CLIENT_SIDE, SERVER_SIDE = "kubectl-client-side-apply", "kubectl"

_OF_THE_SERVER = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")

Raw = Mapping[str, Any]


# | the resource                                   | is tried                                                |
# | is not there                                   | as kubectl apply --server-side would                    |
# | carries the annotation of kubectl apply        | as kubectl apply would: what the file lost goes away    |
# | was applied server-side                        | as its last applier would (kubectl, Argo CD, Flux, ...) |
async def applied(
    preview: Callable[[str], KubeClient], manifest: Manifest, live: Manifest | None, *, namespace: str
) -> Manifest:
    """The stored form. Raises ApiError when the apiserver refuses the file."""
    wanted = cleaned(manifest, namespace)
    before = None if live is None else last_applied(live)
    if live is not None and before is not None:
        patch = client_side(before, wanted, live)
        name = wanted["metadata"]["name"]
        return await preview(CLIENT_SIDE).patch(IMAGE_EDIT_DEPLOYMENTS, namespace, name, patch)
    return await preview(applier(live)).apply(IMAGE_EDIT_DEPLOYMENTS, namespace, wanted)


def cleaned(manifest: Raw, namespace: str) -> Manifest:
    """The file's manifest without status and without what only the server writes."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _OF_THE_SERVER}
    annotations = {
        name: text for name, text in (metadata.pop("annotations", None) or {}).items() if name != LAST_APPLIED
    }
    kept = {name: value for name, value in manifest.items() if name != "status"}
    more = {"annotations": annotations} if annotations else {}
    return {**kept, "metadata": {**metadata, "namespace": namespace, **more}}


def last_applied(live: Raw) -> Manifest | None:
    """What kubectl apply noted when it wrote the object last."""
    try:
        noted = json.loads((live["metadata"].get("annotations") or {})[LAST_APPLIED])
    except (KeyError, ValueError):
        return None
    return noted if isinstance(noted, dict) else None


def client_side(before: Raw, wanted: Raw, live: Raw) -> dict[str, Any]:
    """The patch of kubectl apply. It notes itself in an annotation, so those of others never go with the file's."""
    metadata = {"annotations": {}, **wanted["metadata"]}
    return three_way(before, {**wanted, "metadata": metadata}, live)


def three_way(before: Raw, wanted: Raw, live: Raw) -> dict[str, Any]:
    """A merge patch of what is wanted; what was applied before, is not wanted any more and is still there goes."""
    patch: dict[str, Any] = {}
    for name, value in wanted.items():
        old, now = before.get(name), live.get(name)
        if isinstance(value, Mapping) and isinstance(now, Mapping):
            patch[name] = three_way(old if isinstance(old, Mapping) else {}, value, now)
        else:
            patch[name] = value
    return patch | {name: None for name in before if name not in wanted and name in live and name != "status"}


def applier(live: Raw | None) -> str:
    """The field manager that applied the spec last."""
    entries = [] if live is None else live["metadata"].get("managedFields") or []
    found = [
        entry
        for entry in entries
        if entry.get("operation") == "Apply"
        and "f:spec" in (entry.get("fieldsV1") or {})
        and not entry.get("subresource")
    ]
    found = [entry for entry in found if entry.get("manager") != FIELD_MANAGER]
    found.sort(key=lambda entry: str(entry.get("time", "")))
    return str(found[-1].get("manager") or SERVER_SIDE) if found else SERVER_SIDE
