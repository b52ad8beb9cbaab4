"""`kubectl imageedit plan`: what applying a file would do. Nothing is stored."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from imageedit_operator.cli import dry_run, files, plan_text, plan_view
from imageedit_operator.cli.documents import as_text
from imageedit_operator.cli.exits import CommandFailed, Exit, is_unknown_kind
from imageedit_operator.cli.plan_view import PlanView
from imageedit_operator.cli.screen import Screen
from imageedit_operator.cli.session import Session
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.observed import Known, Unknown, WarmReport
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import IMAGE_EDIT_DEPLOYMENTS, Manifest
from imageedit_operator.kube.device_book import DeviceBook
from imageedit_operator.kube.observe import AskPod, Observer


async def run(session: Session, filename: str, *, asked_namespace: str, json: bool, screen: Screen) -> Exit:
    """Print the plan of each resource in the file. Raises ApiError, CommandFailed."""
    manifests = await asyncio.to_thread(files.load, filename)
    views = [await _view(session, manifest, _namespace(manifest, session, asked_namespace)) for manifest in manifests]
    print(as_text({"items": views}) if json else plan_text.text(views, screen))
    return Exit.DONE


def _namespace(manifest: Manifest, session: Session, asked: str) -> str:
    written = str(manifest["metadata"].get("namespace") or "")
    if asked and written and asked != written:
        name = manifest["metadata"]["name"]
        raise CommandFailed(Exit.USAGE, f"{name} is of namespace {written}, and -n says {asked}. Leave -n out.")
    return written or session.namespace


async def _view(session: Session, manifest: Manifest, namespace: str) -> PlanView:
    live = await _live(session, namespace, manifest["metadata"]["name"])
    proposed = await dry_run.applied(session.preview, manifest, live, namespace=namespace)
    try:
        resource = parse(proposed)
        async with aiohttp.ClientSession() as http:
            devices = DeviceBook(session.kube, clock=time.monotonic, wall=time.time)
            cards = CardBook(session.kube, clock=time.monotonic, devices=devices)
            budgets = BudgetBook(session.kube, clock=time.monotonic)
            observer = Observer(session.kube, http, cards, budgets, ask=_asking(session))
            # The queue is not asked: its address is one of the cluster, and a forecast holds the number of pods.
            observed = await observer.observe(plan_view.without_queue(resource), proposed)
        return plan_view.build(live, proposed, observed, now=time.time(), health_unread=devices.unread)
    except InvalidResource as error:
        raise CommandFailed(Exit.FAILED, f"The operator would refuse it: {error}.") from error


def _asking(session: Session) -> AskPod:
    async def ask(raw: Manifest) -> Known[WarmReport] | Unknown:
        return await session.proxy.warm_report(raw["metadata"]["namespace"], raw["metadata"]["name"])

    return ask


async def _live(session: Session, namespace: str, name: str) -> Manifest | None:
    try:
        return await session.kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, name)
    except ApiError as error:
        if error.not_found and not is_unknown_kind(error):
            return None
        raise
