"""A network namespace of the run's own, in which every address of the pod range is this machine.

The namespace ends with the last process in it, so nothing is left behind, however the run ends.
"""

from __future__ import annotations

import os
import subprocess
import sys

from localcluster.hosttools import program

POD_RANGE = "198.19.0.0/16"
"""The upper half of what is set aside for benchmarks; the local cluster of the tests has the lower."""
INSIDE = "IMAGEEDIT_BENCH_NAMESPACE"


def inside() -> bool:
    """Whether this process runs in the namespace already."""
    return INSIDE in os.environ


def enter(module: str) -> None:
    """Replaces this process by the same program in the namespace; needs root."""
    environment = {**os.environ, INSIDE: "1"}
    unshare = program("unshare")
    os.execve(unshare, [unshare, "--net", sys.executable, "-m", module, *sys.argv[1:]], environment)


def route_pods() -> None:
    """Loopback up, and the pod range on it."""
    ip = program("ip")
    subprocess.run([ip, "link", "set", "lo", "up"], check=True)
    subprocess.run([ip, "route", "replace", "local", POD_RANGE, "dev", "lo"], check=True)
