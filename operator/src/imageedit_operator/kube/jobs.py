"""The Jobs that copy the model, and what their pods say of them. Parsing is pure; reading raises ApiError."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from imageedit_operator.core.observed import ObservedJob
from imageedit_operator.core.place_advice import next_steps, short
from imageedit_operator.core.pods import CANNOT_START, CLAIM_ADVICE, IMAGE_PULL
from imageedit_operator.core.prefetch_job import CONTAINER, COPY_LABEL, NODE, NODE_UID, POD_LABEL
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.unplaced import no_volume
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import JOBS, PODS
from imageedit_operator.kube.parsing import (
    DEPLOYMENT_LABEL,
    REVISION_LABEL,
    claims_of,
    epoch_s,
    foreign_owner,
    why_unplaced,
)

JOB_NAME = "batch.kubernetes.io/job-name"

Raw = Mapping[str, Any]


async def read_jobs(
    kube: Kube,
    resource: ImageEditDeployment,
    status: Mapping[str, Any],
    *,
    on_read: Callable[[dict[str, Any]], None] = lambda _job: None,
) -> tuple[ObservedJob, ...]:
    """The resource's Jobs; none is asked for where no copy is wanted, and none was. `on_read` gets each of them."""
    if resource.model.prefetch is None and "prefetch" not in status:
        return ()
    found = await kube.list_all(JOBS, resource.namespace, labels=f"{DEPLOYMENT_LABEL}={resource.name},{COPY_LABEL}")
    for raw in found:
        on_read(raw)
    pods = []
    if any(state(raw) != "Complete" for raw in found):
        pods = await kube.list_all(PODS, resource.namespace, labels=f"{POD_LABEL}={resource.name}")
    return tuple(parse_job(raw, pods, owner_uid=resource.uid) for raw in found)


def parse_job(raw: Raw, pods: Sequence[Raw], *, owner_uid: str) -> ObservedJob:
    """One Job with the words of its newest pod."""
    metadata = raw["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    mine = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(JOB_NAME) == metadata["name"]]
    mine.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    now = state(raw)
    return ObservedJob(
        name=metadata["name"],
        uid=metadata["uid"],
        revision_hash=labels.get(REVISION_LABEL, ""),
        copy_key=labels.get(COPY_LABEL, ""),
        place=annotations.get(NODE, ""),
        node_uid=annotations.get(NODE_UID, ""),
        state=now,
        message=_why_failed(raw, mine) if now == "Failed" else _why_waits(mine) if now == "Active" else "",
        ended_at=epoch_s(_condition(raw, "Complete").get("lastTransitionTime")),
        owned=not foreign_owner(raw, owner_uid=owner_uid),
    )


# | the Job                        | state    |
# | is being deleted               | Leaving  |
# | condition Complete is True     | Complete |
# | condition Failed is True       | Failed   |
# | else                           | Active   |
def state(raw: Raw) -> str:
    """Where a Job is."""
    if "deletionTimestamp" in raw["metadata"]:
        return "Leaving"
    return next((kind for kind in ("Complete", "Failed") if _condition(raw, kind)), "Active")


def _condition(raw: Raw, kind: str) -> Raw:
    for condition in (raw.get("status") or {}).get("conditions") or []:
        if condition["type"] == kind and condition["status"] == "True":
            return dict(condition)
    return {}


def _why_failed(raw: Raw, pods: Sequence[Raw]) -> str:
    """The command's own words; else those of the Job controller, which knows only codes and times."""
    for pod in reversed(pods):
        said = (_container_state(pod).get("terminated") or {}).get("message") or ""
        if said.strip():
            return str(said.strip())
    failed = _condition(raw, "Failed")
    return f"{failed.get('reason', '')}: {failed.get('message', '')}".strip(": ")


def _why_waits(pods: Sequence[Raw]) -> str:
    """What a person has to see to; nothing while the pod starts or copies."""
    if not pods:
        return ""
    waiting = _container_state(pods[-1]).get("waiting") or {}
    if waiting.get("reason") in IMAGE_PULL:  # these change by turns; what is said stays the same
        return "its image cannot be pulled; check spec.server.image and the node's access to its registry"
    if waiting.get("reason") in CANNOT_START:
        return f"{waiting['reason']}: {waiting.get('message', '')}"
    words = why_unplaced(pods[-1])
    lacks = no_volume(words, claims_of(pods[-1]))
    if lacks:
        return f"VolumeNotReady: {lacks}; {CLAIM_ADVICE}"
    if not words:
        return ""
    steps = next_steps(words, pod=pods[-1]["metadata"]["name"], claims=claims_of(pods[-1]))
    return f"Unschedulable: {short(words)}; {'; '.join(steps)}"


def _container_state(pod: Raw) -> Raw:
    for container in (pod.get("status") or {}).get("containerStatuses") or []:
        if container.get("name") == CONTAINER:
            return dict(container.get("state") or {})
    return {}
