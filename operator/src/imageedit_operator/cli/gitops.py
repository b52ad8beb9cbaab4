"""Who else writes a resource from a repository, and would put back what a person changed by hand. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


# | first that is there                                                | the owner           |
# | annotation argocd.argoproj.io/tracking-id, label .../instance      | Argo CD application |
# | label kustomize.toolkit.fluxcd.io/name                             | Flux Kustomization  |
# | label helm.toolkit.fluxcd.io/name                                  | Flux HelmRelease    |
# | annotation meta.helm.sh/release-name                               | Helm release        |
def owner(manifest: Mapping[str, Any]) -> str:
    """Such as `Flux Kustomization apps`; empty when nothing tells of one."""
    metadata = manifest["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    tracking = str(annotations.get("argocd.argoproj.io/tracking-id", "")).partition(":")[0]
    application = tracking or labels.get("argocd.argoproj.io/instance", "")
    for what, name in (
        ("Argo CD application", application),
        ("Flux Kustomization", labels.get("kustomize.toolkit.fluxcd.io/name", "")),
        ("Flux HelmRelease", labels.get("helm.toolkit.fluxcd.io/name", "")),
        ("Helm release", annotations.get("meta.helm.sh/release-name", "")),
    ):
        if name:
            return f"{what} {name}"
    return ""


def advice(manifest: Mapping[str, Any], what: str) -> str:
    """What to commit, so that the change stays; `what` is the field, or words for it."""
    found = owner(manifest)
    if found:
        return f"{found} writes this resource and may put it back: commit {what} there as well."
    return f"If the resource comes from a repository, commit {what} there as well."
