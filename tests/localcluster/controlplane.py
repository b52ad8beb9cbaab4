"""etcd and the API server, with what they need; also alone, for tests that need no node."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster import addresses, binaries, certs, controllers, kubeconfig, processes
from localcluster.addresses import Ports
from localcluster.api import Api
from localcluster.errors import LocalClusterError
from localcluster.paths import Layout, cache_dir
from localcluster.processes import Ended, Record
from localcluster.progress import Progress, console

START_TIMEOUT_S = 120.0
STOP_GRACE_S = 5.0
PORT_ATTEMPTS = 3
BARE = {
    "bind-address": "127.0.0.1",
    "advertise-address": "127.0.0.1",
    "endpoint-reconciler-type": "none",  # it refuses a loopback address, and nothing here uses the endpoints
    "disable-admission-plugins": "ServiceAccount",
}

READS_OF_THE_CLUSTER = {
    "level": "None",
    "verbs": ["get", "list", "watch"],
    "users": ["system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy", "system:apiserver"],
}
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*", "/metrics", "/openapi/*"]},
        READS_OF_THE_CLUSTER,
        {"level": "None", "verbs": ["get", "list", "watch"], "userGroups": ["system:nodes"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlPlane:
    """An API server without controllers, scheduler or node."""

    url: str
    kubeconfig: Path
    kubectl: Path
    audit_log: Path
    logs: Path


def api_of(layout: Layout, url: str) -> Api:
    """The admin's way to an API server of ours."""
    return Api(url=url, ca=layout.certs / "ca.crt", cert=layout.certs / "admin.crt", key=layout.certs / "admin.key")


def start_etcd(layout: Layout, ports: Ports, binary: Path) -> Record:
    """etcd on loopback with client certificates, without fsync: its data need not outlive the machine."""
    client, peer = f"https://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    argv = [
        str(binary),
        f"--data-dir={layout.root / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--cert-file={layout.certs / 'etcd.crt'}",
        f"--key-file={layout.certs / 'etcd.key'}",
        f"--trusted-ca-file={layout.certs / 'ca.crt'}",
        "--client-cert-auth",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    return processes.start("etcd", argv, pids=layout.pids, logs=layout.logs)


def start_apiserver(layout: Layout, ports: Ports, binary: Path, extra: Mapping[str, str]) -> Record:
    """kube-apiserver with RBAC and an audit log; `extra` are flags that differ between a cluster and a bare one."""
    policy = layout.config / "audit-policy.json"
    policy.write_text(json.dumps(AUDIT_POLICY))
    flags = {
        "etcd-servers": f"https://127.0.0.1:{ports.etcd}",
        "etcd-cafile": layout.certs / "ca.crt",
        "etcd-certfile": layout.certs / "etcd.crt",
        "etcd-keyfile": layout.certs / "etcd.key",
        "secure-port": ports.api,
        "tls-cert-file": layout.certs / "apiserver.crt",
        "tls-private-key-file": layout.certs / "apiserver.key",
        "client-ca-file": layout.certs / "ca.crt",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": layout.certs / "sa.pub",
        "service-account-signing-key-file": layout.certs / "sa.key",
        "service-cluster-ip-range": addresses.SERVICE_RANGE,
        "authorization-mode": "Node,RBAC",
        "allow-privileged": "true",
        "cert-dir": layout.certs,
        "profiling": "false",
        "audit-policy-file": policy,
        "audit-log-path": layout.audit_log,
        "audit-log-maxbackup": 1,
        **extra,
    }
    argv = [str(binary), *(f"--{name}={value}" for name, value in flags.items())]
    return processes.start("kube-apiserver", argv, pids=layout.pids, logs=layout.logs)


def make_certs(layout: Layout, serving: tuple[str, ...]) -> None:
    """The authority and the certificates of etcd, the API server and the admin."""
    certs.make_authority(layout.certs)
    certs.sign(layout.certs, "etcd", user="etcd", addresses=("127.0.0.1",))
    names = (
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    )
    certs.sign(layout.certs, "apiserver", user="kube-apiserver", addresses=serving, names=names)
    certs.sign(layout.certs, "admin", user="imageedit-admin", groups=("system:masters",))


