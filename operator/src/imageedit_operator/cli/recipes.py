"""What made each revision against another one's, and how to put it back into a spec. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.recipe import PARTS, TEMPLATE, remade
from imageedit_operator.core.resource import RESTARTED_AT, parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.status import merge_diff

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One field that differs; an empty text means that it is absent."""

    field: str
    before: str
    after: str


def changes(before: Raw, after: Raw) -> tuple[Change, ...]:
    """The fields that differ between two recipes, or two specs."""
    one, other = _flat(before), _flat(after)
    names = sorted({*one, *other})
    found = (Change(field=name, before=one.get(name, ""), after=other.get(name, "")) for name in names)
    return tuple(change for change in found if change.before != change.after)


def rollback_patch(manifest: Raw, recipe: Raw) -> dict[str, Any]:
    """The merge patch that makes the resource ask for the recipe's revision again.

    It writes model, server, accelerator and template whole, and the restart annotation, and nothing else; the
    version makes the apiserver refuse it when somebody else wrote meanwhile.
    """
    spec = manifest["spec"]
    patch: dict[str, Any] = {part: merge_diff(spec.get(part) or {}, recipe[part]) for part in PARTS}
    if recipe.get(TEMPLATE) or spec.get(TEMPLATE):
        template = recipe.get(TEMPLATE)
        patch[TEMPLATE] = merge_diff(spec.get(TEMPLATE) or {}, template) if template else None
    metadata: dict[str, Any] = {"resourceVersion": manifest["metadata"]["resourceVersion"]}
    present = (manifest["metadata"].get("annotations") or {}).get(RESTARTED_AT)
    if present != recipe.get("restartedAt"):
        metadata["annotations"] = {RESTARTED_AT: recipe.get("restartedAt")}
    return {"metadata": metadata, "spec": {part: body for part, body in patch.items() if body or body is None}}


# | the patch                                          | swaps              |
# | takes a member of model.source or prefetch away    | spec.model.source, |
# | and puts another in its place                      | spec.model.prefetch|
# | changes the member, adds it, takes the whole away  | nothing            |
def swaps(patch: Raw) -> tuple[str, ...]:
    """Fields of the spec that hold one of several members, and hold another one now.

    kubectl apply never takes a member away that its file did not hold, so both would be there, and that is refused.
    """
    model = patch["spec"].get("model") or {}
    return tuple(f"spec.model.{name}" for name in ("source", "prefetch") if None in (model.get(name) or {}).values())


def makes(manifest: Raw, recipe: Raw, hash_: str) -> bool:
    """Whether the resource with this recipe in it is the revision `hash_` for this operator."""
    made = remade(parse(manifest), recipe)
    return made is not None and revision_hash(made) == hash_


def _flat(value: Raw, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, item in value.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(item, Mapping) and item:
            found |= _flat(item, path)
        else:
            found[path] = item if isinstance(item, str) else json.dumps(item)
    return found
