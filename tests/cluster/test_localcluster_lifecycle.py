"""The cluster's own life: up, down, and down after a crash. These tests need the machine for themselves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.web_pods import web_pod
from localcluster import cluster as local
from localcluster import controlplane, external, network, processes
from localcluster.paths import cluster_layout
from localcluster.state import SHARED_FOLDERS
from support.kubectl import Kubectl, wait_for

WAIT_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What a cluster changes about a machine."""

    links: tuple[str, ...]
    routes: tuple[str, ...]
    mounts: tuple[str, ...]
    rules: tuple[str, ...]
    sysctls: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    programs: tuple[str, ...]


def machine() -> Machine:
    """The machine now. Empty iptables tables and counters are left out, as are foreign programs."""
    rules = [line for family in ("iptables-save", "ip6tables-save") for line in network.run(family).splitlines()]
    return Machine(
        links=tuple(re.sub(r"^\d+: ", "", line) for line in network.run("ip", "-o", "link").splitlines()),
        routes=tuple(network.run("ip", "route").splitlines()),
        mounts=tuple(mounts()),
        rules=tuple(line for line in rules if line.startswith("-A") or re.match(r":(KUBE|CNI)-", line)),
        sysctls=tuple(network.read_sysctls().items()),
        folders=tuple(folder for folder in SHARED_FOLDERS if Path(folder).exists()),
        programs=tuple(programs()),
    )


def mounts() -> list[str]:
    """Mount points in places where a node mounts things; an image build beside the test may mount elsewhere."""
    places = (str(cluster_layout().root), *SHARED_FOLDERS, "/run/netns", "/sys/fs/cgroup")
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.startswith(places)]


def programs() -> list[str]:
    """Living processes that name the state folder, our containerd or the pause program."""
    lines = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    root = str(cluster_layout().root)
    return [line for line in lines if not line.startswith("Z") and (root in line or line.endswith("/pause"))]


@pytest.fixture(autouse=True)
def nothing_runs() -> Iterator[None]:
    """No cluster before, none after."""
    if external.kubeconfig() is not None:
        pytest.skip("KUBECONFIG names a cluster that is not ours to take down")
    if cluster_layout().root.exists():
        pytest.skip("a cluster runs already: take it down first (python -m localcluster down)")
    yield
    local.down()


def up_with_a_pod() -> None:
    """A cluster that has mounts, devices, containers and chains."""
    running = local.up(cards=1)
    kubectl = Kubectl(kubeconfig=running.kubeconfig, kubectl=running.kubectl, helm=running.helm)
    kubectl.apply(web_pod("web", "default"))

    def runs() -> bool:
        return bool(kubectl.get("pod", "web")["status"].get("phase") == "Running")

    wait_for("a pod to run", runs, timeout_s=WAIT_S)


def kill(*names: str) -> None:
    """kill -9 of host processes of the cluster; returns when they are dead."""
    records = {record.name: record for record in processes.recorded(cluster_layout().pids)}
    for name in names:
        os.kill(records[name].pid, signal.SIGKILL)
    wait_for("their end", lambda: not any(processes.alive(records[name]) for name in names), timeout_s=WAIT_S)


def test_down_leaves_the_machine_as_it_was() -> None:
    before = machine()
    up_with_a_pod()
    assert machine() != before
    local.down()
    assert machine() == before
    assert not cluster_layout().root.exists()


@pytest.mark.parametrize(
    "victims", [("containerd", "kubelet"), ("etcd", "kube-apiserver"), ("kube-proxy", "device-plugin")]
)
def test_down_is_complete_after_a_crash(victims: tuple[str, ...]) -> None:
    before = machine()
    up_with_a_pod()
    kill(*victims)
    local.down()
    assert machine() == before


def test_up_replaces_a_half_dead_cluster() -> None:
    up_with_a_pod()
    kill("kubelet")
    running = local.up(cards=2)
    kubectl = Kubectl(kubeconfig=running.kubeconfig, kubectl=running.kubectl, helm=running.helm)
    assert kubectl.get("pods")["items"] == []
    (node,) = kubectl.get("nodes")["items"]
    assert node["status"]["allocatable"]["huawei.com/Ascend910"] == "2"


def test_what_was_started_but_not_recorded_is_found_by_its_mark() -> None:
    before = machine()
    up_with_a_pod()
    for name in ("etcd", "kubelet", "prometheus"):
        (cluster_layout().pids / f"{name}.json").unlink()
    local.down()
    assert machine() == before


def test_down_without_a_cluster_does_nothing() -> None:
    before = machine()
    local.down()
    assert machine() == before


def test_two_bare_control_planes_run_side_by_side_and_end_with_their_tests() -> None:
    with controlplane.up_only() as first, controlplane.up_only() as second:
        assert first.url != second.url
        for server in (first, second):
            kubectl = Kubectl(kubeconfig=server.kubeconfig, kubectl=server.kubectl, helm=Path("helm"))
            kubectl.run("create", "configmap", "written", "-n", "default")
            assert json.loads(kubectl.run("get", "--raw", "/version"))["gitVersion"].startswith("v1.")
    assert not first.kubeconfig.exists()
    assert not second.kubeconfig.exists()
