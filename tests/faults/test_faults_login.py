"""A token that is replaced and revoked while the operator runs: it goes on with the new one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.operator_plane import eventually, kubectl
from apiserver.operator_process import operator
from faults.scene import scene
from imageedit_operator.kube.client import KubeClient
from localcluster.controlplane import ControlPlane

User = Callable[[str], dict[str, Any]]


def issue(plane: ControlPlane, namespace: str, name: str) -> str:
    """A token of the operator's account that lives as long as a Secret of this name."""
    kubectl(plane, "-n", namespace, "create", "secret", "generic", name)
    bound = ("--bound-object-kind", "Secret", "--bound-object-name", name)
    return kubectl(plane, "-n", namespace, "create", "token", "operator", *bound).strip()


async def revoke(plane: ControlPlane, namespace: str, name: str, token: str, scratch: Path) -> None:
    """Returns when the apiserver, which remembers tokens for seconds, refuses this one."""
    kubectl(plane, "-n", namespace, "delete", "secret", name)
    write(plane, scratch, {"token": token})

    async def refused() -> bool | None:
        try:
            kubectl(plane, "--kubeconfig", str(scratch), "get", "pods", "-n", namespace)
        except subprocess.CalledProcessError as error:
            return True if "Unauthorized" in error.stderr or "logged in" in error.stderr else None
        return None

    await eventually(refused, what="the end of the old token")


def write(plane: ControlPlane, path: Path, user: dict[str, Any]) -> None:
    """The admin's kubeconfig with another user."""
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = user
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("kept_in", ["the kubeconfig", "a file of its own"])
async def test_a_rotated_token_is_taken_up_without_a_restart(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path, kept_in: str
) -> None:
    kubeconfig, token_file = tmp_path / "kubeconfig", tmp_path / "token"

    def hand_over(token: str) -> None:
        token_file.write_text(token)
        write(plane, kubeconfig, {"token": token} if kept_in == "the kubeconfig" else {"tokenFile": str(token_file)})

    async with scene(kube) as stage:
        account = f"{stage.namespace}:operator"
        kubectl(plane, "-n", stage.namespace, "create", "serviceaccount", "operator")
        role = ("--clusterrole", "cluster-admin", "--serviceaccount", account)
        kubectl(plane, "create", "clusterrolebinding", f"operator-{stage.namespace}", *role)
        first = issue(plane, stage.namespace, "first")
        hand_over(first)
        async with operator(kubeconfig, *stage.flags()) as running:
            await stage.create()
            await stage.complete()
            hand_over(issue(plane, stage.namespace, "second"))
            await revoke(plane, stage.namespace, "first", first, tmp_path / "scratch")
            await stage.roll("next")
            await stage.complete()
            assert (await running.get("/healthz"))[0] == 200
            assert running.process.returncode is None, running.messages()
