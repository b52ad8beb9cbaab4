"""Which revision `rollback` goes back to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.core.history import completed, digests
from imageedit_operator.core.recipe import noted
from imageedit_operator.kube.parsing import REVISION_LABEL

Raw = Mapping[str, Any]


# | --to  | the resource                                  | the revision                                     |
# | given | keeps one of that spec.model.revision, or     | that one                                         |
# |       | else one whose hash begins so, and only one   |                                                  |
# | given | keeps none, or several                        | refused                                          |
# | none  | keeps the last good one, and asks for another | the last good one                                |
# | none  | keeps others that were complete once, and not | the one of them that was complete last           |
# |       | failed                                        |                                                  |
# | none  | keeps others with a digest, and not failed    | the one of them whose Deployment was made last   |
# | none  | keeps others that have not failed             | the same of these                                |
# | none  | keeps no other                                | refused                                          |
def choose(deployments: Sequence[Raw], status: Raw, *, asked: str, present: str) -> Raw:
    """The Deployment to go back to, of those that are there, oldest first. Raises CommandFailed.

    `present` is the hash of the revision that the spec asks for. An older operator noted no completion. What it left
    tells less: without a digest no pod of a revision was ever warm, with one a pod was, or one of the same files.
    """
    if asked:
        return _named(deployments, asked)
    others = [item for item in deployments if hash_of(item) != present]
    good = [item for item in others if hash_of(item) == status.get("lastGoodRevision")]
    tried = [item for item in others if hash_of(item) != status.get("failedRevision")]
    entries = status.get("revisions") or ()
    times, with_digest = completed(entries), digests(entries)
    complete = sorted((item for item in tried if hash_of(item) in times), key=lambda item: times[hash_of(item)])
    possible = good or complete or [item for item in tried if hash_of(item) in with_digest] or tried
    if not possible:
        raise CommandFailed(Exit.NOT_FOUND, "No earlier revision is kept, so there is nothing to go back to.")
    return possible[-1]


def recipe_of(deployment: Raw) -> Mapping[str, Any]:
    """What made the revision. Raises CommandFailed where nobody wrote it down."""
    recipe = noted(deployment)
    if recipe is None:
        raise CommandFailed(
            Exit.FAILED,
            f"Revision {hash_of(deployment)} was made by an older operator, which did not note its spec."
            " Put the old spec back by hand; its Deployment is taken up again.",
        )
    return recipe


def hash_of(deployment: Raw) -> str:
    """The revision of a Deployment."""
    return str((deployment["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _named(deployments: Sequence[Raw], asked: str) -> Raw:
    by_model = [item for item in deployments if ((noted(item) or {}).get("model") or {}).get("revision") == asked]
    found = by_model or [item for item in deployments if hash_of(item).startswith(asked)]
    kept = ", ".join(hash_of(item) for item in deployments) or "none"
    if not found:
        raise CommandFailed(Exit.NOT_FOUND, f"No revision {asked} is kept. These are: {kept}.")
    if len(found) > 1:
        several = ", ".join(hash_of(item) for item in found)
        raise CommandFailed(Exit.USAGE, f"{asked} can be several revisions: {several}. Give the whole hash.")
    return found[0]
