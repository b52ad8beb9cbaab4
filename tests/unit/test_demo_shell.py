"""What the demo leaves for a shell lets the commands of docs/ be typed as they stand there."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import yaml

from demo import shell

LOGIN = {"contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}], "current-context": "local"}


def program(path: Path, prints: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {prints}\n")
    path.chmod(0o755)
    return path


def left(folder: Path) -> Path:
    programs = shell.Programs(
        kubectl=program(folder / "cache" / "kubectl", 'cluster of "$KUBECONFIG"'),
        helm=program(folder / "cache" / "helm", "charts"),
        python=program(folder / "a venv" / "python", '"$PYTHONPATH" "$@"'),
        operator=folder / "operator src",
    )
    return shell.leave(folder / "build here", programs, login=LOGIN, namespace="shop")


def said(env: Path, command: str) -> str:
    script = f'. "{env}" && {command}'
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=20).stdout.strip()


def test_a_shell_finds_kubectl_and_its_login(tmp_path: Path) -> None:
    env = left(tmp_path)
    assert said(env, "kubectl get ied") == f"cluster of {env.parent / 'kubeconfig'}"


def test_a_shell_finds_the_plugin_of_the_checkout(tmp_path: Path) -> None:
    env = left(tmp_path)
    words = f"{tmp_path / 'operator src'} -m imageedit_operator.cli status a b"
    assert said(env, "kubectl-imageedit status 'a b'") == words


def test_the_login_begins_in_the_namespace_of_the_demo(tmp_path: Path) -> None:
    kubeconfig = json.loads((left(tmp_path).parent / "kubeconfig").read_text())
    assert [context["context"]["namespace"] for context in kubeconfig["contexts"]] == ["shop"]


def test_nobody_else_may_read_the_login(tmp_path: Path) -> None:
    kubeconfig = left(tmp_path).parent / "kubeconfig"
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def test_a_second_demo_writes_it_anew(tmp_path: Path) -> None:
    assert left(tmp_path) == left(tmp_path)


def test_the_resource_is_a_file_that_can_be_applied_again(tmp_path: Path) -> None:
    manifest: dict[str, Any] = {"kind": "ImageEditDeployment", "metadata": {"name": "edit"}, "spec": {"a": "2026-11-a"}}
    file = shell.write_manifest(tmp_path, manifest)
    assert (file.name, yaml.safe_load(file.read_text())) == ("edit.yaml", manifest)
