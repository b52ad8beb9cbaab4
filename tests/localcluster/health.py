"""Whether the embedded cluster works."""

from __future__ import annotations

from localcluster import controlplane, processes, state
from localcluster.addresses import CLUSTER_PORTS, NODE_ADDRESS, NODE_NAME, RESOURCE_NAME
from localcluster.api import Api
from localcluster.errors import LocalClusterError
from localcluster.paths import Layout

PATIENCE_S = 20.0
NOT_READY_TAINTS = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
HOST_PROCESSES = (
    "containerd",
    "device-plugin",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
    "pod-targets",
    "prometheus",
)


def api_url() -> str:
    """The API server as reached from the host and from pods."""
    return f"https://{NODE_ADDRESS}:{CLUSTER_PORTS.api}"


def healthy(layout: Layout) -> bool:
    """Whether `up` came to its end, every process lives and the API server and the node are ready.

    A busy machine answers late: a cluster whose processes all live gets a while before it counts as broken.
    """
    found = state.read(layout)
    if found is None or not found.ready:
        return False
    alive = {record.name for record in processes.recorded(layout.pids) if processes.alive(record)}
    if not alive.issuperset(HOST_PROCESSES):
        return False
    api = controlplane.api_of(layout, api_url())
    try:
        processes.wait_for("the node", lambda: api.answers("/readyz") and node_ready(api), timeout_s=PATIENCE_S)
    except LocalClusterError:
        return False
    return True


def node_ready(api: Api) -> bool:
    """Whether the node takes pods: Ready, and the taint of its beginning is gone."""
    try:
        found = api.call("GET", f"/api/v1/nodes/{NODE_NAME}")
    except (LocalClusterError, OSError):
        return False
    conditions = {condition["type"]: condition["status"] for condition in found["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not any(
        taint["key"] in NOT_READY_TAINTS for taint in found["spec"].get("taints", [])
    )


def allocatable_cards(api: Api) -> int:
    """How many healthy cards the node offers now."""
    found = api.call("GET", f"/api/v1/nodes/{NODE_NAME}")
    return int(found["status"].get("allocatable", {}).get(RESOURCE_NAME, "0"))
