"""`kubectl imageedit promote`: let a rollout go on that holds at its canary."""

from __future__ import annotations

from imageedit_operator.cli import looking
from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.cli.session import Session
from imageedit_operator.cli.written import Written, show
from imageedit_operator.core.resource import PROMOTED, ImageEditDeployment, parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS


async def run(session: Session, name: str, *, json: bool) -> Exit:
    """Write the annotation that promotes the spec's revision, and nothing else. Raises ApiError, CommandFailed."""
    manifest = await looking.resource(session.kube, session.namespace, name)
    resource = parse(manifest)
    hash_ = revision_hash(resource)
    nothing = _nothing_to_do(manifest, resource, hash_)
    if not nothing:
        # A spec that changes meanwhile asks for another revision: nobody has looked at that one's canary.
        version = manifest["metadata"]["resourceVersion"]
        body = {"metadata": {"annotations": {PROMOTED: hash_}, "resourceVersion": version}}
        await session.kube.patch(IMAGE_EDIT_DEPLOYMENTS, session.namespace, name, body)
    outcome = Written(
        namespace=session.namespace,
        name=name,
        command="promote",
        changed=not nothing,
        message=nothing or f"{name} goes on to revision {hash_} beyond its canary{_but(name, resource)}.",
        revision=hash_,
    )
    show(outcome, advice=f"Follow it with kubectl imageedit status {name}.", json=json)
    return Exit.DONE


# | first that fits                          | end                                  |
# | the spec's revision was given up         | refused: promoting it has no effect  |
# | all pods were of it before               | 0, nothing is written                |
# | it is promoted already                   | 0, nothing is written                |
# | the spec has no canary                   | refused: nothing holds               |
# | else                                     | 0, the annotation is written         |
def _nothing_to_do(manifest: Manifest, resource: ImageEditDeployment, hash_: str) -> str:
    """Why there is nothing to write; empty where there is. Raises CommandFailed where promoting has no sense."""
    status = manifest.get("status") or {}
    if hash_ == status.get("failedRevision"):
        words = f"Revision {hash_} failed and was given up; change the spec, or kubectl imageedit restart"
        raise CommandFailed(Exit.FAILED, f"{words} {resource.name}, to try again.")
    if hash_ == status.get("lastGoodRevision"):
        return f"{resource.name} has nothing to promote: its pods are of revision {hash_} already."
    if resource.promoted == hash_:
        return f"Revision {hash_} of {resource.name} is promoted already."
    if resource.rollout.canary is None:
        words = f"{resource.name} has no spec.rollout.canary, so its rollouts hold at none: nothing to promote."
        raise CommandFailed(Exit.FAILED, words)
    return ""


def _but(name: str, resource: ImageEditDeployment) -> str:
    return f", after kubectl imageedit resume {name}, for it is paused" if resource.rollout.paused else ""
