"""`spec.template` against a real apiserver: what it merges, what it refuses, and from which states it is applied."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from apiserver.operator_plane import create_resource, eventually, kubectl
from apiserver.operator_pods import deployments
from apiserver.operator_process import operator
from apiserver.operator_scene import NAME, TWO_LISTS_S, Scene, controlled, kube, scene, stage  # noqa: F401 - fixtures
from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import FIELD_MANAGER, TEMPLATE_MANAGER, KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(400)

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "pictures"}, "annotations": {"a.example/b": "c"}},
    "spec": {
        "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["models.internal"]}],
        # The operator does not set these, and the apiserver has another default for each.
        "dnsPolicy": "Default",
        "containers": [
            {"name": "server", "imagePullPolicy": "Always", "env": [{"name": "EXTRA", "value": "1"}]},
            {"name": "log", "image": "log:1"},
        ],
    },
}
IMAGE = {"spec": {"containers": [{"name": "server", "image": "other:1"}]}}


async def set_template(here: Scene, template: dict[str, Any] | None) -> None:
    """A JSON merge patch writes lists whole, and merges maps: the template goes away first."""
    for value in (None, template) if template else (None,):
        await here.kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, {"spec": {"template": value}})


async def deployment_of(here: Scene, *, label: str = "") -> Manifest:
    """Waits for the Deployment that has replicas, whose pods have this label."""

    async def look() -> Manifest | None:
        found = await here.kube.list_all(DEPLOYMENTS, here.namespace)
        run = [item for item in found if item["spec"]["replicas"]]
        labels = [item["spec"]["template"]["metadata"]["labels"].get("team", "") for item in run]
        return run[0] if labels == [label] else None

    return await eventually(look, what=f"one Deployment with pods of team {label!r}")


def managers(made: Manifest) -> set[str]:
    """Who applied fields of it."""
    return {entry["manager"] for entry in made["metadata"]["managedFields"] if entry["operation"] == "Apply"}


async def test_a_template_is_merged_by_key_and_its_pods_serve(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(template=TEMPLATE, replicas=2)
        await here.serving(2)
        await here.condition("ChildrenIntact", "AsWritten")

        made = await deployment_of(here, label="pictures")
        pod = made["spec"]["template"]["spec"]
        containers = {container["name"]: container for container in pod["containers"]}
        assert list(containers) == ["server", "log"]
        assert {"EXTRA", "IMAGEEDIT_POD_UID"} <= {item["name"] for item in containers["server"]["env"]}
        assert containers["server"]["image"] == "server:1"
        assert (pod["dnsPolicy"], containers["server"]["imagePullPolicy"]) == ("Default", "Always")
        assert pod["hostAliases"] == TEMPLATE["spec"]["hostAliases"]
        assert made["spec"]["template"]["metadata"]["annotations"]["a.example/b"] == "c"
        assert managers(made) == {FIELD_MANAGER, TEMPLATE_MANAGER}
        assert made["metadata"]["generation"] <= 4, "created, merged, scaled: pods were started once"


async def test_a_template_that_comes_changes_and_goes_rolls_the_pods_each_time(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create()
        await here.serving(1)
        first = (await deployment_of(here))["metadata"]["uid"]
        for team in ("pictures", "films"):
            await set_template(here, {"metadata": {"labels": {"team": team}}})
            await deployment_of(here, label=team)
            await here.serving(1)
        await set_template(here, None)
        again = await deployment_of(here)
        await here.serving(1)
        assert again["metadata"]["uid"] == first
        assert TEMPLATE_MANAGER not in managers(again)


async def test_a_template_that_sets_what_the_operator_sets_is_named_and_the_old_pods_serve_until_it_is_corrected(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create()
        (pod,) = await here.serving(1)
        await set_template(here, IMAGE)

        said = await here.condition("Progressing", "TemplateConflict")
        assert 'spec.containers[name="server"].image, which imageedit-operator sets' in said["message"]
        await here.condition("RolloutStuck", "TemplateConflict")
        await here.condition("Ready", "TemplateConflict")
        await here.condition("Available", "Serving")

        # The number of pods follows all the same, with pods of the revision that serves.
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, {"spec": {"replicas": 2}})
        assert pod in await here.serving(2)

        await set_template(here, TEMPLATE)
        await deployment_of(here, label="pictures")
        await here.condition("Ready", "AllPodsServe")
        await here.condition("Degraded", "NoFault")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"containers": [{"name": "log"}]}, "spec.template.spec.containers[1].image: Required value"),
        ({"hostAliasez": [1]}, "refused: .spec.template.spec.hostAliasez: field not declared in schema"),
        ({"restartPolicy": "Never"}, 'supported values: "Always"'),
    ],
    ids=["a value that is missing", "a field that does not exist", "a value that cannot be"],
)
async def test_a_template_that_the_apiserver_refuses_is_told_in_its_words(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
    fields: dict[str, Any],
    words: str,
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(template={"spec": fields})
        assert words in (await here.condition("Progressing", "TemplateInvalid"))["message"]
        assert await kube.list_all(PODS, here.namespace) == []
        await set_template(here, TEMPLATE)
        await here.condition("Ready", "AllPodsServe")


@pytest.mark.parametrize("by_hand", [0, 1], ids=["at rest", "scaled by hand meanwhile"])
async def test_a_deployment_that_was_left_without_its_template_gets_it_before_its_pods(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
    by_hand: int,
) -> None:
    """As an operator leaves it that ends between the two writes."""
    async with stage(kube) as here:
        accelerator = {"device": "cpu", "resourceName": here.node.card, "count": 1}
        stored = parse(await create_resource(kube, here.namespace, NAME, accelerator=accelerator, template=TEMPLATE))
        left = manifests.deployment(stored, revision_hash(stored), replicas=by_hand)
        await kube.apply(DEPLOYMENTS, here.namespace, left, uid="")
        await deployments(kube, here.namespace, replicas=by_hand)
        async with operator(controlled.kubeconfig, *here.flags):
            await deployment_of(here, label="pictures")
            await here.serving(1)
            (pod,) = await kube.list_all(PODS, here.namespace)
            assert pod["metadata"]["labels"]["team"] == "pictures"
            assert [container["name"] for container in pod["spec"]["containers"]] == ["server", "log"]


def take(plane: ControlPlane, here: Scene, made: Manifest, *paths: str) -> None:
    """Somebody takes fields of its pods away."""
    change = json.dumps([{"op": "remove", "path": f"/spec/template/{path}"} for path in paths])
    place = ("-n", here.namespace, "patch", "deployment", made["metadata"]["name"])
    kubectl(plane, *place, "--type=json", "-p", change)


async def test_fields_of_a_template_that_somebody_took_away_are_shown_and_not_fought_over(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(template=TEMPLATE)
        await here.serving(1)
        made = await deployment_of(here, label="pictures")
        await here.condition("ChildrenIntact", "AsWritten")
        take(controlled, here, made, "spec/hostAliases", "metadata/annotations/a.example~1b", "spec/containers/1")

        said = (await here.condition("ChildrenIntact", "FieldsChanged"))["message"]
        for field in ("metadata.annotations.a.example/b", "spec.containers[name=log]", "spec.hostAliases[ip=10.0.0.9]"):
            assert f"spec.template.{field} taken away" in said
        await here.serving(1)
        generation = (await deployment_of(here, label="pictures"))["metadata"]["generation"]

        await asyncio.sleep(TWO_LISTS_S)
        assert (await deployment_of(here, label="pictures"))["metadata"]["generation"] == generation


async def test_the_only_field_of_a_template_is_missed_while_pods_serve_without_it(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    """Its manager owns nothing then, as before the template was applied."""
    async with scene(controlled, kube) as here:
        await here.create(template={"metadata": {"labels": {"team": "pictures"}}}, replicas=2)
        await here.serving(2)
        made = await deployment_of(here, label="pictures")
        take(controlled, here, made, "metadata/labels/team")

        said = (await here.condition("ChildrenIntact", "FieldsChanged"))["message"]
        assert "spec.template.metadata.labels.team taken away" in said
        assert TEMPLATE_MANAGER not in managers(await deployment_of(here))
        await here.serving(2)
        await here.condition("ChildrenIntact", "FieldsChanged")


async def test_the_only_field_of_a_template_comes_back_where_no_pod_serves_without_it(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with scene(controlled, kube) as here:
        await here.create(template={"metadata": {"labels": {"team": "pictures"}}})
        await here.serving(1)
        take(controlled, here, await deployment_of(here, label="pictures"), "metadata/labels/team")

        await deployment_of(here, label="pictures")
        await here.serving(1)
        await here.condition("ChildrenIntact", "AsWritten")
