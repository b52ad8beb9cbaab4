"""Events become keys, and kopf is set up to write nothing and to keep going."""

from __future__ import annotations

from dataclasses import fields
from itertools import islice
from typing import Any

import kopf
import pytest

from imageedit_operator.core.manifests import OWNER_UID, RENDERED
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.kopf_setup import Scope, build_registry, build_settings
from imageedit_operator.kube.client import FIELD_MANAGER, TEMPLATE_MANAGER
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.kube.parsing import parse_deployment, parse_pod
from imageedit_operator.wake_ups import SELECTOR, SOON_S, Sights, keys_for
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import CARD, RESOURCE_UID, custom_resource, deployment, owner, pod

EDIT = (Key("team", "edit"),)


def service(*, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    """The Service of the resource."""
    labels = {"imageedit.dev/deployment": "edit"}
    about: dict[str, Any] = {"name": "edit", "namespace": "team", "uid": "uid-s", "resourceVersion": "7"}
    about |= {"labels": labels, "ownerReferences": [owner()], **metadata}
    return {"metadata": about, "spec": spec or {"selector": {"app": "edit"}}, "status": status or {}}


@pytest.mark.parametrize(
    ("resource", "manifest", "keys"),
    [
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), EDIT),
        (DEPLOYMENTS, deployment(), EDIT),
        (PODS, pod(), EDIT),
        (SERVICES, service(), EDIT),
        (SERVICES, service(name="another"), ()),
        (DEPLOYMENTS, {"metadata": {"name": "x", "namespace": "team"}}, ()),
        (PODS, {"metadata": {"name": "x", "namespace": "team", "labels": {"app": "y"}}}, ()),
        (PODS, {"metadata": {"name": "x", "labels": {"imageedit.dev/deployment": "edit"}}}, ()),
        (IMAGE_EDIT_DEPLOYMENTS, {}, ()),
    ],
)
def test_an_event_wakes_the_resource_that_it_belongs_to(
    resource: Resource, manifest: dict[str, Any], keys: tuple[Key, ...]
) -> None:
    assert keys_for(resource, manifest) == keys


def delays(resource: Resource, *manifests: dict[str, Any]) -> list[float | None]:
    """When each of these versions of one object asks for a look."""
    sights = Sights()
    return [sights.delay_s(resource, manifest, gone=False) for manifest in manifests]


def changed(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "99", **metadata}}


PENDING = pod(spec={"nodeName": ""}, podIP="", phase="Pending", containerStatuses=[])
LOADING = [{"name": "server", "state": {"waiting": {"reason": "ContainerCreating"}}}]
BROKEN = [{"name": "server", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
GATE = {"type": "imageedit.dev/warm", "status": "True"}
READY = {"type": "Ready", "status": "True"}
APPLIED = [
    {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:a": {}}}},
    }
]
NO_PLACE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("resource", "before", "after", "delay_s"),
    [
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(status={"phase": "x"})), None),
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(), generation=2), 0.0),
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(), annotations={"a": "b"}), 0.0),
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(), deletionTimestamp="t"), 0.0),
        (DEPLOYMENTS, deployment(), changed(deployment()), None),
        (DEPLOYMENTS, deployment(), changed(deployment(), generation=2), SOON_S),
        (DEPLOYMENTS, deployment(), changed(deployment(), ownerReferences=[]), SOON_S),
        (DEPLOYMENTS, deployment(), changed(deployment(), labels={}), SOON_S),
        (PODS, pod(), changed(pod()), None),
        (PODS, PENDING, changed(pod(phase="Pending", podIP="", containerStatuses=LOADING)), SOON_S),
        (PODS, PENDING, changed(pod(phase="Pending", podIP="", containerStatuses=BROKEN)), 0.0),
        (PODS, PENDING, changed({**PENDING, "status": {"conditions": [NO_PLACE]}}), 0.0),
        (PODS, PENDING, changed(pod()), 0.0),
        (PODS, pod(), changed(pod(conditions=[GATE])), SOON_S),
        (PODS, pod(conditions=[GATE]), changed(pod(conditions=[GATE, READY])), 0.0),
        (PODS, pod(), changed(pod(), deletionTimestamp="2026-11-30T03:00:00Z"), 0.0),
        (PODS, pod(), changed(pod(phase="Failed")), 0.0),
        (PODS, pod(), changed(pod(containerStatuses=[])), 0.0),
        (SERVICES, service(), changed(service(status={"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}})), None),
        (SERVICES, service(), changed(service(finalizers=["service.kubernetes.io/load-balancer-cleanup"])), None),
        (SERVICES, service(), changed(service(spec={"selector": {"app": "other"}})), SOON_S),
        (SERVICES, service(), changed(service(labels={})), SOON_S),
        (SERVICES, service(), changed(service(annotations={"a": "b"})), SOON_S),
        (SERVICES, service(), changed(service(ownerReferences=[])), SOON_S),
        (SERVICES, service(), changed(service(managedFields=APPLIED)), SOON_S),
    ],
)
def test_an_event_asks_for_a_look_as_soon_as_somebody_waits_for_it(
    resource: Resource, before: dict[str, Any], after: dict[str, Any], delay_s: float | None
) -> None:
    assert delays(resource, before, after)[1] == delay_s


@pytest.mark.parametrize(
    ("resource", "manifest", "delay_s"),
    [
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), 0.0),
        (DEPLOYMENTS, deployment(), SOON_S),
        (PODS, PENDING, SOON_S),
        (PODS, pod(), 0.0),
        (SERVICES, service(), SOON_S),
    ],
)
def test_what_is_seen_first_is_news(resource: Resource, manifest: dict[str, Any], delay_s: float) -> None:
    assert delays(resource, manifest) == [delay_s]


