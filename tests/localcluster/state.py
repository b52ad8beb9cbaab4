"""What `up` writes down before it touches the machine, so that `down` can put it back."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster.paths import Layout, cache_dir

SHARED_FOLDERS = (
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/lib/cni",
    "/var/lib/cni/results",
    "/run/containerd",
    "/run/containerd/s",
    "/run/cni",
    "/opt/containerd",
)
"""Folders with fixed names that a kubelet, containerd or CNI makes; those that were there before stay."""


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """The machine as it was, and what the cluster was made for."""

    venv: str
    checkout: str
    sysctls: dict[str, str]
    absent_folders: list[str]
    ready: bool = False


def absent_folders() -> list[str]:
    """Those of the shared folders that do not exist now."""
    return [folder for folder in SHARED_FOLDERS if not Path(folder).exists()]


def write(layout: Layout, state: State) -> None:
    """Replace the state file in one step."""
    unfinished = layout.root / "state.unfinished"
    unfinished.write_text(json.dumps(asdict(state), indent=1))
    unfinished.replace(layout.root / "state.json")


def read(layout: Layout) -> State | None:
    """The state of the cluster, None when there is none or its file is broken."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return State(**json.loads((layout.root / "state.json").read_text()))
    return None


@contextmanager
def locked() -> Iterator[None]:
    """One `up` or `down` at a time."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
