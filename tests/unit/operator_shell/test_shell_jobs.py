"""Jobs that copy the model, as the apiserver sends them, with what their pods say."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.pods import CLAIM_ADVICE
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.jobs import parse_job, read_jobs
from imageedit_operator.kube.kinds import JOBS, PODS
from unit.operator_shell.builders import RESOURCE_UID, cluster, custom_resource, owner

MODEL = {
    "name": "m",
    "revision": "1",
    "source": {"pvc": {"claimName": "models"}},
    "prefetch": {"hostPath": {"path": "/data/copies"}},
}


def job(name: str = "edit-prefetch-1", *, owners: Any = None, **conditions: str) -> Manifest:
    """A Job of the resource; keywords give conditions that are True, with their words."""
    listed = [
        {
            "type": kind,
            "status": "True",
            "reason": "Why",
            "message": words,
            "lastTransitionTime": "2026-11-30T03:00:00Z",
        }
        for kind, words in conditions.items()
    ]
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "labels": {
                "imageedit.dev/deployment": "edit",
                "imageedit.dev/revision": "abc",
                "imageedit.dev/copy": "c0",
            },
            "annotations": {"imageedit.dev/node": "n1", "imageedit.dev/node-uid": "u1"},
            "ownerReferences": [owner()] if owners is None else owners,
        },
        "status": {"conditions": listed},
    }


def pod(
    job_name: str = "edit-prefetch-1", *, at: str = "2026-11-30T03:00:00Z", state: Any = None, **status: Any
) -> Manifest:
    """A pod of a Job."""
    labels = {"batch.kubernetes.io/job-name": job_name, "imageedit.dev/prefetch": "edit"}
    container = {"name": "prefetch", "state": state or {}}
    return {
        "metadata": {"name": f"{job_name}-{at[-3:]}", "namespace": "team", "creationTimestamp": at, "labels": labels},
        "status": {"containerStatuses": [container], **status},
    }


def ended(message: str, *, at: str = "2026-11-30T03:00:00Z") -> Manifest:
    return pod(at=at, state={"terminated": {"exitCode": 66, "message": message}})


def test_a_job_is_read_with_its_place_and_what_it_copies() -> None:
    found = parse_job(job(Complete=""), [], owner_uid=RESOURCE_UID)
    assert (found.name, found.uid) == ("edit-prefetch-1", "uid-edit-prefetch-1")
    assert (found.place, found.node_uid) == ("n1", "u1")
    assert (found.revision_hash, found.copy_key, found.owned) == ("abc", "c0", True)
    assert (found.state, found.ended_at) == ("Complete", 1796007600.0)


def test_a_job_of_an_earlier_resource_of_the_name_is_not_ours() -> None:
    assert not parse_job(job(owners=[owner("earlier")]), [], owner_uid=RESOURCE_UID).owned


@pytest.mark.parametrize(
    ("conditions", "deleting", "state"),
    [
        ({}, False, "Active"),
        ({"SuccessCriteriaMet": ""}, False, "Active"),
        ({"FailureTarget": ""}, False, "Active"),
        ({"SuccessCriteriaMet": "", "Complete": ""}, False, "Complete"),
        ({"FailureTarget": "", "Failed": ""}, False, "Failed"),
        ({"Complete": ""}, True, "Leaving"),
    ],
)
def test_the_state_follows_the_table(conditions: dict[str, str], deleting: bool, state: str) -> None:
    raw = job(**conditions)
    if deleting:
        raw["metadata"]["deletionTimestamp"] = "2026-11-30T03:00:00Z"
    assert parse_job(raw, [], owner_uid=RESOURCE_UID).state == state


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([ended("ModelInvalid: x\n")], "ModelInvalid: x"),
        ([ended("CopyFailed: new", at="2026-11-30T04:00:00Z"), ended("CopyFailed: old")], "CopyFailed: new"),
        ([ended("DiskFull: x"), pod(at="2026-11-30T04:00:00Z", state={"terminated": {}})], "DiskFull: x"),
        ([pod("another", state={"terminated": {"message": "foreign"}})], "Why: too many"),
        ([], "Why: too many"),
    ],
)
def test_a_failed_job_says_what_its_newest_pod_said_last(pods: list[Manifest], said: str) -> None:
    assert parse_job(job(Failed="too many"), pods, owner_uid=RESOURCE_UID).message == said


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Too many pods.",
}
NOT_FOUND = 'persistentvolumeclaim "copies" not found'
NO_CLAIM = {**UNSCHEDULABLE, "message": f"0/1 nodes are available: {NOT_FOUND}."}
TOO_MANY = "the nodes run as many pods as their kubelets take: let some end, or add a node"
NO_IMAGE = "its image cannot be pulled; check spec.server.image and the node's access to its registry"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"state": {"waiting": {"reason": "ErrImagePull", "message": "x"}}}, NO_IMAGE),
        ({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "y"}}}, NO_IMAGE),
        ({"state": {"waiting": {"reason": "CreateContainerError", "message": "y"}}}, "CreateContainerError: y"),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, ""),
        ({"state": {"running": {}}}, ""),
        ({"conditions": [UNSCHEDULABLE], "containerStatuses": []}, f"Unschedulable: Too many pods; {TOO_MANY}"),
        ({"conditions": [NO_CLAIM], "containerStatuses": []}, f"VolumeNotReady: {NOT_FOUND}; {CLAIM_ADVICE}"),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, ""),
    ],
)
def test_a_job_that_runs_says_only_what_a_person_has_to_see_to(found: dict[str, Any], said: str) -> None:
    assert parse_job(job(), [pod(**found)], owner_uid=RESOURCE_UID).message == said


def test_a_job_without_a_pod_says_nothing() -> None:
    assert parse_job(job(), [], owner_uid=RESOURCE_UID).message == ""


async def test_jobs_are_asked_for_only_where_copies_are_wanted_or_were() -> None:
    kube = cluster((JOBS, job()))
    assert await read_jobs(kube, parse(custom_resource()), {}) == ()
    assert kube.calls == []
    assert len(await read_jobs(kube, parse(custom_resource()), {"prefetch": {}})) == 1
    assert len(await read_jobs(kube, parse(custom_resource(model=MODEL)), {})) == 1


async def test_pods_are_asked_for_only_while_a_job_is_not_complete() -> None:
    resource = parse(custom_resource(model=MODEL))
    complete = cluster((JOBS, job(Complete="")), (PODS, ended("old news")))
    (found,) = await read_jobs(complete, resource, {})
    assert (found.message, [call[1] for call in complete.calls]) == ("", ["jobs"])
    (found,) = await read_jobs(cluster((JOBS, job(Failed="")), (PODS, ended("DiskFull: x"))), resource, {})
    assert found.message == "DiskFull: x"


async def test_that_jobs_cannot_be_read_is_an_error() -> None:
    kube = cluster()
    kube.refuse["list jobs"] = ApiError(status=403, reason="Forbidden", message="no")
    with pytest.raises(ApiError):
        await read_jobs(kube, parse(custom_resource(model=MODEL)), {})
