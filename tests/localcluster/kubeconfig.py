"""Kubeconfig files, with the certificates inside so that one file is enough."""

from __future__ import annotations

import base64
import json
from pathlib import Path


def write(file: Path, *, url: str, certs: Path, name: str) -> None:
    """A kubeconfig for the client certificate `name` (JSON, which every YAML reader takes)."""

    def embedded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "local", "cluster": {"server": url, "certificate-authority-data": embedded(certs / "ca.crt")}}
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": embedded(certs / f"{name}.crt"),
                    "client-key-data": embedded(certs / f"{name}.key"),
                },
            }
        ],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": name, "namespace": "default"}}],
        "current-context": "local",
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(config, indent=1))
