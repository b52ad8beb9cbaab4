"""`kubectl imageedit` on the real system: what it shows is so, what it foretells comes, what it undoes is undone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from apiserver.cli_process import Ran, cli
from demo.editing import draw_picture
from localcluster.cluster import Cluster
from support.kubectl import Kubectl
from support.resources import Resource

pytestmark = pytest.mark.timeout(240)


def run(kubectl: Kubectl, resource: Resource, *arguments: str, stdin: str = "") -> Ran:
    return asyncio.run(cli(kubectl.kubeconfig, *arguments, "-n", resource.namespace, stdin=stdin))


def only(ran: Ran) -> dict[str, Any]:
    """The one item of a document."""
    (item,) = ran.document()["items"]
    return dict(item)


def rolled_to(resource: Resource, revision: str) -> str:
    """The resource as a file with another model revision."""
    manifest = resource.read()
    manifest["spec"]["model"]["revision"] = revision
    return json.dumps(manifest)


def test_status_shows_a_warm_pod_with_its_card_and_its_queue(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=1)
    resource.wait_complete()

    ran = run(kubectl, resource, "status", resource.name, "-o", "json")

    view = only(ran)
    (revision,) = view["revisions"]
    (pod,) = revision["pods"]
    assert ran.code == 0
    assert (view["ready"], view["warmPods"], revision["role"]) == (True, 1, "serves")
    assert (pod["state"], pod["running"], pod["waiting"]) == ("Warm", 0, 0)
    assert pod["cards"] == {"huawei.com/Ascend910": 1}
    assert (view["cards"]["held"], view["cards"]["allocatable"]) == (1, 2)


def test_status_names_what_a_rollout_without_a_card_waits_for(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=2, strategy="Surge")
    resource.wait_complete()
    resource.roll("revision-b")
    resource.wait_condition("WaitingForCard", status="True")

    ran = run(kubectl, resource, "status", resource.name)

    assert ran.code == 4
    assert "! WaitingForCard True" in ran.out.splitlines()[1]
    assert "1 missing, 0 free of 2" in ran.out


def test_a_plan_foretells_the_rollout_that_follows(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    old = resource.read()

    foretold = only(run(kubectl, resource, "plan", "-f", "-", "-o", "json", stdin=rolled_to(resource, "revision-b")))
    unchanged = resource.read()
    resource.roll("revision-b")
    resource.wait_until("another revision", lambda: resource.read()["status"]["updateRevision"] == foretold["revision"])
    resource.wait_complete()

    assert unchanged["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]
    assert foretold["revisionBefore"] == old["status"]["currentRevision"]
    assert (foretold["chosen"], foretold["outcome"], foretold["outageS"]) == ("Surge", "Complete", 0)
    assert foretold["warmupMeasured"] is True
    assert {child["name"] for child in foretold["children"] if child["action"] == "create"} == {
        f"{resource.name}-{resource.read()['status']['currentRevision']}"
    }


def test_a_plan_without_a_free_card_foretells_the_outage(
    resource: Resource, kubectl: Kubectl, cluster: Cluster
) -> None:
    cluster.set_cards(1)
    resource.wait_allocatable(1)
    resource.create(replicas=1)
    resource.wait_complete()

    foretold = only(run(kubectl, resource, "plan", "-f", "-", "-o", "json", stdin=rolled_to(resource, "revision-b")))

    assert foretold["chosen"] == "InPlace"
    assert foretold["outageS"] > 0
    assert (foretold["cards"]["more"], foretold["cards"]["free"]) == (1, 0)


def test_a_rollback_by_hand_brings_the_earlier_revision_back(resource: Resource, kubectl: Kubectl) -> None:
    resource.create(replicas=1)
    resource.wait_complete()
    first = resource.read()["status"]["currentRevision"]
    resource.roll("revision-b")
    resource.wait_until("another revision", lambda: resource.read()["status"]["updateRevision"] != first)
    resource.wait_complete()

    ran = run(kubectl, resource, "rollback", resource.name, "-o", "json")
    resource.wait_until("the earlier revision", lambda: resource.read()["status"]["updateRevision"] == first)
    resource.wait_complete()
    history = run(kubectl, resource, "history", resource.name, "-o", "json").document()["revisions"]

    assert ran.document()["revision"] == first == resource.read()["status"]["currentRevision"]
    assert {item["hash"]: item["role"] for item in history}[first] == "serves"


def test_an_edit_goes_through_the_api_server_to_a_pod(resource: Resource, kubectl: Kubectl, tmp_path: Path) -> None:
    resource.create(replicas=1, real=True)
    resource.wait_complete()
    before, after = tmp_path / "before.png", tmp_path / "after.png"
    before.write_bytes(draw_picture())

    ran = run(kubectl, resource, "edit", str(before), "make the background blue", "-o", str(after), "-o", "json")

    assert ran.code == 0, ran.err
    assert ran.document()["model"] == "qwen-image-edit-tiny"
    with Image.open(after) as image:
        assert image.size == (128, 128)
