"""The claims that the pods of a file mount: which are there, and what a plan makes of those that are not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.resource import ImageEditDeployment

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A claim that the spec names."""

    name: str
    field: str
    of_pods: bool = True
    """False for one that only the Jobs of `spec.model.prefetch` read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The claims as the cluster has them, None for one that is not there; `unread` says why they were not read."""

    claims: tuple[tuple[Wanted, Raw | None], ...] = ()
    unread: str = ""


NO_CLAIMS = Found()


# | the spec has               | its claim is mounted by                           |
# | spec.model.prefetch.pvc    | pods                                              |
# | spec.server.volumes        | pods                                              |
# | spec.template.spec.volumes | pods                                              |
# | spec.model.source.pvc      | pods; with spec.model.prefetch by its Jobs alone  |
def wanted(resource: ImageEditDeployment) -> tuple[Wanted, ...]:
    """The claims that the spec names, each once."""
    found: dict[str, Wanted] = {}
    for item in _named(resource):
        found.setdefault(item.name, item)
    return tuple(found.values())


# | the claim                | warned                              | the scheduler will say of its pods |
# | is not there             | make it, or correct the field       | not found                          |
# | is being deleted         | make another one                    | is being deleted                   |
# | is Lost                  | make another one                    | unbound immediate claims           |
# | is Pending, of no class  | nobody makes a volume for it        | unbound immediate claims           |
# | is Pending, of a class   | it may wait for its first pod       | nothing                            |
# | is Bound                 | nothing                             | nothing                            |
def warnings(found: Found) -> tuple[str, ...]:
    """What is wrong with the claims, and what to do, a sentence for each."""
    said = (_warning(item, raw) for item, raw in found.claims)
    return tuple(words for words in said if words)


def unplaced_words(found: Found) -> str:
    """What the scheduler will say of pods that mount these claims; empty where they keep no pod from its place."""
    said = (_scheduler(item, raw) for item, raw in found.claims if item.of_pods)
    return next((words for words in said if words), "")


def assumed(found: Found) -> tuple[str, ...]:
    """What is taken for granted of claims that were not read."""
    return (f"claims were not seen, and are taken to be there and bound: {found.unread}",) if found.unread else ()


def _named(resource: ImageEditDeployment) -> Iterator[Wanted]:
    source, prefetch = resource.model.source, resource.model.prefetch
    if prefetch is not None and prefetch.claim_name:
        yield Wanted(name=prefetch.claim_name, field="spec.model.prefetch.pvc.claimName")
    yield from _of_volumes(resource.server.pod.volumes, "spec.server.volumes")
    yield from _of_volumes(resource.template.spec.get("volumes"), "spec.template.spec.volumes")
    if source.claim_name:
        yield Wanted(name=source.claim_name, field="spec.model.source.pvc.claimName", of_pods=prefetch is None)


def _of_volumes(volumes: Any, field: str) -> Iterator[Wanted]:
    for volume in volumes or ():
        claim = volume.get("persistentVolumeClaim") or {}
        if claim.get("claimName"):
            yield Wanted(name=str(claim["claimName"]), field=field)


def _warning(item: Wanted, raw: Raw | None) -> str:
    claim, class_ = f"PersistentVolumeClaim {item.name} ({item.field})", _class(raw)
    if raw is None:
        return f"{claim} is not there: make it in this namespace, or correct the field"
    if raw["metadata"].get("deletionTimestamp"):
        return f"{claim} is being deleted: make another one, and name it there"
    if _phase(raw) == "Lost":
        return f"{claim} has lost its volume: make another one, and name it there"
    if _phase(raw) != "Pending":
        return ""
    why = f"kubectl describe pvc {item.name}"
    if not class_:
        return f"{claim} is not bound, and no storage class makes a volume for it: {why}"
    return f"{claim} is not bound: storage class {class_} may wait for its first pod; if it does not, {why} says why"


def _scheduler(item: Wanted, raw: Raw | None) -> str:
    if raw is None:
        return f'persistentvolumeclaim "{item.name}" not found'
    if raw["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{item.name}" is being deleted'
    unbound = _phase(raw) == "Lost" or (_phase(raw) == "Pending" and not _class(raw))
    return "pod has unbound immediate PersistentVolumeClaims" if unbound else ""


def _phase(raw: Raw) -> str:
    return str((raw.get("status") or {}).get("phase") or "Pending")


def _class(raw: Raw | None) -> str:
    return str(((raw or {}).get("spec") or {}).get("storageClassName") or "")
