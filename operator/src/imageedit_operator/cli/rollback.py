"""`kubectl imageedit rollback`: put model, server and accelerator of an earlier revision back into the spec.

The operator never writes a spec. This command may, because a person asked.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import yaml

from imageedit_operator.cli import gitops, looking, recipes
from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.cli.history_view import change_words
from imageedit_operator.cli.rollback_choice import choose, hash_of, recipe_of
from imageedit_operator.cli.session import Session
from imageedit_operator.cli.written import Written, show
from imageedit_operator.core.recipe import PARTS
from imageedit_operator.core.resource import RESTARTED_AT, parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS


async def run(session: Session, name: str, *, to: str, json: bool) -> Exit:
    """Write the earlier revision's part of the spec. Raises ApiError, CommandFailed."""
    manifest = await looking.resource(session.kube, session.namespace, name)
    deployments = await looking.revisions(session.kube, manifest)
    present = revision_hash(parse(manifest))
    chosen = choose(deployments, manifest.get("status") or {}, asked=to, present=present)
    target = hash_of(chosen)
    if target == present:
        message = f"{name} asks for revision {target} already; nothing was written."
        show(_outcome(manifest, target, message, changed=False), advice="", json=json)
        return Exit.DONE
    recipe = recipe_of(chosen)
    if not recipes.makes(manifest, recipe, target):
        words = (
            f"What was noted of revision {target} does not make it again with this version. Put its spec back by hand."
        )
        raise CommandFailed(Exit.FAILED, words)
    body = recipes.rollback_patch(manifest, recipe)
    stored = await session.kube.patch(IMAGE_EDIT_DEPLOYMENTS, session.namespace, name, body)
    advice = _advice(stored, recipes.swaps(body))
    show(_outcome(manifest, target, _words(manifest, stored, target), changed=True), advice=advice, json=json)
    return Exit.DONE


def _outcome(manifest: Manifest, target: str, message: str, *, changed: bool) -> Written:
    return Written(
        namespace=manifest["metadata"]["namespace"],
        name=manifest["metadata"]["name"],
        command="rollback",
        changed=changed,
        message=message,
        revision=target,
        managed_by=gitops.owner(manifest),
    )


def _words(before: Manifest, after: Manifest, target: str) -> str:
    name = after["metadata"]["name"]
    lines = [f"{name} goes back to revision {target}. Changed in the spec:"]
    lines += [f"  {change_words(change)}" for change in recipes.changes(before["spec"], after["spec"])]
    annotation = (after["metadata"].get("annotations") or {}).get(RESTARTED_AT)
    if annotation != (before["metadata"].get("annotations") or {}).get(RESTARTED_AT):
        lines.append(f"  annotation {RESTARTED_AT}: {annotation or '(removed)'}")
    return "\n".join(lines)


def _advice(stored: Manifest, swapped: Sequence[str]) -> str:
    """The part of the spec as it is now, to be committed, and how to apply a file that has another source again."""
    part = {"spec": {name: copy.deepcopy(stored["spec"][name]) for name in PARTS if name in stored["spec"]}}
    written = yaml.safe_dump(part, sort_keys=False, default_flow_style=False).rstrip()
    advice = f"{gitops.advice(stored, 'this part of the spec')}\n{written}"
    if not swapped:
        return advice
    return (
        f"{advice}\nA file with another kind of {' and '.join(swapped)} than this is refused by kubectl apply now."
        " Apply it once with kubectl apply --server-side --force-conflicts -f FILE."
    )
