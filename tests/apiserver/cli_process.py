"""`kubectl-imageedit` as a process of its own, as users run it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.operator_plane import LONG_S, ROOT
from localcluster.controlplane import ControlPlane

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "IMAGEEDIT_DEBUG"}}
ENVIRONMENT["PYTHONPATH"] = str(ROOT / "operator/src")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """What `-o json` printed; the test fails with the error text where it printed none."""
        try:
            found: dict[str, Any] = json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"exit {self.code}: {self.err}\n{self.out}") from error
        return found


async def cli(
    kubeconfig: Path | ControlPlane, *arguments: str, stdin: str = "", environment: dict[str, str] | None = None
) -> Ran:
    """One run; the kubeconfig is given by its variable, so that flags can overrule it."""
    path = kubeconfig if isinstance(kubeconfig, Path) else kubeconfig.kubeconfig
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "imageedit_operator.cli", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**ENVIRONMENT, "KUBECONFIG": str(path), **(environment or {})},
    )
    async with asyncio.timeout(LONG_S):
        out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return Ran(code=process.returncode, out=out.decode(), err=err.decode())
