"""`kubectl imageedit` against a real API server: what is shown, what is written and by whom, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.cli_process import ENVIRONMENT, cli
from apiserver.operator_plane import (
    audited_writes,
    client,
    create_resource,
    new_namespace,
    plane,
)
from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

__all__ = ["plane"]


async def with_revisions(kube: KubeClient, namespace: str, *models: str, **status: Any) -> tuple[Manifest, list[str]]:
    """A resource that went through these model revisions, with the Deployments that the operator made; the hashes."""
    manifest = await create_resource(kube, namespace)
    hashes = []
    for model in models:
        body = {"spec": {"model": {"revision": model}}}
        manifest = await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", body)
        resource = parse(manifest)
        hashes.append(revision_hash(resource))
        await kube.apply(DEPLOYMENTS, namespace, manifests.deployment(resource, hashes[-1]))
    if status:
        named = {name: hashes[at] for name, at in status.items()}
        manifest = await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", {"status": named}, subresource="status")
    return manifest, hashes


def managers_of(manifest: Manifest, field: str) -> list[str]:
    """Managers that own this field of the spec."""
    return [
        entry["manager"]
        for entry in manifest["metadata"]["managedFields"]
        if f"f:{field}" in json.dumps(entry["fieldsV1"].get("f:spec", {}))
    ]


async def test_status_shows_a_resource_that_no_operator_looked_at_and_is_not_ready(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        await create_resource(kube, namespace)

    shown = await cli(plane, "status", "edit", "-n", namespace)
    listed = await cli(plane, "status", "-n", namespace, "-o", "json")

    assert shown.code == listed.code == 4, shown.err
    assert "no operator has looked at it yet" in shown.out
    assert [item["name"] for item in listed.document()["items"]] == ["edit"]


async def test_status_of_all_namespaces_finds_them_all(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        spaces = {await new_namespace(kube), await new_namespace(kube)}
        for namespace in spaces:
            await create_resource(kube, namespace)

    listed = await cli(plane, "status", "-A", "-o", "json")

    assert spaces <= {item["namespace"] for item in listed.document()["items"]}


async def test_history_lists_what_changed_from_one_revision_to_the_next(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        _, hashes = await with_revisions(kube, namespace, "a", "b", currentRevision=0, updateRevision=1)

    listed = (await cli(plane, "history", "edit", "-n", namespace, "-o", "json")).document()["revisions"]
    shown = await cli(plane, "history", "edit", "-n", namespace)

    by_hash = {item["hash"]: item for item in listed}
    assert by_hash.keys() == set(hashes)
    assert by_hash[hashes[0]]["role"] == "serves"
    assert by_hash[hashes[1]]["role"] == "comes"
    assert shown.code == 0
    assert all(item in shown.out for item in hashes)


async def test_pause_and_resume_write_one_field_as_their_own_manager(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        await create_resource(kube, namespace)
        paused = await cli(plane, "pause", "edit", "-n", namespace, "-o", "json")
        held = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
        again = await cli(plane, "pause", "edit", "-n", namespace, "-o", "json")
        resumed = await cli(plane, "resume", "edit", "-n", namespace)
        free = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    assert paused.document()["changed"] is True
    assert held["spec"]["rollout"]["paused"] is True
    assert "kubectl-imageedit" in managers_of(held, "paused")
    assert again.document()["changed"] is False
    assert resumed.code == 0
    assert free["spec"]["rollout"]["paused"] is False


async def test_promote_writes_the_revision_of_the_spec_into_an_annotation_once(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        before = await create_resource(kube, namespace, rollout={"canary": {}})
        ran = await cli(plane, "promote", "edit", "-n", namespace, "-o", "json")
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
        again = await cli(plane, "promote", "edit", "-n", namespace, "-o", "json")

    assert (ran.code, ran.document()["changed"]) == (0, True)
    assert parse(after).promoted == ran.document()["revision"] == revision_hash(parse(before))
    assert after["spec"] == before["spec"]
    assert (again.code, again.document()["changed"]) == (0, False)


@pytest.mark.parametrize(
    ("rollout", "status", "code", "words"),
    [
        ({}, "", 1, "no spec.rollout.canary"),
        ({"canary": {}}, "failedRevision", 1, "failed and was given up"),
        ({"canary": {}}, "lastGoodRevision", 0, "nothing to promote"),
    ],
)
async def test_promote_writes_nothing_where_no_canary_can_hold(
    plane: ControlPlane, rollout: dict[str, Any], status: str, code: int, words: str
) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        stored = await create_resource(kube, namespace, rollout=rollout)
        if status:
            body = {"status": {status: revision_hash(parse(stored))}}
            await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", body, subresource="status")
        ran = await cli(plane, "promote", "edit", "-n", namespace)
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    assert ran.code == code
    assert words in ran.out + ran.err
    assert parse(after).promoted == ""


async def test_restart_writes_an_annotation_that_makes_another_revision(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        before = await create_resource(kube, namespace)
        ran = await cli(plane, "restart", "edit", "-n", namespace, "-o", "json")
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    assert after["spec"] == before["spec"]
    assert revision_hash(parse(after)) == ran.document()["revision"] != revision_hash(parse(before))


async def test_rollback_asks_for_the_last_good_revision_again_and_shows_what_to_commit(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        _, hashes = await with_revisions(kube, namespace, "a", "b", lastGoodRevision=0, updateRevision=1)
        ran = await cli(plane, "rollback", "edit", "-n", namespace)
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    assert ran.code == 0, ran.err
    assert revision_hash(parse(after)) == hashes[0]
    assert "model.revision: b -> a" in ran.out
    assert "revision: a" in ran.err


async def test_rollback_undoes_a_restart_and_another_source_too(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        _, hashes = await with_revisions(kube, namespace, "a", lastGoodRevision=0)
        body = {
            "metadata": {"annotations": {"imageedit.dev/restarted-at": "now"}},
            "spec": {"model": {"source": {"demo": None, "hostPath": {"path": "/models"}}}},
        }
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit", body)
        ran = await cli(plane, "rollback", "edit", "-n", namespace, "--to", hashes[0][:6], "-o", "json")
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    assert ran.document()["revision"] == hashes[0] == revision_hash(parse(after))
    assert after["spec"]["model"]["source"] == {"demo": {}}
    assert "imageedit.dev/restarted-at" not in (after["metadata"].get("annotations") or {})


async def test_rollback_without_an_earlier_revision_writes_nothing(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        await with_revisions(kube, namespace, "a", updateRevision=0)
        before = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
        ran = await cli(plane, "rollback", "edit", "-n", namespace)
        unknown = await cli(plane, "rollback", "edit", "-n", namespace, "--to", "ffff")
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    assert (ran.code, unknown.code) == (3, 3)
    assert "nothing to go back to" in ran.err
    assert after == before


async def test_looking_writes_nothing(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        await with_revisions(kube, namespace, "a", "b")
    before = [write for write in audited_writes(plane) if namespace in write[1]]

    for command in (("status",), ("status", "edit"), ("history", "edit")):
        assert (await cli(plane, *command, "-n", namespace)).code in {0, 4}

    assert [write for write in audited_writes(plane) if namespace in write[1]] == before


async def test_a_resource_that_is_not_there_ends_with_3_and_a_sentence(plane: ControlPlane) -> None:
    for command in ("status", "history", "pause", "resume", "promote", "restart", "rollback"):
        ran = await cli(plane, command, "nobody", "-n", "default")
        assert ran.code == 3, command
        assert "There is no ImageEditDeployment nobody in namespace default. Choose another namespace with" in ran.err
        assert "Traceback" not in ran.err


async def test_a_cluster_that_cannot_be_reached_ends_with_a_sentence(tmp_path: Path, plane: ControlPlane) -> None:
    nowhere = tmp_path / "config"
    nowhere.write_text(plane.kubeconfig.read_text().replace(plane.url, "https://127.0.0.1:1"))

    ran = await cli(nowhere, "status")
    without = await cli(tmp_path / "absent", "status")
    wrong = await cli(plane, "status", "--context", "nobody")

    assert (ran.code, without.code, wrong.code) == (1, 2, 2)
    for end in (ran, without, wrong):
        assert end.err.startswith("error: ")
        assert len(end.err.splitlines()) == 1


async def test_the_namespace_is_that_of_the_context_unless_named(tmp_path: Path, plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        await create_resource(kube, namespace, "here")
    config = tmp_path / "config"
    written = yaml.safe_load(plane.kubeconfig.read_text())
    written["contexts"][0]["context"]["namespace"] = namespace
    config.write_text(yaml.safe_dump(written))

    ran = await cli(plane, "status", "--kubeconfig", str(config), "-o", "json")

    assert [item["name"] for item in ran.document()["items"]] == ["here"]


async def test_a_cluster_without_the_kind_is_told_to_install_the_operator() -> None:
    with controlplane.up_only() as bare:
        ran = [await cli(bare, *words) for words in (("status",), ("history", "edit"))]

    assert [end.code for end in ran] == [3, 3]
    assert all("install the operator first" in end.err for end in ran)


async def test_a_namespace_without_resources_says_where_else_to_look(plane: ControlPlane) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)

    ran = await cli(plane, "status", "-n", namespace)

    words = f"There is no ImageEditDeployment in namespace {namespace}. Choose another one with -n, or all with -A.\n"
    assert (ran.code, ran.out) == (0, words)


def test_kubectl_finds_the_plugin(tmp_path: Path, plane: ControlPlane) -> None:
    script = tmp_path / "kubectl-imageedit"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m imageedit_operator.cli "$@"\n')
    script.chmod(0o755)
    path = f"{tmp_path}:{ENVIRONMENT.get('PATH', '')}"

    done = subprocess.run(
        [str(plane.kubectl), "imageedit", "status", "nobody", "-n", "default"],
        env={**ENVIRONMENT, "PATH": path, "KUBECONFIG": str(plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 3, done.stderr


@pytest.mark.parametrize("arguments", [(), ("status", "a", "b"), ("status", "a", "-A"), ("history",), ("nothing",)])
async def test_wrong_arguments_end_with_2(plane: ControlPlane, arguments: tuple[str, ...]) -> None:
    assert (await cli(plane, *arguments)).code == 2
