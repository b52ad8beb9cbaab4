"""The Kubernetes programs, etcd and helm, built once from pinned Go modules and cached by the hash of the pins."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster import golang
from localcluster.errors import LocalClusterError
from localcluster.paths import PACKAGE, cache_dir
from localcluster.progress import Progress, run_told, tail

KUBERNETES_VERSION = "v1.34.4"
STRIP = "-s -w"
STAMP = (
    f"{STRIP} -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34"
    " -X k8s.io/component-base/version.gitTreeState=clean"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """One program: the folder of its pins below gomod/, its Go package and linker flags."""

    name: str
    module: str
    package: str
    ldflags: str = STRIP


def _kubernetes(name: str) -> Program:
    return Program(name=name, module="kubernetes", package=f"k8s.io/kubernetes/cmd/{name}", ldflags=STAMP)


PROGRAMS = {
    program.name: program
    for program in (
        _kubernetes("kube-apiserver"),
        _kubernetes("kubelet"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kube-proxy"),
        _kubernetes("kubectl"),
        Program(name="etcd", module="etcd", package="go.etcd.io/etcd/server/v3"),
        Program(name="helm", module="helm", package="helm.sh/helm/v4/cmd/helm"),
        Program(name="kwok", module="kwok", package="sigs.k8s.io/kwok/cmd/kwok"),
        Program(name="pause", module="pause", package="."),
    )
}
WHOLE_CLUSTER = tuple(name for name in PROGRAMS if name != "kwok")
"""What the cluster and the tests need; kwok plays nodes for the benchmark of the operator alone."""
CONTROL_PLANE = ("etcd", "kube-apiserver", "kubectl")


def path_of(name: str) -> Path:
    """Where the program is, or will be once built; `KUBEBUILDER_ASSETS` goes first."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (Path(assets) / name).exists():
        return Path(assets).absolute() / name
    program = PROGRAMS[name]
    digest = hashlib.sha256(program.ldflags.encode())
    for file in sorted(_pins(program).iterdir()):
        if file.name in {"go.mod", "go.sum", "main.go"}:
            digest.update(file.read_bytes())
    return cache_dir() / "bin" / digest.hexdigest()[:16] / name


def ensure(names: Sequence[str], progress: Progress) -> dict[str, Path]:
    """The paths of these programs, after building those that are not cached; raises LocalClusterError."""
    if all(path_of(name).exists() for name in names):
        return {name: path_of(name) for name in names}
    with _one_builder(progress):
        missing = [name for name in names if not path_of(name).exists()]
        for number, name in enumerate(missing, start=1):
            _build(PROGRAMS[name], label=f"building {name} ({number} of {len(missing)})", progress=progress)
    return {name: path_of(name) for name in names}


def _build(program: Program, *, label: str, progress: Progress) -> None:
    go = golang.ensure(progress)
    target = path_of(program.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    log = cache_dir() / "build.log"
    environment = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS=os.environ.get("GOFLAGS", "-buildvcs=false"))
    environment.pop("GOROOT", None)  # it may name another toolchain than the one that was chosen
    if program.name == "pause":
        environment["CGO_ENABLED"] = "0"  # it runs in an image that holds nothing else
    command = [go, "build", "-trimpath", "-ldflags", program.ldflags, "-o", str(unfinished), program.package]
    code = run_told(label, command, progress=progress, env=environment, log=log, cwd=_pins(program))
    if code != 0:
        raise LocalClusterError(f"{program.name} could not be built; the end of {log}:\n{tail(log)}")
    unfinished.replace(target)


def _pins(program: Program) -> Path:
    return PACKAGE / "gomod" / program.module


@contextmanager
def _one_builder(progress: Progress) -> Iterator[None]:
    """Two builds at once would do the same work twice: the second waits."""
    folder = cache_dir() / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process builds the programs; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def on_path(name: str) -> Path | None:
    """The program of that name on PATH or in the cache, without building it."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    return path_of(name) if path_of(name).exists() else None
