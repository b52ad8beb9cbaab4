"""`kubectl imageedit plan` against a real API server: its defaults and rules, and nothing stored."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.cli_process import Ran, cli
from apiserver.operator_plane import audited_writes, client, create_resource, kubectl, new_namespace, plane, resource
from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.kinds import CLAIMS, DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS
from localcluster.controlplane import ControlPlane

__all__ = ["plane"]


async def planned(plane: ControlPlane, namespace: str, manifest: Any, *flags: str) -> Ran:
    return await cli(plane, "plan", "-f", "-", "-n", namespace, *flags, stdin=yaml.safe_dump(manifest))


async def namespace_of(plane: ControlPlane, *, existing: bool = True) -> str:
    """A namespace, with a resource whose Deployment the operator made."""
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        if existing:
            stored = parse(await create_resource(kube, namespace))
            await kube.create(DEPLOYMENTS, namespace, manifests.deployment(stored, revision_hash(stored)))
    return namespace


def changed(**spec: Any) -> dict[str, Any]:
    made = resource()
    made["spec"] |= spec
    return made


async def test_a_new_resource_is_planned_with_the_server_s_defaults_and_not_created(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane, existing=False)

    (view,) = (await planned(plane, namespace, resource(), "-o", "json")).document()["items"]

    assert view["exists"] is False
    assert {"field": "replicas", "before": "", "after": "1"} in view["changes"]
    assert {(child["kind"], child["action"]) for child in view["children"]} == {
        ("Service", "create"),
        ("Deployment", "create"),
        ("PodDisruptionBudget", "create"),
    }
    async with client(plane) as kube:
        assert await kube.list_all(IMAGE_EDIT_DEPLOYMENTS, namespace) == []


async def test_a_changed_file_rolls_and_nothing_is_stored(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane)
    async with client(plane) as kube:
        before = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")
        model = {**before["spec"]["model"], "revision": "2"}

        ran = await planned(plane, namespace, changed(model=model), "-o", "json")
        told = await planned(plane, namespace, changed(model=model))
        after = await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")

    (view,) = ran.document()["items"]
    assert view["rolls"] is True
    assert view["revision"] != view["revisionBefore"] == revision_hash(parse(before))
    assert view["changes"] == [{"field": "model.revision", "before": "1", "after": "2"}]
    assert "model.revision: 1 -> 2" in told.out
    assert after == before


async def test_every_write_of_a_plan_is_a_dry_run(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane)
    await planned(plane, namespace, resource())
    await cli(plane, "history", "edit", "-n", namespace)  # its reads end the audit of the plan's writes

    tried = [
        uri
        for _, uri, _ in audited_writes(plane)
        if namespace in uri and "kubectl" in uri and "imageedit-op" not in uri
    ]

    assert tried
    assert all("dryRun=All" in uri for uri in tried)


async def test_the_server_s_rules_refuse_a_bad_file_with_their_message(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane)
    metrics = {"prometheus": {"address": "http://p"}}

    bad = await planned(plane, namespace, changed(autoscaling={"minReplicas": 3, "maxReplicas": 2, "metrics": metrics}))
    misspelt = await planned(plane, namespace, changed(replica=2))

    assert (bad.code, misspelt.code) == (1, 1)
    assert "minReplicas must not be above maxReplicas" in bad.err
    assert ".spec.replica" in misspelt.err


async def test_a_field_that_left_an_applied_file_goes_away_in_the_plan(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane, existing=False)
    whole = changed(replicas=3)
    kubectl(plane, "apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(whole))
    less = copy.deepcopy(whole)
    del less["spec"]["replicas"]

    (view,) = (await planned(plane, namespace, less, "-o", "json")).document()["items"]

    assert view["changes"] == [{"field": "replicas", "before": "3", "after": "1"}]


async def test_a_field_that_left_a_file_applied_by_the_server_goes_away_too(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane, existing=False)
    whole = changed(replicas=3)
    kubectl(
        plane, "apply", "--server-side", "--field-manager=flux", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(whole)
    )
    less = copy.deepcopy(whole)
    del less["spec"]["replicas"]

    (view,) = (await planned(plane, namespace, less, "-o", "json")).document()["items"]

    assert view["changes"] == [{"field": "replicas", "before": "3", "after": "1"}]


async def test_a_claim_that_nobody_made_or_that_is_not_bound_is_warned_of(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane, existing=False)
    file = changed(model={"name": "m", "revision": "1", "source": {"pvc": {"claimName": "models"}}})

    (missing,) = (await planned(plane, namespace, file, "-o", "json")).document()["items"]
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"}, "spec": spec}
    async with client(plane) as kube:
        await kube.create(CLAIMS, namespace, claim)
    (unbound,) = (await planned(plane, namespace, file, "-o", "json")).document()["items"]

    named = "PersistentVolumeClaim models (spec.model.source.pvc.claimName)"
    assert [words.split(":")[0] for words in missing["warnings"]] == [f"{named} is not there"]
    assert [words.split(",")[0] for words in unbound["warnings"]] == [f"{named} is not bound"]
    assert missing["outcome"] == unbound["outcome"] == "VolumeNotReady"


async def test_an_unchanged_file_changes_nothing(plane: ControlPlane) -> None:
    namespace = await namespace_of(plane)

    ran = await planned(plane, namespace, resource())

    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].endswith("does not change")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("kind: Service", 2, "holds no ImageEditDeployment"),
        (
            yaml.safe_dump({**resource(), "metadata": {"name": "edit", "namespace": "other"}}),
            2,
            "is of namespace other",
        ),
    ],
)
async def test_a_file_that_is_not_for_here_is_wrong_usage(
    plane: ControlPlane, text: str, code: int, words: str
) -> None:
    ran = await cli(plane, "plan", "-f", "-", "-n", "default", stdin=text)
    assert ran.code == code
    assert words in ran.err


async def test_a_file_that_is_not_there_is_wrong_usage(plane: ControlPlane, tmp_path: Path) -> None:
    ran = await cli(plane, "plan", "-f", str(tmp_path / "absent.yaml"))
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be read" in ran.err


TEMPLATE = {"metadata": {"labels": {"team": "films"}}}
IMAGE = {"spec": {"containers": [{"name": "server", "image": "other:1"}]}}


@pytest.mark.parametrize(
    ("template", "existing", "said", "outcome"),
    [
        (TEMPLATE, True, "Fits", "Complete"),
        (TEMPLATE, False, "NotTried", "Complete"),
        ({"spec": {"dnsPolicy": "Default"}}, True, "Fits", "Complete"),
        (IMAGE, True, "TemplateConflict", "TemplateConflict"),
        ({"spec": {"hostAliasez": [1]}}, True, "TemplateInvalid", "TemplateInvalid"),
    ],
)
async def test_a_template_is_tried_over_the_deployment_that_is_there_and_nothing_is_stored(
    plane: ControlPlane, template: Any, existing: bool, said: str, outcome: str
) -> None:
    namespace = await namespace_of(plane, existing=existing)
    async with client(plane) as kube:
        before = await kube.list_all(DEPLOYMENTS, namespace)

        (view,) = (await planned(plane, namespace, changed(template=template), "-o", "json")).document()["items"]

        assert (view["rolls"], view["template"], view["outcome"]) == (True, said, outcome)
        assert await kube.list_all(DEPLOYMENTS, namespace) == before
