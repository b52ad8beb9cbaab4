"""`kubectl imageedit plan`: what applying a file would do. Nothing is stored."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import aiohttp

from imageedit_operator.cli import claims, dry_run, files, plan_text, plan_view, reading_claims, reading_nodes
from imageedit_operator.cli.documents import as_text
from imageedit_operator.cli.exits import CommandFailed, Exit, is_unknown_kind
from imageedit_operator.cli.plan_view import PlanView
from imageedit_operator.cli.screen import Screen
from imageedit_operator.cli.session import Session
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_pod import WarmReport
from imageedit_operator.core.resource import ImageEditDeployment, parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.errors import ApiError
from imageedit_operator.kube import template_trial
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.device_book import DeviceBook
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
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
            observer = Observer(session.kube, http, cards, budgets, ask=_asking(session), tries_template=False)
            # The queue is not asked: its address is one of the cluster, and a forecast holds the number of pods.
            observed = await observer.observe(plan_view.without_queue(resource), proposed)
        observed, tried = await _with_template(session, resource, observed)
        return plan_view.build(
            live,
            proposed,
            observed,
            now=time.time(),
            mounted=await reading_claims.read(session.kube, claims.wanted(resource), namespace),
            there=await reading_nodes.read(session.kube, resource),
            health_unread=devices.unread,
            template_tried=tried,
        )
    except InvalidResource as error:
        raise CommandFailed(Exit.FAILED, f"The operator would refuse it: {error}.") from error


# | spec.template | the Deployment of the revision | another one of the resource | is tried over          |
# | empty         | any                            | any                         | nothing                |
# | given         | has it already                 | any                         | nothing: it fits       |
# | given         | is there                       | any                         | that one               |
# | given         | is not there                   | is there                    | the newest of them     |
# | given         | is not there                   | is not there                | nothing: nobody knows  |
# Who may not patch Deployments learns nothing either.
async def _with_template(session: Session, resource: ImageEditDeployment, observed: Observed) -> tuple[Observed, bool]:
    """The look with the apiserver's answer to a template that is not applied yet, and whether there is one."""
    hash_ = revision_hash(resource)
    owned = sorted((item for item in observed.deployments if item.owned), key=lambda item: item.created_at)
    own = next((item for item in owned if item.revision_hash == hash_), None)
    if not resource.template.given or (own is not None and own.templated):
        return observed, True
    if not owned:
        return observed, False
    try:
        if own is not None:
            refusal = await template_trial.over(session.kube, resource, own)
        else:
            refusal = await template_trial.over_another(session.kube, resource, owned[-1])
    except ApiError as error:
        if not error.forbidden:
            raise
        return observed, False
    return replace(observed, template_refusal=refusal), True


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
