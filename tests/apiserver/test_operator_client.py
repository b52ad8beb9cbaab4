"""The client and the executor against a real apiserver: what it does with our requests, not what we think."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    deployment,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
    pod,
)
from imageedit_operator.core import manifests
from imageedit_operator.core.actions import (
    Action,
    ApplyService,
    CreateDeployment,
    DeleteDeployment,
    DeletePod,
    PostEvent,
    ScaleDeployment,
    SetDeletionCost,
    SetGate,
)
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.errors import ApiError, WorldMoved
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import HOLDS_CARDS, CardBook
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.connection import connect
from imageedit_operator.kube.execute import Executor, Subject
from imageedit_operator.kube.kinds import DEPLOYMENTS, EVENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.parsing import parse_pod
from imageedit_operator.kube.status import StatusWriter
from imageedit_operator.workqueue import Key
from localcluster.controlplane import ControlPlane

NOW = 1796007600.0  # 2026-11-30T03:00:00Z
WRONG_UID = "00000000-0000-0000-0000-000000000000"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:  # noqa: F811
    """A client as the admin."""
    async with client(plane) as connected:
        yield connected


@pytest.fixture
async def namespace(kube: KubeClient) -> str:
    """A namespace of the test's own."""
    return await new_namespace(kube)


def service(name: str, *, selector: dict[str, str]) -> Manifest:
    """A Service with one port."""
    spec = {"selector": selector, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


async def execute(kube: KubeClient, namespace: str, action: Action, *, uid: str = "u") -> None:
    """One action for a resource named `edit`."""
    subject = Subject(
        api_version="imageedit.dev/v1alpha1", kind="ImageEditDeployment", namespace=namespace, name="edit", uid=uid
    )
    async with aiohttp.ClientSession() as http:
        await Executor(kube, http, clock=lambda: NOW).execute(action, subject, {})


async def test_apply_creates_once_and_changes_nothing_the_second_time(kube: KubeClient, namespace: str) -> None:
    first = await kube.apply(DEPLOYMENTS, namespace, deployment("d"))
    second = await kube.apply(DEPLOYMENTS, namespace, deployment("d"))
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    managers = [(entry["manager"], entry["operation"]) for entry in second["metadata"]["managedFields"]]
    assert managers == [("imageedit-operator", "Apply")]


@pytest.mark.parametrize("kind", [IMAGE_EDIT_DEPLOYMENTS, DEPLOYMENTS])
async def test_an_item_of_a_list_is_what_a_read_of_it_gives(kube: KubeClient, namespace: str, kind: Resource) -> None:
    stored = await create_resource(kube, namespace) if kind == IMAGE_EDIT_DEPLOYMENTS else None
    stored = stored or await kube.create(kind, namespace, deployment("d", labels={"a": "b"}))
    (listed,) = await kube.list_all(kind, namespace)
    assert listed == await kube.get(kind, namespace, stored["metadata"]["name"])


@pytest.mark.parametrize("kind", [IMAGE_EDIT_DEPLOYMENTS, DEPLOYMENTS])
async def test_a_bare_list_has_metadata_alone(kube: KubeClient, namespace: str, kind: Resource) -> None:
    stored = await create_resource(kube, namespace) if kind == IMAGE_EDIT_DEPLOYMENTS else None
    stored = stored or await kube.create(kind, namespace, deployment("d", labels={"a": "b"}))
    (listed,) = [item async for page in kube.pages(kind, namespace, bare=True) for item in page]
    assert listed["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    assert listed["metadata"]["uid"] == stored["metadata"]["uid"]
    assert listed["metadata"].get("labels") == stored["metadata"].get("labels")
    assert not {"spec", "status"} & listed.keys()


async def test_apply_takes_back_a_field_that_somebody_changed(
    kube: KubeClient,
    namespace: str,
    plane: ControlPlane,  # noqa: F811
) -> None:
    service = manifests.service(parse(await create_resource(kube, namespace)))
    await execute(kube, namespace, ApplyService(manifest=service))
    uid = (await kube.get(SERVICES, namespace, "edit"))["metadata"]["uid"]
    kubectl(plane, "-n", namespace, "patch", "service", "edit", "--type=merge", "-p", '{"spec":{"selector":{"a":"b"}}}')
    await execute(kube, namespace, ApplyService(manifest=service, uid=uid))
    stored = await kube.get(SERVICES, namespace, "edit")
    assert stored["spec"]["selector"]["imageedit.dev/deployment"] == "edit"


async def test_an_apply_for_a_new_object_is_refused_over_one_that_is_there(kube: KubeClient, namespace: str) -> None:
    foreign = service("edit", selector={"app": "other"})
    await kube.create(SERVICES, namespace, foreign)
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, ApplyService(manifest=service("edit", selector={"app": "ours"})))
    assert (await kube.get(SERVICES, namespace, "edit"))["spec"]["selector"] == {"app": "other"}


@pytest.mark.parametrize("there", [True, False])
async def test_an_apply_over_an_object_is_refused_when_it_is_another_one_or_gone(
    kube: KubeClient, namespace: str, there: bool
) -> None:
    if there:
        await kube.create(SERVICES, namespace, service("edit", selector={"app": "other"}))
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, ApplyService(manifest=service("edit", selector={"app": "ours"}), uid="gone"))
    found = await kube.list_all(SERVICES, namespace)
    assert [item["spec"]["selector"] for item in found] == ([{"app": "other"}] if there else [])


