"""What to look at for a pod that no node takes: a field of the resource, or an object, by the scheduler's words.

kube-scheduler counts the nodes for each reason, and Volcano repeats it. The counts come and go while nobody does
anything, so they are left out: what is told stays the same as long as the same reasons last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from imageedit_operator.core.pods import CLAIM_ADVICE

MOST_STEPS = 3
"""A large cluster has a reason for each kind of node; those that help the pod come first."""

_ROOM = "lower that, let other pods there end, or add a node"
_OWN_STATE = "which a node sets for its own state: kubectl describe nodes says why"
_ELSEWHERE = (
    "on other nodes than those that fit the pod: choose these with spec.accelerator.nodeSelector, "
    "or take a claim whose volume all of them reach"
)

_BEGINNING = re.compile(r"^\s*\d+/\d+ nodes are (?:un)?available: ")
_END = re.compile(r"\s*\b(?:no new claims to deallocate|preemption: )")
_TAINT = re.compile(r"had untolerated taint \{([^:}]+): ?([^}]*)\}")
_ROLE = re.compile(r"node-role\.kubernetes\.io/(?:control-plane|master)$")
_LACK = re.compile(r"Insufficient ([\w./-]*\w)")
_CLAIM = re.compile(
    r'pod has unbound immediate PersistentVolumeClaims|persistentvolumeclaim "|available persistent volumes'
)
_PLACE_OF_VOLUME = re.compile(
    r"had volume node affinity conflict|didn't match PersistentVolume's node affinity|had no available volume zone"
)


def short(words: str) -> str:
    """The scheduler's reasons in its own words, in the order of the alphabet, without counts of nodes."""
    reasons = _BEGINNING.sub("", _END.split(words, maxsplit=1)[0]).strip().rstrip(".,")
    return ", ".join(sorted({re.sub(r"^\d+ ", "", reason) for reason in re.split(r", (?=\d+ )", reasons)}))


def next_steps(
    words: str, *, pod: str, claims: Sequence[str] = (), labels: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What to do, most helpful first; `claims` are those of the pod, `labels` what it asks of a node, where known."""
    found = tuple(dict.fromkeys(_steps(short(words), claims, labels or {})))
    return found[:MOST_STEPS] or (f"kubectl describe pod {pod} says more",)


# | the scheduler says of nodes                          | what is to be looked at                            |
# | a claim is not there, lost or not bound              | the claim                                          |
# | were unschedulable                                   | cordoned nodes                                     |
# | untolerated taint, one of a node's own state         | the nodes                                          |
# | untolerated taint, any other                         | spec.accelerator.tolerations                       |
# | didn't match Pod's node affinity/selector            | spec.accelerator.nodeSelector, spec.template       |
# | Insufficient cpu, memory, ephemeral-storage          | spec.server.resources                              |
# | Insufficient anything else                           | who holds it                                       |
# | volume node affinity conflict, no volume zone        | the claims' volumes, spec.accelerator.nodeSelector |
# | exceed max volume count                              | the nodes' volumes                                 |
# | Too many pods                                        | the nodes' pods                                    |
# | didn't have free ports                               | a hostPort in spec.template                        |
# | topology spread constraints, pod (anti-)affinity     | spec.template                                      |
# | untolerated taint, that of the control plane         | more nodes                                         |
# | anything else                                        | the pod's events                                   |
def _steps(reasons: str, claims: Sequence[str], labels: Mapping[str, str]) -> Iterator[str]:
    taints = [(key, value.strip()) for key, value in _TAINT.findall(reasons)]
    if _CLAIM.search(reasons):
        yield CLAIM_ADVICE
    if "were unschedulable" in reasons:
        yield "cordoned nodes take no pods: kubectl get nodes shows which are SchedulingDisabled, kubectl uncordon NODE"
    yield from (_of_taint(key, value) for key, value in taints if not _ROLE.match(key))
    if "untolerated taint(s)" in reasons:
        yield "tolerate a taint of the nodes in spec.accelerator.tolerations: kubectl describe nodes shows them"
    if "node affinity/selector" in reasons:
        named = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        yield (
            f"no node has the labels {named and named + ' '}of spec.accelerator.nodeSelector, or fits an affinity "
            "in spec.template: kubectl get nodes --show-labels"
        )
    yield from map(_of_lack, _LACK.findall(reasons))
    if _PLACE_OF_VOLUME.search(reasons):
        named = f" ({', '.join(claims)})" if claims else ""
        yield f"the volume of a claim{named} lies {_ELSEWHERE}"
    if "exceed max volume count" in reasons:
        yield "the nodes have attached as many volumes as they can: let other pods there end, or add a node"
    if "Too many pods" in reasons:
        yield "the nodes run as many pods as their kubelets take: let some end, or add a node"
    if "didn't have free ports" in reasons:
        yield "a hostPort of spec.template is taken on every node: take it out, or add a node for each pod"
    if "topology spread constraints" in reasons:
        yield "see topologySpreadConstraints in spec.template"
    if "didn't match pod a" in reasons:  # "affinity rules", "anti-affinity rules"
        yield "see affinity in spec.template, and that of the pods on the nodes"
    if any(_ROLE.match(key) for key, _ in taints):
        yield "nodes of the control plane take no such pods: add a node"


def _of_taint(key: str, value: str) -> str:
    if key.startswith(("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")):
        return f"pods do not tolerate the taint {key}, {_OWN_STATE}"
    named = f"{key}={value}" if value else key
    return f"tolerate the taint {named} in spec.accelerator.tolerations, or take it off the nodes"


def _of_lack(name: str) -> str:
    if "/" in name:
        return f"no node has as many {name} left as the pod asks for: free some, or add a node"
    return f"no node has the {name} left that spec.server.resources and spec.template ask for: {_ROOM}"
