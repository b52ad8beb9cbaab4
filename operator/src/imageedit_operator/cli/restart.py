"""`kubectl imageedit restart`: replace every pod by one of the same spec."""

from __future__ import annotations

import time

from imageedit_operator.cli import looking
from imageedit_operator.cli.exits import Exit
from imageedit_operator.cli.session import Session
from imageedit_operator.cli.written import Written, show
from imageedit_operator.core.resource import RESTARTED_AT, parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.core.stored import timestamp
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS


async def run(session: Session, name: str, *, json: bool) -> Exit:
    """Write the restart annotation, and nothing else. Raises ApiError, CommandFailed."""
    manifest = await looking.resource(session.kube, session.namespace, name)
    body = {"metadata": {"annotations": {RESTARTED_AT: timestamp(time.time())}}}
    stored = await session.kube.patch(IMAGE_EDIT_DEPLOYMENTS, session.namespace, name, body)
    hash_ = revision_hash(parse(stored))
    paused = bool((manifest["spec"].get("rollout") or {}).get("paused", False))
    how = f"after kubectl imageedit resume {name}, for it is paused" if paused else "one after the other"
    outcome = Written(
        namespace=session.namespace,
        name=name,
        command="restart",
        changed=True,
        message=f"{name} restarts as revision {hash_}: its pods are replaced {how}.",
        revision=hash_,
    )
    show(outcome, advice=f"Follow it with kubectl imageedit status {name}.", json=json)
    return Exit.DONE