async def test_a_field_that_vanishes_from_what_is_applied_leaves_a_deployment_that_the_operator_created(
    kube: KubeClient, namespace: str
) -> None:
    made = deployment("d")
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    pod["nodeSelector"] = {"disk": "fast"}
    await execute(kube, namespace, CreateDeployment(manifest=made))
    del pod["containers"][0]["env"], pod["nodeSelector"]
    stored = await kube.apply(DEPLOYMENTS, namespace, made)
    left = stored["spec"]["template"]["spec"]
    assert ("env" in left["containers"][0], "nodeSelector" in left) == (False, False)


async def test_what_was_applied_matches_what_is_observed(kube: KubeClient, namespace: str) -> None:
    manifest = await create_resource(kube, namespace)
    resource = parse(manifest)
    await execute(kube, namespace, ApplyService(manifest=manifests.service(resource)), uid=resource.uid)
    created = CreateDeployment(manifest=manifests.deployment(resource, revision_hash(resource)))
    await execute(kube, namespace, created, uid=resource.uid)
    async with aiohttp.ClientSession() as http:
        cards, budgets = CardBook(kube, clock=lambda: 0.0), BudgetBook(kube, clock=lambda: 0.0)
        seen = await Observer(kube, http, cards, budgets).observe(resource, manifest)
    assert (seen.service_matches, seen.service_foreign_owner) == (True, "")
    assert [(item.owned, item.replicas, item.revision_hash) for item in seen.deployments] == [
        (True, 0, revision_hash(resource))
    ]


async def test_a_deployment_is_created_only_once(kube: KubeClient, namespace: str) -> None:
    await execute(kube, namespace, CreateDeployment(manifest=deployment("d")))
    other = deployment("d")
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "server:2"
    with pytest.raises(WorldMoved, match="exists already"):
        await execute(kube, namespace, CreateDeployment(manifest=other))
    stored = await kube.get(DEPLOYMENTS, namespace, "d")
    assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == "server:1"


def scale(stored: dict[str, dict[str, str]], **changes: str) -> ScaleDeployment:
    """To three replicas, as planned on this Deployment."""
    seen = {"uid": stored["metadata"]["uid"], "resource_version": stored["metadata"]["resourceVersion"], **changes}
    return ScaleDeployment(name="d", replicas=3, why="w", **seen)


async def test_a_scale_of_the_deployment_that_was_seen_is_carried_out(kube: KubeClient, namespace: str) -> None:
    stored = await kube.create(DEPLOYMENTS, namespace, deployment("d"))
    await execute(kube, namespace, scale(stored))
    assert (await kube.get(DEPLOYMENTS, namespace, "d"))["spec"]["replicas"] == 3


