"""Carries out a plan's actions, in order; each is idempotent and refused when the world moved.

An object that is gone or is another one by now means that the plan was made for another world:
the rest is left undone, and WorldMoved tells the caller to look again. Other refusals of the apiserver are errors.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from imageedit_operator.core.actions import (
    Action,
    ApplyBudget,
    ApplyClaimTemplate,
    ApplyService,
    ApplyTemplate,
    CreateDeployment,
    CreateJob,
    DeleteBudget,
    DeleteDeployment,
    DeleteJob,
    DeletePod,
    DrainPod,
    LabelDeployment,
    PostEvent,
    ScaleDeployment,
    SetDeletionCost,
    SetGate,
)
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.errors import ApiError, WorldMoved
from imageedit_operator.kube.client import FIELD_MANAGER, TEMPLATE_MANAGER, Kube, Manifest
from imageedit_operator.kube.kinds import BUDGETS, CLAIM_TEMPLATES, DEPLOYMENTS, EVENTS, JOBS, PODS, SERVICES, Resource
from imageedit_operator.kube.parsing import DELETION_COST, WARM_GATE, foreign_owner, timestamp
from imageedit_operator.kube.warmz import PROBES_PORT
from imageedit_operator.workqueue import Key

logger = logging.getLogger(__name__)

DRAIN_TIMEOUT_S = 3.0
EVENT_BUCKET_S = 600
LONGEST_NOTE_BYTES = 1024
"""The apiserver counts bytes, and kubelets, schedulers and models speak any language."""

MOVES_CARDS = (ScaleDeployment, CreateDeployment, DeleteDeployment, DeletePod)

WRITES_WHOLE = (ApplyService, ApplyClaimTemplate, ApplyBudget, CreateDeployment, ApplyTemplate, CreateJob)


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The resource that the actions belong to."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def describe(action: Action) -> str:
    """The action for the log: its values, of a manifest only the name."""
    if isinstance(
        action, ApplyService | ApplyClaimTemplate | ApplyBudget | CreateDeployment | ApplyTemplate | CreateJob
    ):
        return f"{type(action).__name__}(name={action.manifest['metadata']['name']!r})"
    return repr(action)


class Executor:
    """Writes to one cluster; `clock` is UTC epoch seconds.

    `on_applied` gets the Service and the budget as they are stored, with the resource that they belong to.
    """

    def __init__(
        self,
        kube: Kube,
        http: aiohttp.ClientSession,
        *,
        clock: Callable[[], float],
        probes_port: int = PROBES_PORT,
        on_applied: Callable[[Resource, Key, Manifest], None] = lambda _kind, _resource, _stored: None,
    ) -> None:
        self._kube = kube
        self._http = http
        self._clock = clock
        self._probes_port = probes_port
        self._on_applied = on_applied

    async def execute(self, action: Action, subject: Subject, pods: Mapping[str, ObservedPod]) -> None:
        """One action; `pods` by uid are those that the plan saw. Raises WorldMoved or ApiError."""
        try:
            await self._carry_out(action, subject, pods)
        except ApiError as error:
            if error.conflict or error.not_found:
                raise WorldMoved(f"{type(action).__name__}: {error.message}") from error
            raise

    def _carry_out(  # noqa: PLR0911, PLR0912 - one return an action
        self, action: Action, subject: Subject, pods: Mapping[str, ObservedPod]
    ) -> Awaitable[object]:
        namespace, kube = subject.namespace, self._kube
        match action:
            case ApplyService(manifest=manifest, uid=uid):
                return self._apply_service(subject, manifest, uid=uid)
            case ApplyClaimTemplate(manifest=manifest):
                return kube.apply(CLAIM_TEMPLATES, namespace, manifest, uid="")
            case ApplyBudget(manifest=manifest, uid=uid):
                return self._apply(BUDGETS, subject, manifest, uid=uid)
            case DeleteBudget(name=name, uid=uid, resource_version=version):
                return kube.delete(BUDGETS, namespace, name, uid=uid, resource_version=version)
            case CreateDeployment(manifest=manifest):
                return self._create_deployment(subject, manifest)
            case ApplyTemplate(manifest=manifest):
                return kube.apply_beside(DEPLOYMENTS, namespace, manifest, manager=TEMPLATE_MANAGER, dry_run=False)
            case ScaleDeployment(name=name, uid=uid, resource_version=version, replicas=replicas):
                body = {"metadata": {"uid": uid, "resourceVersion": version}, "spec": {"replicas": replicas}}
                return kube.patch(DEPLOYMENTS, namespace, name, body)
            case LabelDeployment(name=name, uid=uid, labels=labels):
                return kube.patch(DEPLOYMENTS, namespace, name, {"metadata": {"uid": uid, "labels": dict(labels)}})
            case DeleteDeployment(name=name, uid=uid, resource_version=version):
                return kube.delete(DEPLOYMENTS, namespace, name, uid=uid, resource_version=version)
            case SetGate(pod=name):
                body = gate_patch(action, pods.get(action.uid), self._clock())
                return kube.patch(PODS, namespace, name, body, strategic=True, subresource="status")
            case DrainPod(ip=ip, uid=uid, pod=name):
                return self._drain(ip, uid, f"{namespace}/{name}")
            case SetDeletionCost(pod=name, uid=uid, cost=cost):
                annotation = {"metadata": {"uid": uid, "annotations": {DELETION_COST: str(cost)}}}
                return kube.patch(PODS, namespace, name, annotation)
            case DeletePod(pod=name, uid=uid):
                return kube.delete(PODS, namespace, name, uid=uid)
            case CreateJob(manifest=manifest):
                return kube.create(JOBS, namespace, manifest)
            case DeleteJob(name=name, uid=uid):
                return kube.delete(JOBS, namespace, name, uid=uid)
            case PostEvent():
                return self._post(action, subject)

    # An apply puts our port beside one that somebody gave another number, and two of one name are refused.
    async def _apply_service(self, subject: Subject, manifest: Mapping[str, Any], *, uid: str) -> None:
        try:
            await self._apply(SERVICES, subject, manifest, uid=uid)
        except ApiError as error:
            if not uid or not any(field.startswith("spec.ports") for field in error.fields):
                raise
            ports = {"metadata": {"uid": uid}, "spec": {"ports": manifest["spec"]["ports"]}}
            await self._kube.patch(SERVICES, subject.namespace, manifest["metadata"]["name"], ports)
            await self._apply(SERVICES, subject, manifest, uid=uid)

    async def _apply(self, kind: Resource, subject: Subject, manifest: Mapping[str, Any], *, uid: str) -> None:
        stored = await self._kube.apply(kind, subject.namespace, manifest, uid=uid)
        self._on_applied(kind, Key(subject.namespace, subject.name), stored)

    async def _create_deployment(self, subject: Subject, manifest: Mapping[str, Any]) -> None:
        """Never over what is there: a revision's template is written once and never again.

        Who POSTs owns the apiserver's defaults too, and each of them would be a conflict with `spec.template`.
        """
        try:
            await self._kube.apply(DEPLOYMENTS, subject.namespace, manifest, uid="")
        except ApiError as error:
            if not error.conflict:
                raise
            name = manifest["metadata"]["name"]
            owner = foreign_owner(await self._kube.get(DEPLOYMENTS, subject.namespace, name), owner_uid=subject.uid)
            raise WorldMoved(
                f"Deployment {name} exists already" + (f" and belongs to {owner}" if owner else "")
            ) from error

    async def _drain(self, ip: str, uid: str, pod: str) -> None:
        """A pod that does not listen is asked again by the next plan, so a failure is only logged."""
        host = f"[{ip}]" if ":" in ip else ip
        url = f"http://{host}:{self._probes_port}/drain"
        headers = {"Authorization": f"Bearer {uid}"}
        timeout = aiohttp.ClientTimeout(total=DRAIN_TIMEOUT_S)
        try:
            async with self._http.post(url, headers=headers, timeout=timeout) as answer:
                if answer.status != 202:
                    logger.warning("drain of %s was answered with %s", pod, answer.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            logger.warning("drain of %s did not reach it: %s", pod, str(error) or "no answer in time")

    async def _post(self, event: PostEvent, subject: Subject) -> None:
        """An Event tells a story to people: that one is missing must not hold up the work."""
        try:
            await self._kube.create(EVENTS, subject.namespace, event_manifest(event, subject, self._clock()))
        except ApiError as error:
            if not error.conflict:  # the same one was posted moments ago
                logger.warning("event %s could not be posted: %s", event.reason, error)


def gate_patch(action: SetGate, seen: ObservedPod | None, now: float) -> dict[str, Any]:
    """The strategic merge patch of the pod's status; merges by condition type, so the others stay.

    The uid makes the apiserver refuse when the name belongs to another pod by now.
    `lastTransitionTime` moves with the value and with the reason: a drain is timed from it, and
    begins on pods whose gate is closed already.
    """
    kept = seen is not None and seen.gate == action.value and seen.gate_reason == action.reason and seen.gate_since > 0
    since = seen.gate_since if seen is not None and kept else now
    condition = {
        "type": WARM_GATE,
        "status": "True" if action.value else "False",
        "reason": action.reason,
        "message": action.message,
        "lastTransitionTime": timestamp(since),
    }
    return {"metadata": {"uid": action.uid}, "status": {"conditions": [condition]}}


def event_manifest(event: PostEvent, subject: Subject, now: float) -> dict[str, Any]:
    """An Event whose name repeats for the same words on the same occasion within ten minutes: it exists once."""
    bucket = str(int(now) // EVENT_BUCKET_S)
    words = "\0".join((subject.uid, event.type, event.reason, event.message, event.occasion, bucket))
    digest = hashlib.sha256(words.encode()).hexdigest()[:16]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name}.{digest}", "namespace": subject.namespace},
        "eventTime": timestamp(now).replace("Z", ".000000Z"),
        "type": event.type,
        "reason": event.reason,
        "note": event.message.encode()[:LONGEST_NOTE_BYTES].decode(errors="ignore"),
        "action": event.reason,
        "reportingController": FIELD_MANAGER,
        "reportingInstance": FIELD_MANAGER,
        "regarding": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        },
    }
