"""The revisions that a resource can go back to, as `history` shows them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imageedit_operator.cli import recipes
from imageedit_operator.cli.recipes import Change
from imageedit_operator.cli.roles import TONES, role
from imageedit_operator.cli.screen import Cell, Screen, duration, table
from imageedit_operator.core.history import completed
from imageedit_operator.core.recipe import noted
from imageedit_operator.kube.parsing import REVISION_LABEL, epoch_s

Raw = Mapping[str, Any]

LONGEST_CHANGE = 60
"""Characters of a change in the table; JSON has all of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PastRevision:
    """One revision that has a Deployment."""

    hash: str
    role: str
    model: str
    image: str
    digest: str
    replicas: int
    age_s: float
    """Of its Deployment."""
    completed_ago_s: float | None
    """Since a rollout to it was complete last; None where none was, or only an older operator saw it."""
    restorable: bool
    """Whether `rollback` knows what made it."""
    changes: tuple[Change, ...]
    """What of the spec differs from the revision before."""


def build(manifest: Raw, deployments: Sequence[Raw], *, now: float) -> tuple[PastRevision, ...]:
    """Oldest first, as the Deployments come."""
    status = manifest.get("status") or {}
    stored = {str(entry.get("hash")): entry for entry in status.get("revisions") or ()}
    views: list[PastRevision] = []
    before: Raw | None = None
    for deployment in deployments:
        recipe = noted(deployment)
        views.append(_view(deployment, recipe, before, status, stored, now=now))
        before = recipe or before
    return tuple(views)


def _view(
    deployment: Raw, recipe: Raw | None, before: Raw | None, status: Raw, stored: Mapping[str, Raw], *, now: float
) -> PastRevision:
    metadata, spec = deployment["metadata"], deployment.get("spec") or {}
    hash_ = str((metadata.get("labels") or {}).get(REVISION_LABEL, ""))
    entry, replicas = stored.get(hash_, {}), int(spec.get("replicas", 1))
    completed_at = completed([entry]).get(hash_)
    return PastRevision(
        hash=hash_,
        role=role(hash_, status, pods=replicas),
        model=str(entry.get("model") or ((recipe or {}).get("model") or {}).get("revision", "")),
        image=_image(spec),
        digest=str(entry.get("digest", "")),
        replicas=replicas,
        age_s=max(0.0, now - epoch_s(metadata.get("creationTimestamp"))),
        completed_ago_s=None if completed_at is None else max(0.0, now - completed_at),
        restorable=recipe is not None,
        changes=() if recipe is None or before is None else recipes.changes(before, recipe),
    )


def _image(spec: Raw) -> str:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return next((str(item.get("image", "")) for item in containers if item.get("name") == "server"), "")


def text(views: Sequence[PastRevision], screen: Screen) -> str:
    """A table, oldest first."""
    head = [
        Cell(word, "dim") for word in ("REVISION", "MODEL", "ROLE", "PODS", "AGE", "COMPLETED", "DIGEST", "CHANGED")
    ]
    return "\n".join(table([head, *(_row(view) for view in views)], screen))


def _row(view: PastRevision) -> list[Cell]:
    digest = view.digest.removeprefix("sha256:")[:12]
    changed = "; ".join(change_words(change) for change in view.changes)
    if not view.restorable:
        changed = "(made by an older operator, cannot be restored)"
    return [
        Cell(view.hash),
        Cell(view.model, "bold"),
        Cell(view.role, TONES[view.role]),
        Cell(str(view.replicas)),
        Cell(duration(view.age_s)),
        Cell("" if view.completed_ago_s is None else f"{duration(view.completed_ago_s)} ago"),
        Cell(digest, "dim"),
        Cell(changed),
    ]


def change_words(change: Change) -> str:
    """`model.revision: a -> b`."""
    before, after = (text[:LONGEST_CHANGE] or "(none)" for text in (change.before, change.after))
    return f"{change.field}: {before} -> {after}"
