"""One look at everything that a plan about one resource may depend on.

Reads only. What the apiserver refuses is an ApiError; what pods, nodes and Prometheus do not tell
becomes Unknown, because a plan can live without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import aiohttp

from imageedit_operator.core import manifests
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, Observed, ObservedDeployment, QueueSample, Refusal
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.pod_template import claim_template_name
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.errors import ApiError
from imageedit_operator.kube import template_trial
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.first_look import Shown
from imageedit_operator.kube.jobs import read_jobs
from imageedit_operator.kube.kept import Kept, nothing_kept
from imageedit_operator.kube.kinds import CLAIM_TEMPLATES, DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.kube.losses import marked
from imageedit_operator.kube.mounts import MountBook, with_words
from imageedit_operator.kube.parsing import (
    DEPLOYMENT_LABEL,
    REVISION_LABEL,
    changed_fields,
    foreign_owner,
    made_for,
    parse_deployment,
    parse_pod,
    service_matches,
)
from imageedit_operator.kube.warmz import PROBES_PORT, ask_warmz
from imageedit_operator.queue_metrics import read_queue
from imageedit_operator.workqueue import Key

WARMZ_AT_ONCE = 32


AskPod: TypeAlias = Callable[[Manifest], Awaitable[Known[WarmReport] | Unknown]]
"""How to get a pod's own report; never raises."""


