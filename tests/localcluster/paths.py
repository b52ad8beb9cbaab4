"""Where everything lies: one cache folder outside the checkout, one state folder inside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from localcluster.errors import LocalClusterError

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parents[1]
LONGEST_STATE_PATH = 60
"""Unix socket paths end at 107 bytes, and the kubelet and containerd put theirs below the state folder."""


def cache_dir() -> Path:
    """`IMAGEEDIT_CACHE`, or ~/.cache/imageedit."""
    return Path(os.environ.get("IMAGEEDIT_CACHE") or Path.home() / ".cache" / "imageedit").absolute()


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The folders of one cluster or one bare control plane, all below `root`."""

    root: Path

    @property
    def certs(self) -> Path:
        return self.root / "certs"

    @property
    def pids(self) -> Path:
        return self.root / "pids"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    @property
    def containerd_socket(self) -> Path:
        return self.root / "containerd.sock"

    @property
    def containerd_state(self) -> Path:
        return self.root / "containerd" / "state"

    @property
    def kubelet_root(self) -> Path:
        return self.root / "kubelet"

    @property
    def cards(self) -> Path:
        return self.config / "cards.json"

    @property
    def targets(self) -> Path:
        return self.config / "targets.json"

    def create(self) -> None:
        """Make the folders; the root is readable by its owner only, since it holds keys."""
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.certs, self.pids, self.logs, self.config):
            folder.mkdir(exist_ok=True)
        self.certs.chmod(0o700)


def cluster_layout() -> Layout:
    """The layout of this machine's one cluster; raises LocalClusterError when its path is too long for sockets."""
    root = cache_dir() / "cluster"
    if len(str(root)) > LONGEST_STATE_PATH:
        raise LocalClusterError(
            f"{root} is too long a path for the sockets below it: set IMAGEEDIT_CACHE to a folder of at most "
            f"{LONGEST_STATE_PATH - len('/cluster')} characters"
        )
    return Layout(root=root)