@pytest.mark.parametrize(
    ("resource", "manifest"),
    [(IMAGE_EDIT_DEPLOYMENTS, custom_resource()), (DEPLOYMENTS, deployment()), (PODS, pod()), (SERVICES, service())],
)
def test_what_is_gone_is_looked_at_once_and_forgotten(resource: Resource, manifest: dict[str, Any]) -> None:
    sights = Sights()
    first = sights.delay_s(resource, manifest, gone=False)
    assert sights.delay_s(resource, manifest, gone=True) == 0.0
    assert sights.delay_s(resource, manifest, gone=False) == first


def written_by(manager: str, operation: str = "Update") -> list[dict[str, Any]]:
    """What the apiserver records of somebody who wrote the replicas and the image of a Deployment."""
    template: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"server"}': {"f:image": {}}}}}
    fields = {"f:spec": {"f:replicas": {}, "f:template": template}}
    return [{"manager": manager, "operation": operation, "fieldsV1": fields}]


def condition(kind: str, status: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "status": status, **more}]


def container(**changes: Any) -> list[dict[str, Any]]:
    """The status of a server container that runs."""
    return [{"name": "server", "containerID": "containerd://c1", "state": {"running": {}}, **changes}]


def exited(**last: Any) -> list[dict[str, Any]]:
    return container(lastState={"terminated": last})


WAITS = {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}
OTHER_WORDS = {"waiting": {"reason": "CrashLoopBackOff", "message": "n"}}
SICK = [{"name": CARD, "resources": [{"resourceID": "Ascend910-1", "health": "Unhealthy"}]}]
ASKS = {"containers": [{"name": "server", "resources": {"requests": {CARD: "1"}}}], "nodeName": "node-1"}
SINCE = {"lastTransitionTime": "2026-11-30T03:00:00Z"}
LATER = {"lastTransitionTime": "2026-11-30T03:01:00Z"}
ENDING = {"deletionTimestamp": "2026-11-30T03:00:00Z"}
UNPLACED = {"reason": "Unschedulable"}
REFUSED = condition("ReplicaFailure", "True", message="quota")

