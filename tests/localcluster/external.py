"""A cluster of the user's own, named by KUBECONFIG: used as it is, nothing is built or started."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from localcluster import binaries
from localcluster.errors import LocalClusterError
from localcluster.paths import cache_dir

ANSWER_TIMEOUT_S = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class External:
    """What we know of it."""

    server: str
    kubectl: Path
    helm: Path
    prometheus_url: str
    node_address: str


def kubeconfig() -> Path | None:
    """The file of KUBECONFIG, unless IMAGEEDIT_CLUSTER is set or the file is the embedded cluster's own."""
    named = os.environ.get("KUBECONFIG")
    if not named or os.environ.get("IMAGEEDIT_CLUSTER"):
        return None
    file = Path(named).absolute()
    return None if file == cache_dir() / "cluster" / "kubeconfig" else file


def describe(file: Path) -> External:
    """Check that the cluster answers; raises LocalClusterError when it or a program is missing."""
    kubectl, helm = _program("kubectl"), _program("helm")
    nodes = json.loads(_kubectl(kubectl, file, "get", "nodes", "-o", "json"))["items"]
    server = _kubectl(kubectl, file, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    addresses = [
        address["address"]
        for node in nodes
        for address in node["status"].get("addresses", [])
        if address["type"] == "InternalIP"
    ]
    return External(
        server=server,
        kubectl=kubectl,
        helm=helm,
        prometheus_url=os.environ.get("IMAGEEDIT_PROMETHEUS_URL", ""),
        node_address=addresses[0] if addresses else "",
    )


def _program(name: str) -> Path:
    found = binaries.on_path(name)
    if found is None:
        raise LocalClusterError(
            f"{name} is not on PATH: install it, or unset KUBECONFIG to have the embedded cluster build it"
        )
    return found


def _kubectl(kubectl: Path, file: Path, *args: str) -> str:
    argv = [str(kubectl), f"--kubeconfig={file}", f"--request-timeout={ANSWER_TIMEOUT_S}s", *args]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        raise LocalClusterError(
            f"the cluster of KUBECONFIG={file} cannot be used ({reason}): start it, or unset KUBECONFIG"
        )
    return done.stdout
