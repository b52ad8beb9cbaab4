"""Brings the embedded cluster up from nothing; takes away what it started when a step fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from localcluster import (
    addresses,
    binaries,
    containers,
    controllers,
    controlplane,
    health,
    hosttools,
    images,
    kubeconfig,
    network,
    node,
    processes,
    prometheus,
    state,
    teardown,
)
from localcluster import cards as card_file
from localcluster.addresses import CLUSTER_PORTS, NODE_ADDRESS
from localcluster.api import Api
from localcluster.errors import LocalClusterError
from localcluster.paths import CHECKOUT, Layout, cache_dir
from localcluster.processes import Record
from localcluster.progress import Progress

NODE_TIMEOUT_S = 60.0
DEVICE_PLUGINS = teardown.KUBELET_FOLDER / "device-plugins"
"""The kubelet's fixed folder for plugins, whatever its root folder is."""


def require_root() -> None:
    """Raise LocalClusterError for anyone but root."""
    if os.geteuid() != 0:
        raise LocalClusterError(
            "the embedded cluster needs root: run as root, or set KUBECONFIG to use a cluster of yours"
        )


def build_up(layout: Layout, *, venv: Path, cards: int, scrape_interval_s: float, progress: Progress) -> None:
    """A new cluster; after a LocalClusterError the machine is as it was, and the logs are kept in the cache folder."""
    require_root()
    # What forbids a cluster here is said before the minutes of building, not after them.
    addresses.require_free(CLUSTER_PORTS)
    require_no_other_node()
    cache_dir().mkdir(parents=True, exist_ok=True)
    hosttools.ensure(progress, log=cache_dir() / "apt.log")
    programs = binaries.ensure(binaries.WHOLE_CLUSTER, progress)
    before = state.State(
        venv=str(venv), checkout=str(CHECKOUT), sysctls=network.read_sysctls(), absent_folders=state.absent_folders()
    )
    try:
        layout.create()
        state.write(layout, before)
        _start(layout, programs, venv=venv, cards=cards, scrape_interval_s=scrape_interval_s, progress=progress)
        state.write(layout, replace(before, ready=True))
    except BaseException as error:
        kept = cache_dir() / "failed-logs"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(layout.logs, kept, ignore_dangling_symlinks=True)
        progress(f"{end_words(error)} (logs kept in {kept})")
        teardown.tear_down(layout)
        raise


def end_words(error: BaseException) -> str:
    """Why a start is taken back; Ctrl-C is no failure."""
    why = "broken off" if isinstance(error, KeyboardInterrupt) else "failed"
    return f"{why}; removing what was started"


def require_no_other_node() -> None:
    """Raise LocalClusterError where a kubelet runs already: device plugins and pod logs have fixed places."""
    if (DEVICE_PLUGINS / "kubelet.sock").exists():
        raise LocalClusterError(
            f"a kubelet uses {teardown.KUBELET_FOLDER} already: set KUBECONFIG to use its cluster, or stop it "
            f"and remove {DEVICE_PLUGINS}/kubelet.sock"
        )


def _start(
    layout: Layout,
    programs: Mapping[str, Path],
    *,
    venv: Path,
    cards: int,
    scrape_interval_s: float,
    progress: Progress,
) -> None:
    progress("starting containerd, etcd and the API server")
    network.add_node_address()
    containerd = containers.start(layout, venv)
    api = _start_control_plane(layout, programs)
    _make_identities(layout)
    containers.wait_ready(layout, containerd)
    images.load(layout, programs["pause"])
    what = "the API server to be ready"
    processes.wait_for(
        what,
        lambda: api.answers("/readyz"),
        timeout_s=controlplane.START_TIMEOUT_S,
        needs=_started(layout),
        logs=layout.logs,
    )
    progress("starting the controllers, the node and Prometheus")
    card_file.set_count(layout.cards, cards)
    _start_node(layout, programs)
    prometheus.start(layout, scrape_interval_s=scrape_interval_s)
    _add_plain_runtime(api)
    _wait_for_node(layout, api, cards=cards)


def _start_control_plane(layout: Layout, programs: Mapping[str, Path]) -> Api:
    controlplane.make_certs(layout, ("127.0.0.1", NODE_ADDRESS, addresses.API_SERVICE))
    controlplane.start_etcd(layout, CLUSTER_PORTS, programs["etcd"])
    flags = {
        "bind-address": NODE_ADDRESS,  # the host and the pods reach it, the network outside does not
        "advertise-address": NODE_ADDRESS,
        "enable-admission-plugins": "NodeRestriction",
        "kubelet-preferred-address-types": "InternalIP",
        "kubelet-certificate-authority": str(layout.certs / "ca.crt"),
        "kubelet-client-certificate": str(layout.certs / "admin.crt"),
        "kubelet-client-key": str(layout.certs / "admin.key"),
    }
    controlplane.start_apiserver(layout, CLUSTER_PORTS, programs["kube-apiserver"], flags)
    return controlplane.api_of(layout, health.api_url())


def _make_identities(layout: Layout) -> None:
    controllers.make_identities(layout, health.api_url())
    node.make_identities(layout, health.api_url())
    kubeconfig.write(layout.kubeconfig, url=health.api_url(), certs=layout.certs, name="admin")


def _start_node(layout: Layout, programs: Mapping[str, Path]) -> None:
    controllers.start_controller_manager(layout, programs["kube-controller-manager"])
    controllers.start_scheduler(layout, programs["kube-scheduler"])
    node.start_kubelet(layout, programs["kubelet"])
    node.start_proxy(layout, programs["kube-proxy"])
    processes.start_python(
        "device-plugin",
        "localcluster.device_plugin",
        (str(layout.cards), str(DEVICE_PLUGINS)),
        pids=layout.pids,
        logs=layout.logs,
    )


def _add_plain_runtime(api: Api) -> None:
    """Pods of real images name this RuntimeClass and get no mounts from the host."""
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": containers.PLAIN_RUNTIME},
        "handler": containers.PLAIN_RUNTIME,
    }
    api.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime)


def _wait_for_node(layout: Layout, api: Api, *, cards: int) -> None:
    needs = _started(layout)

    def wait(what: str, check: Callable[[], bool]) -> None:
        processes.wait_for(what, check, timeout_s=NODE_TIMEOUT_S, needs=needs, logs=layout.logs)

    wait("Prometheus to answer", prometheus.ready)
    wait("the default service account", lambda: api.answers("/api/v1/namespaces/default/serviceaccounts/default"))
    wait("the node to be ready", lambda: health.node_ready(api))
    wait(f"{cards} cards on the node", lambda: health.allocatable_cards(api) == cards)


def _started(layout: Layout) -> list[Record]:
    return processes.recorded(layout.pids)