POD_FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "uid": (pod(), pod(metadata={"uid": "another"})),
    "revision_hash": (pod(), pod(metadata={"labels": {"imageedit.dev/revision": "b"}})),
    "node": (pod(), pod(spec={"nodeName": "node-2"})),
    "ip": (pod(), pod(podIP="10.0.0.8")),
    "phase": (pod(), pod(phase="Failed")),
    "created_at": (pod(), pod(metadata={"creationTimestamp": "2026-11-30T03:01:00Z"})),
    "terminating": (pod(), pod(metadata=ENDING)),
    "ends_by": (pod(metadata=ENDING), pod(metadata={"deletionTimestamp": "2026-11-30T03:01:00Z"})),
    "running": (pod(metadata=ENDING), pod(metadata=ENDING, containerStatuses=container(state={}))),
    "unschedulable": (pod(), pod(conditions=condition("PodScheduled", "False", **UNPLACED))),
    "unschedulable_since": (
        pod(conditions=condition("PodScheduled", "False", **UNPLACED, **SINCE)),
        pod(conditions=condition("PodScheduled", "False", **UNPLACED, **LATER)),
    ),
    "unschedulable_message": (
        pod(conditions=condition("PodScheduled", "False", **UNPLACED, message="m")),
        pod(conditions=condition("PodScheduled", "False", **UNPLACED, message="n")),
    ),
    "claims": (pod(), pod(spec={"volumes": [{"name": "m", "persistentVolumeClaim": {"claimName": "models"}}]})),
    "ready": (pod(), pod(conditions=[READY])),
    "container_id": (pod(), pod(containerStatuses=container(containerID="containerd://c2"))),
    "started": (pod(), pod(containerStatuses=container(state={}))),
    "started_at": (pod(), pod(containerStatuses=container(state={"running": {"startedAt": "2026-11-30T03:00:00Z"}}))),
    "restarts": (pod(), pod(containerStatuses=container(restartCount=1))),
    "waiting_reason": (pod(), pod(containerStatuses=container(state=WAITS))),
    "waiting_message": (
        pod(containerStatuses=container(state=WAITS)),
        pod(containerStatuses=container(state=OTHER_WORDS)),
    ),
    "last_exit_code": (pod(), pod(containerStatuses=exited(exitCode=1))),
    "last_exit_reason": (
        pod(containerStatuses=exited(exitCode=137, reason="Error")),
        pod(containerStatuses=exited(exitCode=137, reason="OOMKilled")),
    ),
    "last_exit_message": (
        pod(containerStatuses=exited(exitCode=1)),
        pod(containerStatuses=exited(exitCode=1, message="m")),
    ),
    "failed_reason": (pod(phase="Failed"), pod(phase="Failed", reason="Evicted")),
    "failed_message": (pod(phase="Failed"), pod(phase="Failed", message="m")),
    "gate": (pod(), pod(conditions=[GATE])),
    "gate_reason": (pod(conditions=[GATE]), pod(conditions=[{**GATE, "reason": "r"}])),
    "gate_message": (pod(conditions=[GATE]), pod(conditions=[{**GATE, "message": "m"}])),
    "gate_since": (pod(conditions=[GATE]), pod(conditions=[{**GATE, **SINCE}])),
    "deletion_cost": (
        pod(),
        pod(metadata={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}),
    ),
    "scheduled_at": (pod(), pod(conditions=condition("PodScheduled", "True", **SINCE))),
    "prepared_at": (pod(), pod(conditions=condition("PodReadyToStartContainers", "True", **SINCE))),
    "cards": (pod(), pod(spec=ASKS)),
    "held_cards": (pod(), pod(metadata={"annotations": {"huawei.com/AscendReal": "Ascend910-1"}})),
    "unhealthy_cards": (pod(), pod(containerStatuses=container(allocatedResourcesStatus=SICK))),
}
FILLED_IN = {"name", "sick_card", "sick_words", "expected_digest", "overdue_s", "lost", "report", "mount_words"}
"""Of a pod: its name never changes, the plan fills in five, and neither `/warmz` nor Events are of the object."""

DEPLOYMENT_FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "uid": (deployment(), changed(deployment(), uid="another")),
    "revision_hash": (deployment(), changed(deployment(), labels={"imageedit.dev/revision": "b"})),
    "replicas": (deployment(), deployment(replicas=2)),
    "created_at": (deployment(), changed(deployment(), creationTimestamp="2026-11-30T03:01:00Z")),
    "rendered": (deployment(), changed(deployment(), annotations={RENDERED: "other"})),
    "templated": (deployment(), changed(deployment(), managedFields=written_by(TEMPLATE_MANAGER, "Apply"))),
    "refused": (deployment(), {**deployment(), "status": {"conditions": REFUSED}}),
    "changed": (deployment(), changed(deployment(), managedFields=written_by("kubectl"))),
    "scaled_by": (deployment(), changed(deployment(), managedFields=written_by("kubectl"))),
    "owned": (deployment(), deployment(owners=[owner(uid="another")])),
    "foreign_owner": (deployment(owners=[]), deployment(owners=[{**owner(), "kind": "Team"}])),
}


