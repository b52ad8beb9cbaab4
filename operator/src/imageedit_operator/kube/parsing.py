"""Raw JSON objects of the apiserver, and a pod's `/warmz`, as the frozen values of `core.observed`.

Pure. Fields that Kubernetes leaves out when they are empty are read with their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.managed_fields import applied_by, of_others, words
from imageedit_operator.core.manifests import OWNER_UID, RENDERED
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.taken import away, items_of
from imageedit_operator.kube.card_names import held_cards, unhealthy_cards
from imageedit_operator.kube.client import FIELD_MANAGER, TEMPLATE_MANAGER
from imageedit_operator.kube.containers import names_of_running, server_container, waiting
from imageedit_operator.kube.quantities import requested_by

REVISION_LABEL = "imageedit.dev/revision"
DEPLOYMENT_LABEL = "imageedit.dev/deployment"
WARM_GATE = "imageedit.dev/warm"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

Raw = Mapping[str, Any]


def epoch_s(text: str | None) -> float:
    """`2026-11-30T03:00:00Z` as UTC epoch seconds; 0 for nothing."""
    if not text:
        return 0.0
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).timestamp()


def timestamp(now: float) -> str:
    """Epoch seconds as Kubernetes writes a time: whole seconds, UTC."""
    return datetime.fromtimestamp(int(now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_deployment(raw: Raw, *, owner_uid: str) -> ObservedDeployment:
    """One Deployment; `owned` when the resource with `owner_uid` is its controller."""
    metadata = raw["metadata"]
    owner = foreign_owner(raw, owner_uid=owner_uid)
    written = of_others(metadata, ours=(FIELD_MANAGER, TEMPLATE_MANAGER))
    scaled_by = written.pop(("spec", "replicas"), "")
    return ObservedDeployment(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        revision_hash=_revision(raw),
        replicas=(raw.get("spec") or {}).get("replicas", 1),
        created_at=epoch_s(metadata.get("creationTimestamp")),
        rendered=(metadata.get("annotations") or {}).get(RENDERED, ""),
        templated=applied_by(metadata, TEMPLATE_MANAGER),
        refused=_refused(raw),
        changed=words(written),
        scaled_by=scaled_by,
        owned=not owner,
        foreign_owner=owner,
    )


def _revision(deployment: Raw) -> str:
    """Its selector can never change; a label can, or be taken away."""
    selector = ((deployment.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    labels = deployment["metadata"].get("labels") or {}
    return str(selector.get(REVISION_LABEL) or labels.get(REVISION_LABEL) or "")


def _refused(raw: Raw) -> str:
    for condition in (raw.get("status") or {}).get("conditions") or []:
        if (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True"):
            return str(condition.get("message") or condition.get("reason") or "ReplicaFailure")
    return ""


def foreign_owner(raw: Raw, *, owner_uid: str) -> str:
    """Who controls the object instead of the resource with `owner_uid`; empty when that one does."""
    for owner in raw["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return "" if owner.get("uid") == owner_uid else f"{owner.get('kind')} {owner.get('name')}"
    return "nobody"


def made_for(pod: Raw, owner_uid: str) -> bool:
    """False for pods of an earlier resource of the same name; those from before the label count as ours."""
    return bool((pod["metadata"].get("labels") or {}).get(OWNER_UID, owner_uid) == owner_uid)


def is_subset(wanted: Any, live: Any) -> bool:
    """True when every field of `wanted` stands in `live`; lists of plain values must agree one by one.

    The apiserver leaves out many fields that are false or empty: absent is as good as that. Objects in a list it tells
    apart by a key, and applying ours leaves those of others there: to miss that would be to apply for ever.
    """
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            is_subset(value, live[name]) if name in live else not value for name, value in wanted.items()
        )
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if wanted and isinstance(live, Sequence) and all(isinstance(one, Mapping) for one in wanted):
            return all(any(is_subset(one, other) for other in live) for one in wanted)
        return (
            isinstance(live, Sequence)
            and len(wanted) == len(live)
            and all(is_subset(one, other) for one, other in zip(wanted, live, strict=True))
        )
    return bool(wanted == live)


def service_matches(wanted: Raw, live: Raw) -> bool:
    """True when the Service is as we want it.

    An annotation of ours that nobody wants any more is a difference, and so is a label more in the selector.
    """
    same_pods = wanted["spec"]["selector"] == (live.get("spec") or {}).get("selector")
    known = applied_annotations(live) <= set(wanted["metadata"].get("annotations") or {})
    return same_pods and known and is_subset(wanted, live)


def changed_fields(wanted: Raw, live: Raw) -> tuple[str, ...]:
    """Parts of the spec that we apply and others wrote to, and who, and fields that somebody took away, in words."""
    written = of_others(live["metadata"], ours=(FIELD_MANAGER,))
    applied = {name for field, value in wanted["spec"].items() for name in (field, *items_of(field, value))}
    ours = {path: who for path, who in written.items() if path[1:] and path[1] in applied}
    return words(ours, away(wanted, live, ours=FIELD_MANAGER))


def applied_annotations(live: Raw) -> set[str]:
    """The annotations that we applied; those of others are none of our business."""
    applied: set[str] = set()
    for entry in live["metadata"].get("managedFields") or []:
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
            applied |= {name.removeprefix("f:") for name in fields if name.startswith("f:")}
    return applied


def parse_pod(raw: Raw, *, report: Known[WarmReport] | Unknown | None = None) -> ObservedPod:
    """One server pod, with the answer to `/warmz` when it was asked."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or []}
    scheduled, gate = conditions.get("PodScheduled", {}), conditions.get(WARM_GATE)
    unschedulable = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    created_at = epoch_s(metadata.get("creationTimestamp"))
    container = server_container(status)
    running = "running" in (container.get("state") or {})
    last = (container.get("state") or {}).get("terminated") or (container.get("lastState") or {}).get("terminated")
    hanging = waiting(status)
    return ObservedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        revision_hash=(metadata.get("labels") or {}).get(REVISION_LABEL, ""),
        node=(raw.get("spec") or {}).get("nodeName", ""),
        ip=status.get("podIP", ""),
        phase=status.get("phase", "Pending"),
        created_at=created_at,
        terminating="deletionTimestamp" in metadata,
        ends_by=epoch_s(metadata.get("deletionTimestamp")),
        running=names_of_running(status) if "deletionTimestamp" in metadata else (),
        unschedulable=unschedulable,
        # A scheduler may write its condition without a time: since the pod's creation, not since for ever.
        unschedulable_since=(epoch_s(scheduled.get("lastTransitionTime")) or created_at) if unschedulable else 0.0,
        unschedulable_message=scheduled.get("message", "") if unschedulable else "",
        claims=claims_of(raw),
        ready=conditions.get("Ready", {}).get("status") == "True",
        container_id=container.get("containerID", "") if running else "",
        started=running,
        started_at=epoch_s(container["state"]["running"].get("startedAt")) if running else 0.0,
        restarts=container.get("restartCount", 0),
        waiting_reason=hanging.get("reason", ""),
        waiting_message=hanging.get("message", ""),
        last_exit_code=last.get("exitCode") if last else None,
        last_exit_reason=(last.get("reason") or "") if last else "",
        last_exit_message=(last.get("message") or "").strip() if last else "",
        failed_reason=status.get("reason", "") if status.get("phase") == "Failed" else "",
        failed_message=status.get("message", "") if status.get("phase") == "Failed" else "",
        gate=None if gate is None else gate.get("status") == "True",
        gate_reason=(gate or {}).get("reason") or "",
        gate_message=(gate or {}).get("message") or "",
        gate_since=epoch_s((gate or {}).get("lastTransitionTime")),
        deletion_cost=_deletion_cost(metadata),
        scheduled_at=epoch_s(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else 0.0,
        prepared_at=_prepared_at(conditions),
        cards=requested_by(raw),
        held_cards=held_cards(raw),
        unhealthy_cards=unhealthy_cards(raw),
        report=report or Unknown(reason="NotAsked", message="the pod was not asked"),
    )


def _prepared_at(conditions: Mapping[str, Raw]) -> float:
    """Kubelets before 1.29 do not tell."""
    prepared = conditions.get("PodReadyToStartContainers", {})
    return epoch_s(prepared.get("lastTransitionTime")) if prepared.get("status") == "True" else 0.0


def why_unplaced(raw: Raw) -> str:
    """The scheduler's words for a pod that it finds no place for; empty when it gives none, or did not look."""
    for condition in (raw.get("status") or {}).get("conditions") or []:
        if (condition["type"], condition.get("reason")) == ("PodScheduled", "Unschedulable"):
            return str(condition.get("message") or "")
    return ""


def claims_of(raw: Raw) -> tuple[str, ...]:
    """Names of the PersistentVolumeClaims that a pod mounts, sorted."""
    volumes = (raw.get("spec") or {}).get("volumes") or []
    claims = (volume.get("persistentVolumeClaim") or {} for volume in volumes)
    return tuple(sorted({str(claim["claimName"]) for claim in claims if claim.get("claimName")}))


def _deletion_cost(metadata: Raw) -> int:
    text = (metadata.get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0  # someone else's annotation; the ReplicaSet controller ignores it as well