def wait_ready(api: Api, needs: list[Record], layout: Layout) -> None:
    """Until /readyz answers; a dead process ends the wait with its log."""
    what = "the API server to be ready"
    processes.wait_for(what, lambda: api.answers("/readyz"), timeout_s=START_TIMEOUT_S, needs=needs, logs=layout.logs)


@contextlib.contextmanager
def up_only(
    *, with_controllers: Sequence[str] = (), with_scheduler: bool = False, progress: Progress = console
) -> Iterator[ControlPlane]:
    """A bare API server on free loopback ports, with these controllers if any, stopped at the end; several are fine.

    Service account admission is off, since no controller makes the accounts. Raises LocalClusterError.
    """
    more = {"kube-controller-manager": bool(with_controllers), "kube-scheduler": with_scheduler}
    beside = [name for name, asked in more.items() if asked]
    programs = binaries.ensure((*binaries.CONTROL_PLANE, *beside), progress)
    sweep(cache_dir() / "control-planes")
    layout = Layout(root=cache_dir() / "control-planes" / uuid.uuid4().hex[:12])
    layout.create()
    (layout.root / "owner").write_text(json.dumps(asdict(processes.this_process())))
    try:
        make_certs(layout, ("127.0.0.1",))
        plane = _started(layout, programs)
        if beside:
            controllers.make_identities(layout, plane.url)
        if with_scheduler:
            (port,) = addresses.free_ports(1)
            controllers.start_scheduler(layout, programs["kube-scheduler"], port=port)
        if with_controllers:
            (port,) = addresses.free_ports(1)
            controllers.start_controller_manager(
                layout, programs["kube-controller-manager"], port=port, only=with_controllers
            )
        yield plane
    finally:
        _clear(layout)


def _started(layout: Layout, programs: Mapping[str, Path]) -> ControlPlane:
    """Start on ports that were free a moment ago; again when another program was faster."""
    for attempt in range(1, PORT_ATTEMPTS + 1):
        etcd_port, peer_port, api_port = addresses.free_ports(3)
        ports = Ports(etcd=etcd_port, etcd_peer=peer_port, api=api_port)
        url = f"https://127.0.0.1:{api_port}"
        try:
            etcd = start_etcd(layout, ports, programs["etcd"])
            server = start_apiserver(layout, ports, programs["kube-apiserver"], BARE)
            wait_ready(api_of(layout, url), [etcd, server], layout)
            break
        except LocalClusterError:
            if attempt == PORT_ATTEMPTS:
                raise
            processes.stop(processes.recorded(layout.pids), grace_s=STOP_GRACE_S)
            shutil.rmtree(layout.root / "etcd", ignore_errors=True)
    kubeconfig.write(layout.kubeconfig, url=url, certs=layout.certs, name="admin")
    return ControlPlane(
        url=url, kubeconfig=layout.kubeconfig, kubectl=programs["kubectl"], audit_log=layout.audit_log, logs=layout.logs
    )


def kill_apiserver(plane: ControlPlane) -> Ended:
    """End the API server without warning."""
    return processes.take_away("kube-apiserver", pids=Layout(root=plane.logs.parent).pids)


def revive_apiserver(plane: ControlPlane, ended: Ended) -> None:
    """Start it again where it was, with what etcd kept; returns when it is ready."""
    layout = Layout(root=plane.logs.parent)
    record = processes.bring_back(ended, pids=layout.pids, logs=layout.logs)
    wait_ready(api_of(layout, plane.url), [record], layout)


def _clear(layout: Layout) -> None:
    processes.stop([*processes.recorded(layout.pids), *processes.marked(layout.root)], grace_s=STOP_GRACE_S)
    shutil.rmtree(layout.root, ignore_errors=True)


def sweep(homes: Path) -> None:
    """Stop bare control planes whose owner was killed before it could do so itself."""
    for home in homes.glob("*"):
        try:
            owner = Record(**json.loads((home / "owner").read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if not processes.alive(owner):
            _clear(Layout(root=home))