def test_the_tables_name_every_field_that_is_read() -> None:
    assert POD_FIELDS.keys() | FILLED_IN == {field.name for field in fields(ObservedPod)}
    named = DEPLOYMENT_FIELDS.keys() | {"name", "resource_version", "labels_lost"}
    assert named == {field.name for field in fields(ObservedDeployment)}


@pytest.mark.parametrize("field", POD_FIELDS)
def test_no_event_on_what_is_read_of_a_pod_is_ignored(field: str) -> None:
    before, after = POD_FIELDS[field]
    assert getattr(parse_pod(before), field) != getattr(parse_pod(after), field)
    assert delays(PODS, before, after)[1] is not None


@pytest.mark.parametrize("field", DEPLOYMENT_FIELDS)
def test_no_event_on_what_is_read_of_a_deployment_is_ignored(field: str) -> None:
    before, after = DEPLOYMENT_FIELDS[field]
    one, other = (parse_deployment(raw, owner_uid=RESOURCE_UID) for raw in (before, after))
    assert getattr(one, field) != getattr(other, field)
    assert delays(DEPLOYMENTS, before, after)[1] is not None


def test_a_label_of_a_deployment_is_news_for_it_may_be_one_of_ours() -> None:
    assert delays(DEPLOYMENTS, deployment(), changed(deployment(), labels={}))[1] == SOON_S


@pytest.mark.parametrize("label", [OWNER_UID, "app"])
def test_a_label_of_a_pod_is_news_for_it_says_whose_the_pod_is_and_which_budgets_take_it(label: str) -> None:
    labels = pod()["metadata"]["labels"] | {label: "x"}
    assert delays(PODS, pod(), pod(metadata={"labels": labels}))[1] == SOON_S


def served(plural: str, group: str, version: str) -> kopf.Resource:
    """A kind as kopf finds it by discovery."""
    return kopf.Resource(group=group, version=version, plural=plural, namespaced=True)


@pytest.mark.parametrize(("plural", "group"), [("deployments", "apps"), ("pods", ""), ("services", "")])
def test_children_are_filtered_by_the_server(plural: str, group: str) -> None:
    selectors = build_settings().watching.label_selectors
    assert list(selectors.collect(served(plural, group, "v1"))) == [SELECTOR]


def test_our_own_kind_is_watched_whole() -> None:
    selectors = build_settings().watching.label_selectors
    assert list(selectors.collect(served("imageeditdeployments", "imageedit.dev", "v1alpha1"))) == []


def test_kopf_keeps_no_state_and_posts_no_events() -> None:
    settings = build_settings()
    assert (settings.posting.enabled, settings.peering.standalone, settings.scanning.disabled) == (False, True, True)
    assert settings.process.ultimate_exiting_timeout is None


def test_kopf_copies_and_compares_no_object() -> None:
    storage = build_settings().persistence.diffbase_storage
    body = kopf.Body(custom_resource())
    assert storage.build(body=body) == {}
    assert storage.fetch(body=body) is None


def test_kopf_retries_for_ever_with_bounded_pauses() -> None:
    pauses = list(islice(iter(build_settings().networking.error_backoffs), 50))
    assert len(pauses) == 50
    assert 0.75 <= pauses[0] <= 1.25
    assert all(22.5 <= pause <= 37.5 for pause in pauses[5:])


def test_only_event_handlers_are_registered() -> None:
    registry = build_registry(Scope(namespaces=(), kubeconfig=""), lambda _told: None)
    kinds = [
        served("imageeditdeployments", "imageedit.dev", "v1alpha1"),
        served("deployments", "apps", "v1"),
        served("pods", "", "v1"),
        served("services", "", "v1"),
    ]
    assert all(registry._watching.has_handlers(resource=kind) for kind in kinds)
    for others in (registry._changing, registry._spawning, registry._indexing):
        assert not any(others.has_handlers(resource=kind) for kind in kinds)
