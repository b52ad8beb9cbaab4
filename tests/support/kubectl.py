"""A few kubectl and helm calls for the demo and the cluster tests, as plain functions of a `Kubectl` value."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND_TIMEOUT_S = 120.0


class CommandFailed(Exception):
    """A kubectl or helm call failed; the text says which and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kubectl:
    """Where the programs are and which cluster they talk to."""

    kubeconfig: Path
    kubectl: Path
    helm: Path

    def run(self, *args: str, stdin: str | None = None, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """The output of `kubectl args`; raises CommandFailed with its error text."""
        return self._call(self.kubectl, args, stdin=stdin, timeout_s=timeout_s)

    def run_helm(self, *args: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """The output of `helm args`; raises CommandFailed with its error text."""
        return self._call(self.helm, args, stdin=None, timeout_s=timeout_s)

    def get(self, *args: str) -> dict[str, Any]:
        """`kubectl get args -o json`, parsed."""
        return dict(json.loads(self.run("get", *args, "-o", "json")))

    def exists(self, *args: str) -> bool:
        """True when `kubectl get args` finds the object."""
        return bool(self.run("get", *args, "--ignore-not-found", "-o", "name").strip())

    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Server-side apply of one manifest."""
        self.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(manifest))

    def merge(self, kind: str, name: str, namespace: str, patch: Mapping[str, Any]) -> None:
        """Merge patch of one object."""
        self.run("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(patch))

    def _call(self, program: Path, args: tuple[str, ...], *, stdin: str | None, timeout_s: float) -> str:
        done = subprocess.run(
            [str(program), *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=dict(os.environ, KUBECONFIG=str(self.kubeconfig)),
        )
        if done.returncode != 0:
            raise CommandFailed(f"{program.name} {' '.join(args)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout


def condition(resource: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The condition of that type, or an empty one."""
    found = [c for c in resource.get("status", {}).get("conditions", []) if c["type"] == kind]
    return dict(found[0]) if found else {"type": kind, "status": "Unknown", "reason": "", "message": ""}


def is_current(resource: Mapping[str, Any]) -> bool:
    """The status speaks of the present generation of the spec."""
    return bool(resource.get("status", {}).get("observedGeneration") == resource["metadata"]["generation"])


def wait_for(what: str, check: Callable[[], bool], *, timeout_s: float, pause_s: float = 0.5) -> float:
    """Poll until `check` holds; the seconds it took. Raises TimeoutError that names what was awaited."""
    started = time.monotonic()
    while not check():
        if time.monotonic() - started > timeout_s:
            raise TimeoutError(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(pause_s)
    return time.monotonic() - started
