"""Processes of containers, as the node sees them: to kill one for real, and to weigh one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil


def processes_of(container_id: str) -> list[psutil.Process]:
    """The processes in a container's control group, oldest first; the first is its process 1."""
    bare = container_id.removeprefix("containerd://")
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                inside = bare in (folder / "cgroup").read_text()
            except OSError:  # it ended while we looked
                continue
            if inside:
                found.append(psutil.Process(int(folder.name)))
    return sorted(found, key=lambda process: (process.create_time(), process.pid))


def kill_container(container_id: str) -> None:
    """SIGKILL to the container's process 1, as an out-of-memory kill would be."""
    os.kill(processes_of(container_id)[0].pid, signal.SIGKILL)


def kill_worker(container_id: str) -> None:
    """SIGKILL to the server's worker process, the largest child of its process 1."""
    first, *others = processes_of(container_id)
    children = [process for process in others if process.ppid() == first.pid]
    os.kill(max(children, key=lambda process: process.memory_info().rss).pid, signal.SIGKILL)


def resident_bytes(container_id: str) -> int:
    """Resident memory of all processes of a container."""
    return sum(process.memory_info().rss for process in processes_of(container_id))
