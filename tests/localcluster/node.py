"""The kubelet and kube-proxy of the one node."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Sequence
from pathlib import Path

from localcluster import certs, kubeconfig, processes
from localcluster.addresses import CLUSTER_PORTS, NODE_ADDRESS, NODE_NAME, POD_RANGE
from localcluster.hosttools import search_path
from localcluster.paths import Layout
from localcluster.processes import Record

START_TIMEOUT_S = 60.0
STATUS_EVERY = "2s"
"""How soon a sick card shows in the node's allocatable resources."""


def make_identities(layout: Layout, url: str) -> None:
    """Certificates and kubeconfigs of the kubelet (also its serving certificate) and of kube-proxy."""
    certs.sign(
        layout.certs, "kubelet", user=f"system:node:{NODE_NAME}", groups=("system:nodes",), addresses=(NODE_ADDRESS,)
    )
    certs.sign(layout.certs, "kube-proxy", user="system:kube-proxy")
    for name in ("kubelet", "kube-proxy"):
        kubeconfig.write(layout.config / f"{name}.kubeconfig", url=url, certs=layout.certs, name=name)


def kubelet_config(layout: Layout) -> dict[str, object]:
    """What differs from the kubelet's defaults, and why."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "port": CLUSTER_PORTS.kubelet,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": CLUSTER_PORTS.kubelet_health,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.certs / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.certs / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.certs / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        # The node is a guest on this machine: no cgroup trees of its own, and cgroup v1, swap and few rights do.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "localStorageCapacityIsolation": False,
        # A developer's disk is often nearly full; images here are kilobytes, so deleting them would free nothing.
        "evictionHard": {
            "memory.available": "64Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "resolvConf": "",
        "podLogsDir": str(layout.logs / "pods"),
        "volumePluginDir": str(layout.kubelet_root / "volume-plugins"),
        "nodeStatusUpdateFrequency": STATUS_EVERY,
        "enableProfilingHandler": False,
    }


def start_kubelet(layout: Layout, binary: Path) -> Record:
    """The kubelet, serving on the node's address."""
    config = layout.config / "kubelet.json"
    config.write_text(json.dumps(kubelet_config(layout)))
    argv = [
        str(binary),
        f"--config={config}",
        f"--kubeconfig={layout.config / 'kubelet.kubeconfig'}",
        f"--root-dir={layout.kubelet_root}",
        f"--cert-dir={layout.certs}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={NODE_ADDRESS}",
    ]
    environment = dict(os.environ, PATH=search_path())
    return processes.start("kubelet", argv, pids=layout.pids, logs=layout.logs, env=environment)


def wait_kubelet(layout: Layout, needs: Sequence[Record]) -> None:
    """Until the kubelet says that it is well; raises LocalClusterError when one of these processes ended."""

    def well() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", CLUSTER_PORTS.kubelet_health, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    processes.wait_for("the kubelet to be well", well, timeout_s=START_TIMEOUT_S, needs=needs, logs=layout.logs)


def start_proxy(layout: Layout, binary: Path) -> Record:
    """kube-proxy in iptables mode; it leaves the kernel's connection tracking settings alone."""
    config = layout.config / "kube-proxy.json"
    untouched = {
        "maxPerCore": 0,
        "tcpEstablishedTimeout": "0s",
        "tcpCloseWaitTimeout": "0s",
        "udpTimeout": "0s",
        "udpStreamTimeout": "0s",
    }
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "clientConnection": {"kubeconfig": str(layout.config / "kube-proxy.kubeconfig")},
                "hostnameOverride": NODE_NAME,
                "mode": "iptables",
                "clusterCIDR": POD_RANGE,
                "bindAddress": NODE_ADDRESS,
                "healthzBindAddress": f"127.0.0.1:{CLUSTER_PORTS.proxy_health}",
                "metricsBindAddress": f"127.0.0.1:{CLUSTER_PORTS.proxy_metrics}",
                "conntrack": untouched,
                # Endpoints reach the program that answers within half a second, and answers come back to the node
                # whether or not the kernel shows bridged packets to iptables.
                "iptables": {"masqueradeAll": True, "localhostNodePorts": False, "minSyncPeriod": "0.5s"},
                "oomScoreAdj": 0,
            }
        )
    )
    argv = [str(binary), f"--config={config}"]
    environment = dict(os.environ, PATH=search_path())
    return processes.start("kube-proxy", argv, pids=layout.pids, logs=layout.logs, env=environment)
