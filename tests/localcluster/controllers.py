"""The controller manager and the scheduler."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from localcluster import certs, kubeconfig, processes
from localcluster.addresses import CLUSTER_PORTS
from localcluster.paths import Layout
from localcluster.processes import Record


def make_identities(layout: Layout, url: str) -> None:
    """Certificates and kubeconfigs of both, under the names that RBAC knows."""
    for name in ("kube-controller-manager", "kube-scheduler"):
        certs.sign(layout.certs, name, user=f"system:{name}", addresses=("127.0.0.1",))
        kubeconfig.write(layout.config / f"{name}.kubeconfig", url=url, certs=layout.certs, name=name)


def start_controller_manager(
    layout: Layout,
    binary: Path,
    *,
    port: int = CLUSTER_PORTS.controller_manager,
    only: Sequence[str] = (),
    requests_per_s: int = 0,
) -> Record:
    """All controllers or `only` these, without leader election: there is one, and an idle cluster writes less.

    `requests_per_s` is how fast each may ask the API server; 0 = as fast as by default, which is slow.
    """
    identity = layout.config / "kube-controller-manager.kubeconfig"
    flags = {
        "kubeconfig": identity,
        "authentication-kubeconfig": identity,
        "authorization-kubeconfig": identity,
        "root-ca-file": layout.certs / "ca.crt",
        "service-account-private-key-file": layout.certs / "sa.key",
        "use-service-account-credentials": "true",
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": layout.certs / "kube-controller-manager.crt",
        "tls-private-key-file": layout.certs / "kube-controller-manager.key",
        "profiling": "false",
        **({"controllers": ",".join(only)} if only else {}),
        **({"kube-api-qps": requests_per_s, "kube-api-burst": 2 * requests_per_s} if requests_per_s else {}),
    }
    argv = [str(binary), *(f"--{name}={value}" for name, value in flags.items())]
    return processes.start("kube-controller-manager", argv, pids=layout.pids, logs=layout.logs)


def start_scheduler(
    layout: Layout, binary: Path, *, port: int = CLUSTER_PORTS.scheduler, requests_per_s: int = 0
) -> Record:
    """The default scheduler; a pod that did not fit is looked at again within seconds. `requests_per_s` as above."""
    identity = layout.config / "kube-scheduler.kubeconfig"
    config = layout.config / "kube-scheduler.json"
    limits = {"qps": requests_per_s, "burst": 2 * requests_per_s} if requests_per_s else {}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(identity), **limits},
                "leaderElection": {"leaderElect": False},
                "podMaxBackoffSeconds": 3,
                "enableProfiling": False,
            }
        )
    )
    flags = {
        "config": config,
        "authentication-kubeconfig": identity,
        "authorization-kubeconfig": identity,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": layout.certs / "kube-scheduler.crt",
        "tls-private-key-file": layout.certs / "kube-scheduler.key",
    }
    argv = [str(binary), *(f"--{name}={value}" for name, value in flags.items())]
    return processes.start("kube-scheduler", argv, pids=layout.pids, logs=layout.logs)
