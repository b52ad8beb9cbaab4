"""`kubectl imageedit history`: the revisions that are kept, and what changed from one to the next."""

from __future__ import annotations

import time

from imageedit_operator.cli import history_view, looking
from imageedit_operator.cli.documents import as_text
from imageedit_operator.cli.exits import Exit
from imageedit_operator.cli.screen import Screen
from imageedit_operator.cli.session import Session


async def run(session: Session, name: str, *, json: bool, screen: Screen) -> Exit:
    """Print the kept revisions, oldest first. Raises ApiError, CommandFailed."""
    manifest = await looking.resource(session.kube, session.namespace, name)
    deployments = await looking.revisions(session.kube, manifest)
    views = history_view.build(manifest, deployments, now=time.time())
    if json:
        print(as_text({"namespace": session.namespace, "name": name, "revisions": views}))
    elif views:
        print(history_view.text(views, screen))
    else:
        print(f"{name} has no revision yet.")
    return Exit.DONE
