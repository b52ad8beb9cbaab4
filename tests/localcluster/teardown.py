"""Takes the cluster off the machine, whatever state it is in: nothing here needs a working cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterable
from pathlib import Path

from localcluster import network, processes
from localcluster.addresses import CNI_NETWORK
from localcluster.errors import LocalClusterError
from localcluster.paths import Layout
from localcluster.state import SHARED_FOLDERS, State, read

STOP_GRACE_S = 1.0
END_TIMEOUT_S = 15.0
CGROUPS = Path("/sys/fs/cgroup")
KUBELET_FOLDER = Path("/var/lib/kubelet")
LOG_LINKS = Path("/var/log/containers")
CNI_RESULTS = Path("/var/lib/cni/results")


def traces(layout: Layout) -> bool:
    """Whether anything of a cluster is there, even when its state folder was deleted by hand."""
    return layout.root.exists() or bool(processes.marked(layout.root))


def tear_down(layout: Layout) -> None:
    """Processes, containers, mounts, devices, chains, settings, folders, in this order; raises LocalClusterError."""
    before = read(layout)
    containers = container_ids(layout)
    shim_sockets = addresses_of_shims(layout)
    stop_host_processes(layout)
    stop_containers(layout, containers)
    unmount_below(layout.root)
    remove_cgroups(containers)
    network.remove_devices()
    network.remove_chains()
    if before is not None:
        network.restore_sysctls(before.sysctls)
    remove_shared_files(layout, containers, shim_sockets)
    remove_shared_folders(before)
    remove_root(layout)


def stop_host_processes(layout: Layout) -> None:
    """Everything that was recorded; the kubelet and containerd first, so that nothing starts containers anew."""
    records = processes.recorded(layout.pids)
    first = [record for record in records if record.name in {"kubelet", "containerd"}]
    processes.stop(first, grace_s=STOP_GRACE_S)
    processes.stop([record for record in records if record not in first], grace_s=STOP_GRACE_S)
    processes.stop(processes.marked(layout.root), grace_s=STOP_GRACE_S)


def container_ids(layout: Layout) -> list[str]:
    """Every container that our containerd started and has not cleaned up."""
    return sorted({folder.name for folder in _tasks(layout) if folder.is_dir()} | set(shims(layout).values()))


def addresses_of_shims(layout: Layout) -> list[Path]:
    """The sockets of the shims: they lie outside our folders, under fixed names."""
    files = [folder / "address" for folder in _tasks(layout)]
    return [Path(file.read_text().removeprefix("unix://")) for file in files if file.exists()]


def _tasks(layout: Layout) -> Iterable[Path]:
    return (layout.containerd_state / "io.containerd.runtime.v2.task").glob("*/*")


def stop_containers(layout: Layout, containers: list[str]) -> None:
    """Kill our shims and what runs in our containers' cgroups, until none is left."""

    def none_left() -> bool:
        pids = set(shims(layout)) | contained_pids(containers)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    processes.wait_for("the containers to end", none_left, timeout_s=END_TIMEOUT_S)


def shims(layout: Layout) -> dict[int, str]:
    """The shims of our containerd, known by its socket in their arguments, with the container each was started for."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(words[0]).name.startswith("containerd-shim") and str(layout.containerd_socket) in words:
                found[int(folder.name)] = words[words.index("-id") + 1]
    return found


def contained_pids(containers: list[str]) -> set[int]:
    """The processes in the cgroups of these containers."""
    found: set[int] = set()
    for folder in cgroups_of(containers):
        for file in (folder / "cgroup.procs", *folder.glob("**/cgroup.procs")):
            with contextlib.suppress(OSError):
                found |= {int(line) for line in file.read_text().split()}
    return {pid for pid in found if processes.start_ticks(pid) is not None}


def cgroups_of(containers: list[str]) -> list[Path]:
    """Their folders in every hierarchy: one a controller in cgroup v1, one in all in v2."""
    parents = [CGROUPS / "k8s.io", *CGROUPS.glob("*/k8s.io")]
    return [parent / name for parent in parents for name in containers if (parent / name).is_dir()]


def remove_cgroups(containers: list[str]) -> None:
    """The emptied cgroups, and their parent when nobody else uses it."""
    for folder in cgroups_of(containers):
        for inner in sorted((path for path in folder.glob("**/") if path.is_dir()), key=lambda path: -len(path.parts)):
            with contextlib.suppress(OSError):
                inner.rmdir()
    for parent in [CGROUPS / "k8s.io", *CGROUPS.glob("*/k8s.io")]:
        with contextlib.suppress(OSError):
            parent.rmdir()


def mounts_below(root: Path) -> list[str]:
    """Mount points below a folder, innermost first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return sorted((point for point in points if Path(point).is_relative_to(root)), key=len, reverse=True)


def unmount_below(root: Path) -> None:
    """Unmount, also what is stacked or still in use."""
    for point in mounts_below(root):
        network.run("umount", "--lazy", point, check=False)


def remove_shared_files(layout: Layout, containers: list[str], shim_sockets: list[Path]) -> None:
    """What a kubelet, containerd and CNI put under fixed names, as far as it is ours."""
    for socket in shim_sockets:
        socket.unlink(missing_ok=True)
    for result in CNI_RESULTS.glob("*"):
        if result.name.startswith(f"{CNI_NETWORK}-") or any(name in result.name for name in containers):
            result.unlink(missing_ok=True)
    for link in LOG_LINKS.glob("*.log"):
        if link.is_symlink() and Path(os.readlink(link)).is_relative_to(layout.root):
            link.unlink()


def remove_shared_folders(before: State | None) -> None:
    """Those that were not there before; which of them, if that record is lost, are taken to be all that are empty.

    The plugin folder's files are ours in any case: `up` refuses a machine where a kubelet's socket is there.
    """
    absent = SHARED_FOLDERS if before is None else before.absent_folders
    for file in (KUBELET_FOLDER / "device-plugins").glob("*"):
        file.unlink(missing_ok=True)
    for folder in (str(KUBELET_FOLDER / "device-plugins"), *sorted(absent, key=len, reverse=True)):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def remove_root(layout: Layout) -> None:
    """The state folder, unless something is still mounted in it: removing through a mount deletes the host's files."""
    if left := mounts_below(layout.root):
        raise LocalClusterError(f"{left[0]} cannot be unmounted: unmount it by hand, then run down again")
    shutil.rmtree(layout.root, ignore_errors=True)
    if layout.root.exists():
        shutil.rmtree(layout.root)
