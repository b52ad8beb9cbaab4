"""Programs that Debian packages bring: found, or installed by root without starting any service."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from localcluster.errors import LocalClusterError
from localcluster.progress import Progress, run_told

PACKAGE_OF = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "iptables-save": "iptables",
    "ip6tables-save": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mount": "mount",
    "umount": "mount",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "openssl": "openssl",
}
CNI_PLUGINS = Path("/usr/lib/cni")
CNI_PACKAGE = "containernetworking-plugins"
POLICY = Path("/usr/sbin/policy-rc.d")
SEARCH = os.pathsep.join(("/usr/sbin", "/sbin"))


def search_path() -> str:
    """PATH with the folders of system programs, which a plain user's PATH often lacks."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), SEARCH))


def program(name: str) -> str:
    """The path of a program; raises LocalClusterError with the command that installs it."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise LocalClusterError(f"{name} is missing: as root run: apt-get install {PACKAGE_OF.get(name, name)}")
    return found


def missing_packages(programs: Sequence[str] = tuple(PACKAGE_OF)) -> list[str]:
    """The Debian packages whose programs are not on this machine."""
    packages = {PACKAGE_OF[name] for name in programs if shutil.which(name, path=search_path()) is None}
    if not (CNI_PLUGINS / "bridge").exists():
        packages.add(CNI_PACKAGE)
    return sorted(packages)


def ensure(progress: Progress, *, log: Path) -> None:
    """Install what is missing, or raise LocalClusterError with the command that does."""
    if packages := missing_packages():
        install(packages, progress, log=log)
    if left := missing_packages():
        raise LocalClusterError(f"apt-get did not bring {' '.join(left)}: see {log}")


def install(packages: Sequence[str], progress: Progress, *, log: Path) -> None:
    """Install Debian packages as root, or raise LocalClusterError with the command that does."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise LocalClusterError(f"programs are missing: as root run: apt-get install {' '.join(packages)}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", *packages]
    what = f"installing {' '.join(packages)}"
    with services_stay_stopped():
        if (
            run_told("reading the package lists", ["apt-get", "update"], progress=progress, env=environment, log=log)
            != 0
        ):
            progress("the package lists could not be refreshed; trying with those that are here")
        run_told(what, command, progress=progress, env=environment, log=log)


@contextmanager
def services_stay_stopped() -> Iterator[None]:
    """Debian packages start their services unless this policy forbids it; an existing policy is left as it is."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink(missing_ok=True)
