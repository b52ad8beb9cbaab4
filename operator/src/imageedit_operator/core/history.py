"""What is kept of each revision: its Deployment at no replicas, the digest of its files, and when it was complete."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from imageedit_operator.core.actions import DeleteDeployment
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import ObservedDeployment
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_live, is_serving
from imageedit_operator.core.stored import epoch_s, timestamp

Entry = Mapping[str, Any]

MOST_ENTRIES = 64
"""As many as the schema of the status takes."""

COMPLETED_AT = "completedAt"
NEVER = float("-inf")


def revisions(
    status: Mapping[str, Any], owned: Sequence[ObservedDeployment], pods: Sequence[ObservedPod], newest: Entry
) -> list[dict[str, Any]]:
    """`status.revisions`, oldest first: one entry for each Deployment of ours.

    `newest` is the entry of the spec's revision. A digest is taken from the first warm pod and never changes;
    the spec's revision keeps its own while its Deployment is made anew.
    """
    stored = _stored(status)
    entries: list[dict[str, Any]] = []
    for deployment in sorted(owned, key=lambda item: (item.created_at, item.name)):
        hash_ = deployment.revision_hash
        before = newest if hash_ == newest["hash"] else {"hash": hash_}
        entry = {**before, **stored.get(hash_, {})}
        if "digest" not in entry:
            entry |= _digest(entry, entries, [pod for pod in pods if pod.revision_hash == hash_])
        entries.append(entry)
    if newest["hash"] in stored and all(entry["hash"] != newest["hash"] for entry in entries):
        entries.append({**newest, **stored[newest["hash"]]})
    return entries[-MOST_ENTRIES:]


def digests(entries: Sequence[Entry]) -> dict[str, str]:
    """The digest that the files of each revision must have, where one is known."""
    return {str(entry["hash"]): str(entry["digest"]) for entry in entries if entry.get("digest")}


# | the entry has no digest yet, and                   | its digest    |
# | another revision reads the same files              | that one's    |
# | a pod serves and reports one                       | that pod's    |
# | a pod is warm, its check good, and reports one     | that pod's    |
# | else                                               | none          |
def _digest(entry: Entry, others: Sequence[Entry], pods: Sequence[ObservedPod]) -> dict[str, str]:
    for other in others:
        if entry.get("files") and other.get("files") == entry["files"] and other.get("digest"):
            return {"digest": str(other["digest"])}
    for pod in sorted(pods, key=lambda pod: (not is_serving(pod), pod.name)):
        if is_live(pod) and isinstance(pod.report, Known):
            report = pod.report.value
            if report.warm and report.check_ok and report.digest and report.revision_hash == pod.revision_hash:
                return {"digest": report.digest}
    return {}


# | the entry of                                            | completedAt                           |
# | a revision that comes to be the last good one           | now                                   |
# | the one that was it till now, without a mark: an older  | the start of the rollout away from it |
# | operator saw it complete                                |                                       |
# | any other, or while the last good one stays the same    | as it stands                          |
# The last row keeps a status at rest as it is, also where an older resource definition takes the marks away.
def mark(
    entries: Sequence[Entry], *, good: str, before: str, began_at: float, now: float
) -> tuple[dict[str, Any], ...]:
    """The entries, with the time at which a rollout to each was complete last; `good` follows `before`."""
    if good == before:
        return tuple(dict(entry) for entry in entries)
    times = {good: timestamp(now)}
    if before not in completed(entries):
        times[before] = timestamp(began_at)
    return tuple(
        {**entry, COMPLETED_AT: times[entry["hash"]]} if entry["hash"] in times else dict(entry) for entry in entries
    )


def completed(entries: Sequence[Entry]) -> dict[str, float]:
    """When each revision was complete last, in epoch seconds, where one is known to have been."""
    found: dict[str, float] = {}
    for entry in entries:
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            found[str(entry["hash"])] = epoch_s(entry[COMPLETED_AT])
    return found


# A Deployment is forgotten when it is none of these: wanted now, the last good one (to roll back
# to), with replicas or pods, or among the first of the rest, as many as spec.revisionHistoryLimit:
# | of two revisions of the rest                     | the first is                              |
# | both were complete                               | the one that was so last                  |
# | one was complete                                 | that one: nobody goes back to a mistake   |
# | none was, or an older operator noted no time     | the one whose Deployment was made last    |
def forget(
    owned: Sequence[ObservedDeployment],
    pods: Sequence[ObservedPod],
    *,
    entries: Sequence[Entry],
    keep: Collection[str],
    limit: int,
) -> tuple[DeleteDeployment, ...]:
    """Delete the Deployments beyond the history; `entries` are those of the status."""
    needed = {pod.revision_hash for pod in pods} | set(keep)
    past = [item for item in owned if not item.replicas and item.revision_hash not in needed]
    times = completed(entries)
    first = sorted(
        past, key=lambda item: (times.get(item.revision_hash, NEVER), item.created_at, item.name), reverse=True
    )
    return tuple(delete(item) for item in first[limit:])


def delete(deployment: ObservedDeployment) -> DeleteDeployment:
    """The deletion of exactly what was seen."""
    return DeleteDeployment(name=deployment.name, uid=deployment.uid, resource_version=deployment.resource_version)


def _stored(status: Mapping[str, Any]) -> dict[str, Entry]:
    found = status.get("revisions", ())
    return {str(entry["hash"]): entry for entry in found if isinstance(entry, Mapping) and entry.get("hash")}