class Observer:
    """Looks at one cluster; `ask` is for those that cannot reach pods by their address.

    Without `mounts` nobody is asked why a pod hangs before its first container.

    `on_read` gets each Service, template of claims and Job that was read. A Service that is `kept` is not read.
    `tries_template` is false for those that ask by themselves, or may not patch Deployments.
    """

    def __init__(
        self,
        kube: Kube,
        http: aiohttp.ClientSession,
        cards: CardBook,
        budgets: BudgetBook,
        *,
        probes_port: int = PROBES_PORT,
        ask: AskPod | None = None,
        mounts: MountBook | None = None,
        on_read: Callable[[Manifest], None] = lambda _object: None,
        kept: Kept | None = None,
        tries_template: bool = True,
    ) -> None:
        self._kube = kube
        self._http = http
        self._cards = cards
        self._budgets = budgets
        self._probes_port = probes_port
        self._mounts = mounts
        self._on_read = on_read
        self._kept = kept or nothing_kept()
        self._tries_template = tries_template
        self._ask = ask or self._ask_its_address
        self._warmz = asyncio.Semaphore(WARMZ_AT_ONCE)

    async def observe(
        self, resource: ImageEditDeployment, manifest: Mapping[str, Any], *, shown: Shown | None = None
    ) -> Observed:
        """What the cluster says now, or a list has `shown` of Deployments and pods. Raises ApiError."""
        status = manifest.get("status") or {}
        deployments, (pods, budgets), service, claims, cards, jobs = await asyncio.gather(
            self._deployments(resource, shown),
            self._pods_and_budgets(resource, shown),
            self._service(resource),
            self._claims(resource),
            self._ledger(resource),
            read_jobs(self._kube, resource, status, on_read=self._on_read),
        )
        nodes = await self._nodes(resource)
        queue = await self._queue(resource, pods)
        refusal = await self._refusal(resource, deployments, pods)
        wanted = manifests.service(resource)
        return Observed(
            deployments=deployments,
            pods=pods,
            template_refusal=refusal,
            service_exists=service is not None,
            service_uid=service["metadata"]["uid"] if service is not None else "",
            service_matches=service is not None and service_matches(wanted, service),
            service_foreign_owner=foreign_owner(service, owner_uid=resource.uid) if service is not None else "",
            service_changed=changed_fields(wanted, service) if service is not None else (),
            claims_exist=claims is not None,
            claims_foreign_owner=foreign_owner(claims, owner_uid=resource.uid) if claims is not None else "",
            budgets=budgets,
            cards=cards,
            jobs=jobs,
            nodes=nodes,
            queue=queue,
            status=status,
        )

    async def before_the_first_write(self, resource: ImageEditDeployment) -> Observed:
        """A look at a resource that has no children yet, as far as anybody can know. Raises ApiError.

        They are not looked for: each is created only where there is none, and a refusal says that there is one.
        """
        budgets, cards = await asyncio.gather(
            self._budgets.of_others(resource, [_labels_of_the_next_pod(resource)]), self._ledger(resource)
        )
        nodes, queue = await self._nodes(resource), await self._queue(resource, ())
        return Observed(budgets=budgets, cards=cards, nodes=nodes, queue=queue)

    async def _deployments(self, resource: ImageEditDeployment, shown: Shown | None) -> tuple[ObservedDeployment, ...]:
        if shown is not None:
            found = list(shown.deployments)
        else:
            found = await self._kube.list_all(DEPLOYMENTS, resource.namespace, labels=_labels(resource))
        wanted = deployment_name(resource.name, revision_hash(resource))
        if all(raw["metadata"]["name"] != wanted for raw in found):
            # One of the wanted name that our labels do not find, which the plan must not overwrite.
            stranger = await self._get_or_none(DEPLOYMENTS, resource.namespace, wanted)
            found += [stranger] if stranger is not None else []
        return tuple(marked(parse_deployment(raw, owner_uid=resource.uid), raw, resource) for raw in found)

    async def _service(self, resource: ImageEditDeployment) -> Manifest | None:
        known = self._kept.get(SERVICES, resource)
        if known is not None:
            return known
        found = await self._heard(SERVICES, resource.namespace, resource.name)
        if found is not None:
            self._kept.given(SERVICES, Key(resource.namespace, resource.name), found)
        return found

    async def _claims(self, resource: ImageEditDeployment) -> Manifest | None:
        if not resource.accelerator.claims:
            return None
        return await self._heard(CLAIM_TEMPLATES, resource.namespace, claim_template_name(resource))

    async def _heard(self, kind: Resource, namespace: str, name: str) -> Manifest | None:
        found = await self._get_or_none(kind, namespace, name)
        if found is not None:
            self._on_read(found)
        return found

    async def _get_or_none(self, kind: Resource, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._kube.get(kind, namespace, name)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def _pods_and_budgets(
        self, resource: ImageEditDeployment, shown: Shown | None
    ) -> tuple[tuple[ObservedPod, ...], Known[Budgets] | Unknown]:
        if shown is not None:
            found = shown.pods
        else:
            found = await self._kube.list_all(PODS, resource.namespace, labels=_labels(resource))
        ours = [raw for raw in found if made_for(raw, resource.uid)]
        labels = [_labels_of_the_next_pod(resource), *(raw["metadata"].get("labels") or {} for raw in found)]
        pods, budgets = await asyncio.gather(
            asyncio.gather(*(self._pod(raw) for raw in ours)), self._budgets.read(resource, labels)
        )
        return await with_words(self._mounts, pods, resource.namespace), budgets

    async def _pod(self, raw: Manifest) -> ObservedPod:
        pod = parse_pod(raw)
        if not (pod.ip and pod.started) or pod.terminating:
            return pod
        async with self._warmz:
            return parse_pod(raw, report=await self._ask(raw))

    async def _ask_its_address(self, raw: Manifest) -> Known[WarmReport] | Unknown:
        return await ask_warmz(self._http, raw["status"]["podIP"], self._probes_port)

    async def _ledger(self, resource: ImageEditDeployment) -> Known[CardLedger] | Unknown:
        accelerator = resource.accelerator
        if not accelerator.extended_resource:
            return Unknown(reason="NoCardAsked", message="pods request no card by the name of a resource")
        return await self._cards.read(
            resource=accelerator.extended_resource,
            count=accelerator.count,
            place=accelerator.place(),
            asker=(resource.namespace, resource.name),
        )

    async def _nodes(self, resource: ImageEditDeployment) -> Known[Mapping[str, str]] | Unknown:
        accelerator, prefetch = resource.accelerator, resource.model.prefetch
        if prefetch is None or prefetch.kind != "hostPath" or not accelerator.extended_resource:
            return Unknown(reason="NotAsked", message="nodes are read for copies on nodes that have cards")
        return await self._cards.nodes(
            resource=accelerator.extended_resource, count=accelerator.count, place=accelerator.place()
        )

    async def _refusal(
        self, resource: ImageEditDeployment, deployments: Sequence[ObservedDeployment], pods: Sequence[ObservedPod]
    ) -> Refusal | None:
        if not self._tries_template:
            return None
        return await template_trial.refusal(self._kube, resource, deployments, pods)

    async def _queue(self, resource: ImageEditDeployment, pods: Sequence[ObservedPod]) -> Known[QueueSample] | Unknown:
        if resource.autoscaling is None:
            return Unknown(reason="NotAsked", message="the resource does not scale on its queue")
        return await read_queue(
            self._http,
            address=resource.autoscaling.prometheus_address,
            namespace=resource.namespace,
            deployment=resource.name,
            live_ips=frozenset(pod.ip for pod in pods if pod.ip and pod.started),
        )


def _labels_of_the_next_pod(resource: ImageEditDeployment) -> Mapping[str, str]:
    return {**manifests.labels(resource), REVISION_LABEL: revision_hash(resource), **resource.template.labels}


def _labels(resource: ImageEditDeployment) -> str:
    return f"{DEPLOYMENT_LABEL}={resource.name}"
