"""Where a model comes from: a volume claim, on a real kubelet, with the real pipeline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.editing import draw_picture, edit
from support.kubectl import Kubectl
from support.resources import Resource
from support.system import ROOT

pytestmark = pytest.mark.timeout(240)

CHECKPOINT = ROOT / "server" / "src" / "imageedit_server" / "demo_checkpoint"


@pytest.fixture
def claim(kubectl: Kubectl, resource: Resource) -> Iterator[str]:
    """A bound claim whose volume is the folder above the tiny checkpoint."""
    name = f"models-{resource.namespace}"
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadOnlyMany"],
                "hostPath": {"path": str(CHECKPOINT.parent), "type": "Directory"},
                "storageClassName": "",
                "claimRef": {"namespace": resource.namespace, "name": "models"},
            },
        }
    )
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "models", "namespace": resource.namespace},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": name,
            },
        }
    )
    yield "models"
    resource.delete()
    kubectl.run("delete", "pvc", "models", "-n", resource.namespace, "--wait=true")
    kubectl.run("delete", "pv", name, "--wait=true")


def test_a_model_on_a_claim_edits_as_the_prompt_says(resource: Resource, claim: str) -> None:
    resource.create(real=True, replicas=1, source={"pvc": {"claimName": claim, "path": CHECKPOINT.name}})
    resource.wait_complete()

    edited = edit(base_url=resource.base_url(), model="qwen-image-edit-tiny", picture=draw_picture())

    assert edited.obeyed, edited.background_rgb
    assert edited.revision == "revision-a"


def test_warmz_names_the_digest_of_the_files_that_serve(resource: Resource, kubectl: Kubectl, claim: str) -> None:
    resource.create(real=True, replicas=1, source={"pvc": {"claimName": claim, "path": CHECKPOINT.name}})
    resource.wait_complete()
    pod = resource.only_pod()["metadata"]["name"]

    raw = kubectl.run("get", "--raw", f"/api/v1/namespaces/{resource.namespace}/pods/{pod}:8080/proxy/warmz")

    assert json.loads(raw)["digest"] == digest_by_hand(CHECKPOINT)


def digest_by_hand(folder: Path) -> str:
    """The contract's digest, made by the shell's own sha256sum."""
    script = (
        "cd \"$0\" && find . -type f -printf '%P\\n' | LC_ALL=C sort | while read -r f; do "
        'printf "%s %s %s\\n" "$f" "$(stat -c %s "$f")" "$(sha256sum "$f" | cut -d" " -f1)"; done | sha256sum'
    )
    done = subprocess.run(["sh", "-c", script, str(folder)], capture_output=True, text=True, check=True)
    return f"sha256:{done.stdout.split()[0]}"
