"""`kubectl imageedit pause` and `resume`: whether pods may be replaced."""

from __future__ import annotations

from imageedit_operator.cli import gitops, looking
from imageedit_operator.cli.exits import Exit
from imageedit_operator.cli.session import Session
from imageedit_operator.cli.written import Written, show
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS


async def run(session: Session, name: str, *, paused: bool, json: bool) -> Exit:
    """Write `spec.rollout.paused`, and nothing else. Raises ApiError, CommandFailed."""
    manifest = await looking.resource(session.kube, session.namespace, name)
    before = bool((manifest["spec"].get("rollout") or {}).get("paused", False))
    if before != paused:
        body = {"spec": {"rollout": {"paused": paused}}}
        await session.kube.patch(IMAGE_EDIT_DEPLOYMENTS, session.namespace, name, body)
    outcome = Written(
        namespace=session.namespace,
        name=name,
        command="pause" if paused else "resume",
        changed=before != paused,
        message=_words(name, paused=paused, changed=before != paused),
        managed_by=gitops.owner(manifest),
    )
    field = f"spec.rollout.paused: {'true' if paused else 'false'}"
    show(outcome, advice=gitops.advice(manifest, field), json=json)
    return Exit.DONE


def _words(name: str, *, paused: bool, changed: bool) -> str:
    if not changed:
        return f"{name} is paused already." if paused else f"{name} is not paused."
    if paused:
        return f"{name} is paused: no pod is replaced until kubectl imageedit resume {name}."
    return f"{name} goes on: pods are replaced again where the spec asks for it."
