"""Actions become requests, and refusals become one of two answers: look again, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from imageedit_operator.core.actions import (
    Action,
    ApplyClaimTemplate,
    ApplyService,
    CreateDeployment,
    CreateJob,
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
from imageedit_operator.kube.execute import Executor, Subject, describe, event_manifest, gate_patch
from imageedit_operator.kube.kinds import DEPLOYMENTS, PODS
from unit.operator_shell.builders import RESOURCE_UID, MemoryKube, cluster, deployment, pod
from unit.operator_shell.loopback import answering

NOW = 1796007600.0  # 2026-11-30T03:00:00Z
SUBJECT = Subject(
    api_version="imageedit.dev/v1alpha1", kind="ImageEditDeployment", namespace="team", name="edit", uid=RESOURCE_UID
)
GATE = SetGate(pod="p", uid="u", value=True, reason="Warm", message="container c1: warm")


async def execute(
    kube: MemoryKube,
    action: Action,
    *,
    http: aiohttp.ClientSession | None = None,
    port: int = 1,
    pods: Mapping[str, ObservedPod] | None = None,
) -> None:
    """One action against a cluster in memory."""
    if http is None:
        async with aiohttp.ClientSession() as session:
            await execute(kube, action, http=session, port=port, pods=pods)
        return
    await Executor(kube, http, clock=lambda: NOW, probes_port=port).execute(action, SUBJECT, pods or {})


async def test_a_service_is_applied() -> None:
    kube = cluster()
    await execute(kube, ApplyService(manifest={"metadata": {"name": "edit"}}))
    assert kube.writes() == [("apply", "services", "edit")]


async def test_a_job_is_created_and_never_written_over() -> None:
    kube = cluster()
    made = CreateJob(manifest={"metadata": {"name": "edit-prefetch-1"}}, place="n1")
    await execute(kube, made)
    with pytest.raises(WorldMoved):
        await execute(kube, made)
    assert kube.writes() == [("create", "jobs", "edit-prefetch-1")]
    assert describe(made) == "CreateJob(name='edit-prefetch-1')"


async def test_a_job_is_deleted_by_its_uid() -> None:
    kube = cluster()
    await execute(kube, DeleteJob(name="edit-prefetch-1", uid="u", why="no copy is wanted"))
    assert kube.writes() == [("delete", "jobs", "edit-prefetch-1")]


async def test_a_template_of_claims_is_applied() -> None:
    kube = cluster()
    await execute(kube, ApplyClaimTemplate(manifest={"metadata": {"name": "edit-1"}}))
    assert kube.writes() == [("apply", "resourceclaimtemplates", "edit-1")]


async def test_a_deployment_that_is_absent_is_created() -> None:
    kube = cluster()
    await execute(kube, CreateDeployment(manifest=deployment()))
    assert kube.writes() == [("apply", "deployments", "edit-abc")]


async def test_a_deployment_that_exists_is_never_written_again() -> None:
    kube = cluster((DEPLOYMENTS, deployment()))
    with pytest.raises(WorldMoved, match=r"exists already$"):
        await execute(kube, CreateDeployment(manifest=deployment()))
    assert kube.writes() == []


async def test_a_deployment_of_somebody_else_is_named() -> None:
    kube = cluster((DEPLOYMENTS, deployment(owners=[{"kind": "Team", "name": "x", "uid": "t", "controller": True}])))
    with pytest.raises(WorldMoved, match="belongs to Team x"):
        await execute(kube, CreateDeployment(manifest=deployment()))


async def test_a_scale_carries_uid_and_version() -> None:
    kube = cluster((DEPLOYMENTS, deployment()))
    await execute(kube, ScaleDeployment(name="edit-abc", uid="u1", resource_version="7", replicas=4, why="w"))
    assert kube.bodies == [{"metadata": {"uid": "u1", "resourceVersion": "7"}, "spec": {"replicas": 4}}]


async def test_labels_come_back_to_the_deployment_of_this_uid() -> None:
    kube = cluster((DEPLOYMENTS, deployment()))
    await execute(kube, LabelDeployment(name="edit-abc", uid="u1", labels={"a": "b"}))
    assert kube.bodies == [{"metadata": {"uid": "u1", "labels": {"a": "b"}}}]


async def test_a_deletion_cost_is_an_annotation_with_the_pods_uid() -> None:
    kube = cluster((PODS, pod("p")))
    await execute(kube, SetDeletionCost(pod="p", uid="u", cost=-100))
    annotations = {"controller.kubernetes.io/pod-deletion-cost": "-100"}
    assert kube.bodies == [{"metadata": {"uid": "u", "annotations": annotations}}]


@pytest.mark.parametrize(
    "action",
    [
        DeleteDeployment(name="edit-abc", uid="u", resource_version="7"),
        DeletePod(pod="p", uid="u", why="w"),
        ScaleDeployment(name="edit-abc", uid="u", resource_version="7", replicas=1, why="w"),
        SetDeletionCost(pod="p", uid="u", cost=1),
        LabelDeployment(name="edit-abc", uid="u", labels={"a": "b"}),
        GATE,
        ApplyService(manifest={"metadata": {"name": "edit"}}),
    ],
)
@pytest.mark.parametrize("status", [404, 409])
async def test_not_found_and_conflict_mean_that_the_world_moved(action: Action, status: int) -> None:
    refusal = ApiError(status=status, reason="Conflict", message="changed")
    kube = MemoryKube(refuse={"apply": refusal, "patch": refusal, "delete": refusal})
    with pytest.raises(WorldMoved, match=type(action).__name__):
        await execute(kube, action)


@pytest.mark.parametrize("status", [0, 403, 422, 429, 500])
async def test_another_refusal_is_an_error(status: int) -> None:
    kube = MemoryKube(refuse={"patch": ApiError(status=status, reason="R", message="m")})
    with pytest.raises(ApiError):
        await execute(kube, GATE)


def test_a_gate_that_changes_its_value_begins_now() -> None:
    patch = gate_patch(GATE, ObservedPod(name="p", uid="u", revision_hash="abc", gate=False, gate_since=5.0), NOW)
    assert patch["metadata"] == {"uid": "u"}
    assert patch["status"]["conditions"] == [
        {
            "type": "imageedit.dev/warm",
            "status": "True",
            "reason": "Warm",
            "message": "container c1: warm",
            "lastTransitionTime": "2026-11-30T03:00:00Z",
        }
    ]


@pytest.mark.parametrize(
    ("gate", "reason", "kept"),
    [(True, "Warm", True), (True, "Other", False), (False, "Warm", False), (None, "", False)],
)
def test_a_gate_that_says_the_same_keeps_its_time(gate: bool | None, reason: str, kept: bool) -> None:
    seen = ObservedPod(name="p", uid="u", revision_hash="abc", gate=gate, gate_reason=reason, gate_since=NOW - 3600)
    time = gate_patch(GATE, seen, NOW)["status"]["conditions"][0]["lastTransitionTime"]
    assert time == ("2026-11-30T02:00:00Z" if kept else "2026-11-30T03:00:00Z")


async def test_drain_is_a_post_with_the_pods_uid_as_its_token() -> None:
    seen: list[tuple[str, str, str]] = []

    async def server(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, request.headers["Authorization"]))
        return web.Response(status=202)

    async with answering(server) as (http, port):
        await execute(cluster(), DrainPod(pod="p", uid="u-1", ip="127.0.0.1"), http=http, port=port)
    assert seen == [("POST", "/drain", "Bearer u-1")]


async def test_a_drain_that_fails_is_left_to_the_next_pass() -> None:
    async def server(_: web.Request) -> web.Response:
        return web.Response(status=401)

    async with answering(server) as (http, port):
        await execute(cluster(), DrainPod(pod="p", uid="u-1", ip="127.0.0.1"), http=http, port=port)
        await execute(cluster(), DrainPod(pod="p", uid="u-1", ip="127.0.0.1"), http=http, port=1)


EVENT = PostEvent(type="Normal", reason="Scaled", message="2 -> 3: 7 requests")


def test_an_event_regards_the_resource() -> None:
    event = event_manifest(EVENT, SUBJECT, NOW)
    assert (event["type"], event["reason"], event["note"]) == ("Normal", "Scaled", "2 -> 3: 7 requests")
    assert event["regarding"]["uid"] == RESOURCE_UID
    assert event["eventTime"] == "2026-11-30T03:00:00.000000Z"


def test_the_same_words_soon_again_are_the_same_event() -> None:
    names = [event_manifest(EVENT, SUBJECT, NOW + later)["metadata"]["name"] for later in (0, 200, 700)]
    assert names[0] == names[1] != names[2]


def test_the_same_words_of_another_occasion_are_another_event() -> None:
    names = {
        event_manifest(replace(EVENT, occasion=at), SUBJECT, NOW)["metadata"]["name"]
        for at in ("", "2026-11-30T03:00:00Z", "2026-11-30T03:02:00Z")
    }
    assert len(names) == 3


def test_long_words_are_cut_to_what_the_apiserver_takes() -> None:
    event = event_manifest(PostEvent(type="Warning", reason="R", message="x" * 5000), SUBJECT, NOW)
    assert len(event["note"]) <= 1024


def test_long_words_in_any_language_are_cut_to_the_bytes_that_the_apiserver_takes() -> None:
    event = event_manifest(PostEvent(type="Warning", reason="R", message="a" + "镜像拉取失败" * 200), SUBJECT, NOW)
    assert 1000 < len(event["note"].encode()) <= 1024


@pytest.mark.parametrize("status", [0, 403, 409, 500])
async def test_an_event_that_cannot_be_posted_holds_up_nothing(status: int) -> None:
    await execute(MemoryKube(refuse={"create": ApiError(status=status, reason="R", message="m")}), EVENT)


def test_the_log_names_a_manifest_and_shows_other_actions_whole() -> None:
    assert describe(CreateDeployment(manifest=deployment())) == "CreateDeployment(name='edit-abc')"
    assert describe(GATE) == repr(GATE)
