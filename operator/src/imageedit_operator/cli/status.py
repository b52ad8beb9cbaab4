"""`kubectl imageedit status`: which revision serves, which comes, what it waits for."""

from __future__ import annotations

import asyncio
import time

from imageedit_operator.cli import looking, status_text, status_view
from imageedit_operator.cli.documents import as_text
from imageedit_operator.cli.exits import Exit
from imageedit_operator.cli.looking import Children, Report
from imageedit_operator.cli.screen import Screen
from imageedit_operator.cli.session import Session
from imageedit_operator.cli.status_view import StatusView
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.pods import is_over
from imageedit_operator.core.resource import parse
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.kube.parsing import parse_pod

PODS_AT_ONCE = 16


async def run(session: Session, name: str, *, everywhere: bool, json: bool, screen: Screen) -> Exit:
    """Print the state of one resource, or of all; NOT_READY when one is not ready. Raises ApiError, CommandFailed."""
    if name:
        manifests = [await looking.resource(session.kube, session.namespace, name)]
    else:
        manifests = await session.kube.list_all(IMAGE_EDIT_DEPLOYMENTS, "" if everywhere else session.namespace)
    looked = _Looked(session)
    views = [await looked.view(manifest) for manifest in manifests]
    if json:
        print(as_text({"items": views}))
    elif views:
        print(status_text.text(views, screen))
    else:
        elsewhere = f"namespace {session.namespace}. Choose another one with -n, or all with -A."
        print(f"There is no ImageEditDeployment in {'the cluster.' if everywhere else elsewhere}")
    return Exit.DONE if all(view.ready for view in views) else Exit.NOT_READY


class _Looked:
    """Cards are read once for all resources, and few pods are asked at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cards = CardBook(session.kube, clock=time.monotonic)
        self._asking = asyncio.Semaphore(PODS_AT_ONCE)

    async def view(self, manifest: Manifest) -> StatusView:
        """One resource, its children and what its pods answer."""
        children, cards = await asyncio.gather(looking.children(self._session.kube, manifest), self._ledger(manifest))
        reports = await self._reports(children)
        return status_view.build(manifest, children, reports, cards, now=time.time())

    async def _ledger(self, manifest: Manifest) -> Known[CardLedger] | Unknown:
        try:
            accelerator = parse(manifest).accelerator
        except InvalidResource as error:
            return Unknown(reason="InvalidSpec", message=str(error))
        if not accelerator.extended_resource:
            return Unknown(reason="NoCardAsked", message="pods request no card by the name of a resource")
        return await self._cards.read(
            resource=accelerator.extended_resource, count=accelerator.count, place=accelerator.place()
        )

    async def _reports(self, children: Children) -> dict[str, Report]:
        asked = [raw for raw in children.pods if _answers(raw)]
        answers = await asyncio.gather(*(self._ask(raw) for raw in asked))
        return {raw["metadata"]["name"]: answer for raw, answer in zip(asked, answers, strict=True)}

    async def _ask(self, raw: Manifest) -> Report:
        async with self._asking:
            return await self._session.proxy.warm_report(raw["metadata"]["namespace"], raw["metadata"]["name"])


def _answers(raw: Manifest) -> bool:
    pod = parse_pod(raw)
    return pod.started and bool(pod.ip) and not is_over(pod)