@pytest.mark.parametrize("change", [{"uid": WRONG_UID}, {"resource_version": "1"}])
async def test_a_scale_of_another_deployment_is_refused(
    kube: KubeClient, namespace: str, change: dict[str, str]
) -> None:
    stored = await kube.create(DEPLOYMENTS, namespace, deployment("d"))
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, scale(stored, **change))
    assert (await kube.get(DEPLOYMENTS, namespace, "d"))["spec"]["replicas"] == 0


@pytest.mark.parametrize("change", [{"uid": WRONG_UID}, {"resource_version": "1"}])
async def test_a_deployment_that_is_another_one_now_is_not_deleted(
    kube: KubeClient, namespace: str, change: dict[str, str]
) -> None:
    stored = await kube.create(DEPLOYMENTS, namespace, deployment("d"))
    seen = {"uid": stored["metadata"]["uid"], "resource_version": stored["metadata"]["resourceVersion"]}
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, DeleteDeployment(name="d", **(seen | change)))
    await execute(kube, namespace, DeleteDeployment(name="d", **seen))
    with pytest.raises(ApiError, match="not found"):
        await kube.get(DEPLOYMENTS, namespace, "d")


async def test_a_pod_of_the_same_name_is_not_deleted_for_another(kube: KubeClient, namespace: str) -> None:
    stored = await kube.create(PODS, namespace, pod("p"))
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, DeletePod(pod="p", uid=WRONG_UID, why="w"))
    await execute(kube, namespace, DeletePod(pod="p", uid=stored["metadata"]["uid"], why="w"))
    with pytest.raises(ApiError, match="not found"):
        await kube.get(PODS, namespace, "p")


async def test_the_gate_is_written_beside_the_other_conditions(kube: KubeClient, namespace: str) -> None:
    stored = await kube.create(PODS, namespace, pod("p"))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"}]}}
    await kube.patch(PODS, namespace, "p", ready, strategic=True, subresource="status")
    uid = stored["metadata"]["uid"]
    await execute(kube, namespace, SetGate(pod="p", uid=uid, value=True, reason="Warm", message="container c: warm"))
    seen = parse_pod(await kube.get(PODS, namespace, "p"))
    assert (seen.gate, seen.gate_reason, seen.gate_message) == (True, "Warm", "container c: warm")
    assert seen.gate_since == NOW
    conditions = (await kube.get(PODS, namespace, "p"))["status"]["conditions"]
    assert {condition["type"] for condition in conditions} == {"Ready", "imageedit.dev/warm"}


async def test_the_gate_of_another_pod_of_the_same_name_is_refused(kube: KubeClient, namespace: str) -> None:
    await kube.create(PODS, namespace, pod("p"))
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, SetGate(pod="p", uid=WRONG_UID, value=True, reason="Warm", message="m"))
    assert parse_pod(await kube.get(PODS, namespace, "p")).gate is None


async def test_the_deletion_cost_is_an_annotation(kube: KubeClient, namespace: str) -> None:
    stored = await kube.create(PODS, namespace, pod("p"))
    await execute(kube, namespace, SetDeletionCost(pod="p", uid=stored["metadata"]["uid"], cost=-1000))
    assert parse_pod(await kube.get(PODS, namespace, "p")).deletion_cost == -1000
    with pytest.raises(WorldMoved):
        await execute(kube, namespace, SetDeletionCost(pod="p", uid=WRONG_UID, cost=1))


async def test_an_event_is_stored_once_and_regards_the_resource(kube: KubeClient, namespace: str) -> None:
    stored = await create_resource(kube, namespace)
    event = PostEvent(type="Normal", reason="Scaled", message="1 -> 2: 5 requests")
    for _ in range(2):
        await execute(kube, namespace, event, uid=stored["metadata"]["uid"])
    (found,) = await kube.list_all(EVENTS, namespace)
    assert (found["reason"], found["note"], found["regarding"]["name"]) == ("Scaled", "1 -> 2: 5 requests", "edit")


