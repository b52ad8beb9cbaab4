"""Fixed addresses, ports and names of the one cluster of a machine.

198.18.0.0/15 is set aside for benchmarks, so a real network hardly uses it. The ports lie below
the range from which the kernel takes ports for outgoing connections.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from localcluster.errors import LocalClusterError

NODE_NAME = "imageedit-local"
NODE_DEVICE = "imageedit-node"
POD_BRIDGE = "imageedit0"
CNI_NETWORK = "imageedit"
NODE_ADDRESS = "198.18.64.1"
POD_RANGE = "198.18.65.0/24"
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
RESOURCE_NAME = "huawei.com/Ascend910"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """Ports of one control plane and, for a whole cluster, of its node."""

    etcd: int
    etcd_peer: int
    api: int
    controller_manager: int = 26444
    scheduler: int = 26445
    kubelet: int = 26446
    kubelet_health: int = 26447
    proxy_health: int = 26448
    proxy_metrics: int = 26449
    prometheus: int = 26490


CLUSTER_PORTS = Ports(etcd=26440, etcd_peer=26441, api=26443)


def free_ports(count: int) -> list[int]:
    """Ports on loopback that were free a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def require_free(ports: Ports) -> None:
    """Raise LocalClusterError that names the first port which another program holds."""
    for name in Ports.__dataclass_fields__:
        port = getattr(ports, name)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                raise LocalClusterError(
                    f"port {port} ({name}) is taken: stop its program (ss -ltnp 'sport = {port}' shows it)"
                ) from None
