"""What the demo leaves for a shell: kubectl and the plugin in PATH, a login in its namespace, the resource's file.

So that what the pages of docs/ show can be typed as it stands there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from support.system import ROOT

FOLDER = ROOT / "build" / "demo"


@dataclass(frozen=True, kw_only=True, slots=True)
class Programs:
    """What a shell needs, and where it is."""

    kubectl: Path
    helm: Path
    python: Path
    operator: Path
    """The folder that holds the operator's package, and with it the plugin."""


def leave(folder: Path, programs: Programs, *, login: Mapping[str, Any], namespace: str) -> Path:
    """Writes it all into the folder; the file that a shell reads with `. FILE`."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    for program in (programs.kubectl, programs.helm):
        link = bin_folder / program.name
        link.unlink(missing_ok=True)
        link.symlink_to(program)
    plugin = bin_folder / "kubectl-imageedit"
    plugin.write_text(plugin_script(programs))
    plugin.chmod(0o755)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.touch(mode=0o600)  # it holds a key
    kubeconfig.write_text(json.dumps(in_namespace(login, namespace)))
    env = folder / "env"
    env.write_text(env_script(folder))
    return env


def plugin_script(programs: Programs) -> str:
    """`kubectl imageedit` from this checkout."""
    run = f"exec {quote(str(programs.python))} -m imageedit_operator.cli"
    return f'#!/bin/sh\nPYTHONPATH={quote(str(programs.operator))} {run} "$@"\n'


def env_script(folder: Path) -> str:
    """For bash, dash and zsh."""
    path = quote(str(folder / "bin"))
    return f"export PATH={path}:$PATH\nexport KUBECONFIG={quote(str(folder / 'kubeconfig'))}\n"


def in_namespace(login: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """A kubeconfig whose contexts all begin in that namespace; the cluster's own one stays as it is."""
    contexts = [{**context, "context": {**context["context"], "namespace": namespace}} for context in login["contexts"]]
    return {**login, "contexts": contexts}


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> Path:
    """The resource as a file to apply, to change and to apply again."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{manifest['metadata']['name']}.yaml"
    file.write_text(yaml.safe_dump(dict(manifest), sort_keys=False))
    return file
