"""Copies of the model before pods need them: which are wanted, which are there, and the Jobs that make the others.

The Jobs are the memory: one that is complete says that its node has the copy, so it stays as long as the copy counts.
One that is deleted by hand is made again, and finds what is right already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from imageedit_operator.core.actions import Action, CreateJob, DeleteJob
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed, ObservedJob
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble, is_active
from imageedit_operator.core.prefetch_job import job, job_name
from imageedit_operator.core.prefetch_spec import Prefetch
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import copy_key, copy_of, copy_prefix
from imageedit_operator.core.stored import cut

AT_ONCE = 8
"""Jobs that copy at the same time; more of them only share what the source can give."""

FAILED = "PrefetchFailed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Copies:
    """The copies of one look, and what to do about them."""

    wanted: int = 0
    ready: int = 0
    failed: int = 0
    message: str = ""
    """Of the first place that has none: why not, where that is known."""
    actions: tuple[Action, ...] = ()
    trouble: Trouble | None = None
    of_nodes: bool = True
    files_at: Mapping[str, float] = field(default_factory=dict)
    """By uid of a pod, when its node got the copy that it waits for; infinite while the copy is made."""

    @property
    def missing(self) -> bool:
        """Whether a copy is still to come."""
        return self.ready < self.wanted

    @property
    def words(self) -> str:
        """What is waited for, empty when nothing is."""
        if not self.missing:
            return ""
        has = f"{self.ready} of {self.wanted} nodes have theirs" if self.of_nodes else "the claim has none yet"
        why = f"; {self.message}" if self.message else ""
        return f"copies of the model are made before any pod is replaced: {has}{why}"

    def status(self) -> dict[str, Any]:
        """`status.prefetch`, or nothing where no copy is wanted."""
        if not self.wanted:
            return {}
        message = {"message": cut(self.message)} if self.message else {}
        figures = {"wanted": self.wanted, "ready": self.ready, "failed": self.failed}
        return {"prefetch": {**figures, **message}}


def look(
    resource: ImageEditDeployment,
    observed: Observed,
    pods: Sequence[ObservedPod],
    revisions: Sequence[Mapping[str, Any]],
    *,
    hash_: str,
    given_up: bool,
    good: bool,
) -> Copies:
    """The copies for the spec's revision `hash_`, which is `good` once it was complete.

    Without `prefetch`, or when the revision was given up, no copy is wanted, and Jobs that are left go away.
    """
    prefetch = resource.model.prefetch
    ours = [item for item in observed.jobs if item.owned]
    if prefetch is None or given_up:
        over = [item for item in ours if prefetch is None or item.state != "Complete"]
        return Copies(actions=tuple(_delete(item, "no copy is wanted") for item in over))
    key, places = copy_key(resource), _places(prefetch, observed, pods, hash_)
    nodes_known, uids = (
        isinstance(observed.nodes, Known),
        observed.nodes.value if isinstance(observed.nodes, Known) else {},
    )
    back = set() if good else {str(entry["hash"]) for entry in revisions}

    def is_over(item: ObservedJob) -> bool:
        if item.copy_key != key:
            return _is_of_no_use(item, back)
        return _is_void(item, uids, hash_, elsewhere=nodes_known and item.place not in places)

    over = [item for item in ours if item.state != "Leaving" and is_over(item)]
    known = {item.place: item for item in ours if item.copy_key == key and item not in over}
    there = [item for item in map(known.get, places) if item is not None]
    failed = next((item for item in there if item.state == "Failed"), None)
    stuck = failed or next((item for item in there if item.state == "Active" and item.message), None)
    busy = sum(item.state == "Active" for item in known.values())
    names = {item.name for item in observed.jobs}
    absent = [place for place in places if place not in known and job_name(resource, place) not in names]
    keep = _kept(resource, revisions)
    return Copies(
        wanted=len(places),
        ready=sum(item.state == "Complete" for item in there),
        failed=sum(item.state == "Failed" for item in there),
        message="" if stuck is None else _said(stuck),
        actions=(
            *(_delete(item, "it is of an earlier revision, or its node is gone") for item in over),
            *(
                CreateJob(
                    manifest=job(resource, prefetch, hash_, place, node_uid=uids.get(place, ""), keep=keep), place=place
                )
                for place in absent[: max(0, AT_ONCE - busy)]
            ),
        ),
        trouble=None if failed is None else Trouble(reason=FAILED, message=_said(failed)),
        of_nodes=prefetch.kind == "hostPath",
        files_at=_files_at(pods, known, hash_) if prefetch.kind == "hostPath" else {},
    )


def _files_at(pods: Sequence[ObservedPod], known: Mapping[str, ObservedJob], hash_: str) -> dict[str, float]:
    ended = {place: item.ended_at for place, item in known.items() if item.state == "Complete"}
    return {pod.uid: ended.get(pod.node, inf) for pod in pods if pod.node and pod.revision_hash == hash_}


# | prefetch | the nodes that pods may land on | a copy is wanted                                           |
# | pvc      | any                             | in the claim                                               |
# | hostPath | known                           | on each of them, and where pods of the revision are already|
# | hostPath | not known                       | on the nodes of all pods of the resource                   |
def _places(prefetch: Prefetch, observed: Observed, pods: Sequence[ObservedPod], hash_: str) -> list[str]:
    if prefetch.kind == "pvc":
        return [""]
    nodes = frozenset(observed.nodes.value) if isinstance(observed.nodes, Known) else None
    near = {pod.node for pod in pods if pod.node and is_active(pod) and (nodes is None or pod.revision_hash == hash_)}
    first = sorted({pod.node for pod in pods if pod.node})
    return sorted(near | (nodes or frozenset()), key=lambda node: (node not in first, node))


# | a Job for these files           | is void                                                    |
# | any                             | if its node is another machine by now, under the same name |
# | complete                        | else never: it is the memory                               |
# | not complete, in a wanted place | if it is of another revision: a new one tries anew         |
# | not complete, elsewhere         | where the nodes are known                                  |
def _is_void(item: ObservedJob, uids: Mapping[str, str], hash_: str, *, elsewhere: bool) -> bool:
    if item.node_uid and uids.get(item.place, item.node_uid) != item.node_uid:
        return True
    return item.state != "Complete" and (item.revision_hash != hash_ or elsewhere)


# | a Job for other files, or another folder | is of no use                                            |
# | complete                                 | once this revision was complete, or its own is forgotten|
# | not complete                             | at once                                                 |
# A copy whose revision is forgotten may be removed by the next Job: nothing may vouch for it any more.
def _is_of_no_use(item: ObservedJob, back: Collection[str]) -> bool:
    """Not wanted for going back to one of the revisions `back`."""
    return item.state != "Complete" or item.revision_hash not in back


def _kept(resource: ImageEditDeployment, revisions: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Copies that a revision in the history reads; none where one does not tell, for then nothing may be removed."""
    files = [str(entry.get("files", "")) for entry in revisions]
    if not all(files):
        return frozenset()
    return frozenset(copy_of(copy_prefix(resource), key) for key in files)


def _delete(item: ObservedJob, why: str) -> DeleteJob:
    return DeleteJob(name=item.name, uid=item.uid, why=why)


def _said(item: ObservedJob) -> str:
    where = f"node {item.place}" if item.place else "the claim"
    words = f"{where}: {item.message or 'the Job failed'}"
    return f"{words}; then delete Job {item.name} to try again" if item.state == "Failed" else words
