"""Copies of the model on a real node: Jobs make them, pods serve from them, and a rollout waits for them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from imageedit_server.engine.checkpoint import MANIFEST_NAME, digest
from imageedit_server.engine.manifest import write_manifest
from support.kubectl import Kubectl
from support.load import Tally
from support.resources import Resource
from support.system import ROOT
from support.watching import PodWatch

pytestmark = pytest.mark.timeout(240)

CHECKPOINT = ROOT / "server" / "src" / "imageedit_server" / "demo_checkpoint"
SOMEWHERE = "tokenizer/tokenizer_config.json"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkpoint with its manifest in a folder of the node, as a mounted file system would be."""
    folder = Path(shutil.copytree(CHECKPOINT, tmp_path / "source"))
    write_manifest(folder)
    return folder


@pytest.fixture
def node_folder(tmp_path: Path) -> Path:
    """Where copies go; the kubelet makes it."""
    return tmp_path / "node" / "copies"


def create(resource: Resource, source: Path, node_folder: Path) -> None:
    resource.create(
        replicas=1,
        source={"hostPath": {"path": str(source)}},
        prefetch={"hostPath": {"path": str(node_folder)}},
    )


def copies(node_folder: Path) -> list[Path]:
    return sorted(path for path in node_folder.iterdir() if not path.name.startswith("."))


def jobs(resource: Resource) -> list[dict[str, Any]]:
    listed = resource.kubectl.get("jobs", "-n", resource.namespace, "-l", f"imageedit.dev/deployment={resource.name}")
    return list(listed["items"])


def test_pods_serve_from_the_copy_and_an_update_copies_before_it_drains(
    resource: Resource, source: Path, node_folder: Path
) -> None:
    said: set[str] = set()
    create(resource, source, node_folder)
    resource.wait_complete(said)
    assert any("0 of 1 nodes have theirs" in message for message in said)
    (first,) = copies(node_folder)
    assert digest(first) == digest(source)
    (volume,) = (item for item in resource.only_pod()["spec"]["volumes"] if item["name"] == "models")
    assert volume["hostPath"]["path"] == str(first)

    async def roll_under_load() -> Tally:
        async with resource.load(clients=1) as load:
            await asyncio.to_thread(resource.wait_until, "answers", lambda: load.tally.answered > 1)
            resource.roll("revision-b")
            await asyncio.to_thread(resource.wait_complete)
        return load.tally

    with PodWatch(resource.kubectl, resource.name, resource.namespace) as seen:
        tally = asyncio.run(roll_under_load())

    assert tally.lost_total == 0, tally
    assert min(seen.ready) >= 1
    assert len(copies(node_folder)) == 2
    # The Job of the earlier revision goes with the look after the one that finds this one complete.
    resource.wait_until("one Job is left", lambda: len(jobs(resource)) == 1)
    (job,) = jobs(resource)
    hash_ = resource.read()["status"]["currentRevision"]
    (new,) = (pod for pod in resource.pods() if pod["metadata"]["labels"]["imageedit.dev/revision"] == hash_)
    assert new["metadata"]["creationTimestamp"] >= job["status"]["completionTime"]
    assert (source / MANIFEST_NAME).exists()


def test_a_damaged_source_stops_the_update_with_the_file_named_until_it_is_put_right(
    resource: Resource, kubectl: Kubectl, source: Path, node_folder: Path
) -> None:
    create(resource, source, node_folder)
    resource.wait_complete()
    serving = resource.only_container()
    good = (source / SOMEWHERE).read_bytes()
    (source / SOMEWHERE).write_bytes(bytes(reversed(good)))
    resource.roll("revision-b")

    failed = resource.wait_condition("RolloutStuck", status="True", reason="PrefetchFailed")

    assert f"ModelInvalid: /models/{SOMEWHERE} is not the file of the manifest" in failed["message"]
    assert resource.only_container() == serving
    (job,) = (item for item in jobs(resource) if not item["status"].get("succeeded"))
    assert f"delete Job {job['metadata']['name']}" in failed["message"]
    assert job["status"]["failed"] == 1

    (source / SOMEWHERE).write_bytes(good)
    kubectl.run("delete", "job", job["metadata"]["name"], "-n", resource.namespace)
    resource.wait_complete()
    assert resource.read()["status"]["prefetch"] == {"wanted": 1, "ready": 1, "failed": 0}
