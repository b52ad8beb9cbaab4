"""The objects that a forecast makes, as the operator would see them just after. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import ObservedDeployment, ObservedJob
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.prefetch_job import COPY_LABEL, NODE_UID


def deployment(manifest: Mapping[str, Any], now: float) -> ObservedDeployment:
    """A Deployment that was created without pods."""
    metadata = manifest["metadata"]
    return ObservedDeployment(
        name=metadata["name"],
        uid=f"new-{metadata['name']}",
        resource_version="1",
        revision_hash=metadata["labels"]["imageedit.dev/revision"],
        replicas=0,
        created_at=now,
    )


def pod(name: str, revision: str, cards: Mapping[str, int], now: float) -> ObservedPod:
    """A pod that its ReplicaSet created."""
    return ObservedPod(name=name, uid=name, revision_hash=revision, created_at=now, cards=cards)


def started(pod: ObservedPod, *, warm: bool, warmup_s: float) -> ObservedPod:
    """The pod with its container, warm or on its way."""
    report = WarmReport(
        warm=warm,
        revision_hash=pod.revision_hash,
        digest="",
        instance=pod.uid,
        warmup_s=warmup_s,
        edit_s_by_size={},
        check_ok=warm,
        check_message="",
        draining=False,
        accepting=warm,
        running=0,
        waiting=0,
    )
    container = pod.container_id or f"c-{pod.uid}"
    return replace(pod, phase="Running", ip="0.0.0.0", started=True, container_id=container, report=Known(value=report))


def job(manifest: Mapping[str, Any], place: str, now: float) -> ObservedJob:
    """How long a copy takes nobody knows beforehand, and no pod waits for it: here it is there at once."""
    metadata = manifest["metadata"]
    return ObservedJob(
        name=metadata["name"],
        uid=f"new-{metadata['name']}",
        revision_hash=metadata["labels"]["imageedit.dev/revision"],
        copy_key=metadata["labels"][COPY_LABEL],
        place=place,
        node_uid=metadata["annotations"][NODE_UID],
        state="Complete",
        ended_at=now,
    )


def copied(job: ObservedJob) -> ObservedJob:
    """The Job once it has made its copy."""
    return replace(job, state="Complete", message="") if job.state == "Active" else job