async def test_kubectl_describe_shows_the_event(
    kube: KubeClient,
    namespace: str,
    plane: ControlPlane,  # noqa: F811
) -> None:
    stored = await create_resource(kube, namespace)
    event = PostEvent(type="Warning", reason="PlannedOutage", message="about 40 s")
    await execute(kube, namespace, event, uid=stored["metadata"]["uid"])
    assert "PlannedOutage" in kubectl(plane, "-n", namespace, "describe", "imageeditdeployment", "edit")


async def test_a_status_is_written_whole_and_shrinks(kube: KubeClient, namespace: str) -> None:
    await create_resource(kube, namespace)
    writer, key = StatusWriter(kube), Key(namespace, "edit")

    async def write(status: dict[str, Any]) -> bool:
        stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
        return await writer.write(key, stored["metadata"]["resourceVersion"], stored.get("status") or {}, status)

    first = {"phase": "Starting", "ready": "0/1", "cards": {"known": False, "message": "m"}}
    assert [await write(first), await write(first), await write({"phase": "Serving"})] == [True, False, True]
    assert (await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit"))["status"] == {"phase": "Serving"}


async def test_a_status_for_an_older_version_of_the_resource_is_refused(kube: KubeClient, namespace: str) -> None:
    stored = await create_resource(kube, namespace)
    await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", {"spec": {"replicas": 2}})
    with pytest.raises(ApiError) as refusal:
        await StatusWriter(kube).write(
            Key(namespace, "edit"), stored["metadata"]["resourceVersion"], {}, {"phase": "Serving"}
        )
    assert refusal.value.conflict


async def test_a_long_list_comes_page_by_page(plane: ControlPlane, kube: KubeClient, namespace: str) -> None:  # noqa: F811
    for number in range(5):
        await kube.create(PODS, namespace, pod(f"p{number}"))
    async with client(plane, page_size=2) as small:
        pages = [len(page) async for page in small.pages(PODS, namespace)]
        everything = await small.list_all(PODS, namespace)
    assert pages == [2, 2, 1]
    assert len(everything) == 5


async def test_labels_select(kube: KubeClient, namespace: str) -> None:
    await kube.create(PODS, namespace, pod("ours", labels={"imageedit.dev/deployment": "edit"}))
    await kube.create(PODS, namespace, pod("other"))
    found = await kube.list_all(PODS, namespace, labels="imageedit.dev/deployment=edit")
    assert [item["metadata"]["name"] for item in found] == ["ours"]


async def test_the_ledgers_field_selector_finds_pods_that_hold_cards(kube: KubeClient, namespace: str) -> None:
    await kube.create(PODS, namespace, pod("unscheduled"))
    await kube.create(PODS, namespace, pod("holds", node="node-1"))
    await kube.create(PODS, namespace, pod("over", node="node-1"))
    over = {"status": {"phase": "Failed"}}
    await kube.patch(PODS, namespace, "over", over, strategic=True, subresource="status")
    pages = [item async for page in kube.pages(PODS, namespace, fields=HOLDS_CARDS) for item in page]
    assert [item["metadata"]["name"] for item in pages] == ["holds"]


async def test_a_kind_that_is_not_installed_is_not_served(kube: KubeClient) -> None:
    assert await kube.serves(IMAGE_EDIT_DEPLOYMENTS)
    assert not await kube.serves(Resource(group="imageedit.dev", version="v1alpha1", plural="others"))
    assert not await kube.serves(Resource(group="nobody.dev", version="v1", plural="others"))


async def test_a_refusal_carries_the_apiservers_own_words(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(ApiError) as refusal:
        await create_resource(kube, namespace, replicas=-1)
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
    assert "spec.replicas" in refusal.value.message


async def test_an_apiserver_that_is_not_there_is_an_error_without_a_status(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    config = tmp_path_factory.mktemp("nobody") / "kubeconfig"
    config.write_text(
        '{"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"u","user":{}}],'
        '"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}'
    )
    seen: list[tuple[str, str]] = []
    async with connect(str(config), timeout_s=2, on_request=lambda verb, code: seen.append((verb, code))) as kube:
        with pytest.raises(ApiError) as refusal:
            await kube.list_all(PODS)
    assert (refusal.value.status, refusal.value.reason) == (0, "Unreachable")
    assert seen == [("list", "error")]
