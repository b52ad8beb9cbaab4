"""From one release to the next: another chart, another resource definition, an operator that renders other pods."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.operator_plane import ROOT, eventually, kubectl
from apiserver.operator_pods import deployments
from apiserver.operator_process import ENVIRONMENT, PASSES, SOURCE, Operator, operator
from apiserver.operator_scene import NAME, TWO_LISTS_S, Scene, controlled, kube, stage  # noqa: F401 - fixtures
from imageedit_operator.core.pod_template import TERMINATION_MARGIN_S
from imageedit_operator.kube.client import KubeClient, Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS
from localcluster import binaries
from localcluster.controlplane import ControlPlane
from localcluster.progress import console
from support.kubectl import Kubectl

pytestmark = pytest.mark.timeout(400)
CHART = ROOT / "helm" / "imageedit-operator"
DEFINITION = "crds/imageeditdeployments.yaml"
WHERE = ("--namespace", "imageedit-system")
NEXT_MARGIN_S = TERMINATION_MARGIN_S + 15


@pytest.fixture
def helm(controlled: ControlPlane) -> Kubectl:  # noqa: F811
    """helm for the same apiserver."""
    program = binaries.ensure(("helm",), console)["helm"]
    return Kubectl(kubeconfig=controlled.kubeconfig, kubectl=controlled.kubectl, helm=program)


def next_chart(folder: Path) -> Path:
    """The chart of the next release, with a resource definition that knows one field more and defaults it."""
    made = Path(shutil.copytree(CHART, folder / "chart"))
    about = yaml.safe_load((made / "Chart.yaml").read_text())
    (made / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.2.0", "appVersion": "0.2.0"}))
    definition = yaml.safe_load((made / DEFINITION).read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    schema["server"]["properties"]["tomorrow"] = {"type": "string", "default": "new", "maxLength": 8}
    (made / DEFINITION).write_text(yaml.safe_dump(definition))
    return made


def next_operator(folder: Path) -> Path:
    """The operator of the next release, which renders another grace period into every pod."""
    made = Path(shutil.copytree(SOURCE, folder / "operator"))
    module = made / "imageedit_operator/core/pod_template.py"
    text = module.read_text()
    before, after = (f"TERMINATION_MARGIN_S = {margin}" for margin in (TERMINATION_MARGIN_S, NEXT_MARGIN_S))
    assert before in text
    module.write_text(text.replace(before, after))
    return made


async def looked(running: Operator) -> None:
    """Waits for the first pass; where it finds all as it should be, no other one comes."""

    async def look() -> bool | None:
        return True if await running.metric(PASSES) >= 1 else None

    await eventually(look, what="a pass")


async def pods(here: Scene) -> set[str]:
    """The pods by uid, terminating ones included."""
    return {item["metadata"]["uid"] for item in await here.kube.list_all(PODS, here.namespace)}


async def roll(here: Scene, revision: str) -> Manifest:
    """To another model revision; the Deployment that serves then."""
    body = {"spec": {"model": {"revision": revision}}}
    await here.kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, body)

    async def complete() -> Manifest | None:
        found = await here.kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
        status = found["status"]
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        done = current and status.get("currentRevision") == status["updateRevision"] and status["readyReplicas"] == 2
        return found if done and await pods(here) and len(await pods(here)) == 2 else None

    await eventually(complete, what=f"revision {revision}")
    (serving,) = await deployments(here.kube, here.namespace, replicas=2)
    return serving


def grace_s(deployment: Manifest) -> Any:
    return deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]


async def test_an_upgrade_of_chart_definition_and_operator_restarts_no_server_pod(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
    helm: Kubectl,
    tmp_path: Path,
) -> None:
    kubectl(controlled, "create", "namespace", "imageedit-system")
    helm.run_helm("install", "imageedit-operator", str(CHART), *WHERE)
    async with stage(kube) as here:
        async with operator(controlled.kubeconfig, *here.flags):
            await here.create(replicas=2)
            await here.serving(2)
            before, (first,) = await pods(here), await deployments(kube, here.namespace, replicas=2)

        chart = next_chart(tmp_path)
        kubectl(controlled, "apply", "--server-side", "--force-conflicts", "-f", str(chart / DEFINITION))
        helm.run_helm("upgrade", "imageedit-operator", str(chart), *WHERE)
        own = helm.get("deployment", "imageedit-operator", *WHERE)
        assert own["metadata"]["labels"]["app.kubernetes.io/version"] == "0.2.0"

        env = {**ENVIRONMENT, "PYTHONPATH": str(next_operator(tmp_path))}
        async with operator(controlled.kubeconfig, *here.flags, env=env) as running:
            await looked(running)
            await asyncio.sleep(TWO_LISTS_S)
            print("PASSES", await running.metric(PASSES))
            stored = await kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
            assert stored["spec"]["server"]["tomorrow"] == "new"
            assert await pods(here) == before
            (same,) = await deployments(kube, here.namespace, replicas=2)
            assert (same["metadata"]["generation"], same["spec"]) == (first["metadata"]["generation"], first["spec"])

            # The next rollout brings the new rendering, and so does going back: nothing of before is started again.
            assert grace_s(await roll(here, "2")) == grace_s(first) + NEXT_MARGIN_S - TERMINATION_MARGIN_S
            again = await roll(here, "1")
            assert again["metadata"]["name"] == first["metadata"]["name"]
            assert grace_s(again) == grace_s(first) + NEXT_MARGIN_S - TERMINATION_MARGIN_S

            served = await pods(here)
            helm.run_helm("uninstall", "imageedit-operator", *WHERE)
            assert not helm.exists("clusterrole", "imageedit-operator")
            assert helm.exists("crd", "imageeditdeployments.imageedit.dev")
            left = await kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
            assert "deletionTimestamp" not in left["metadata"]
            assert len(await kube.list_all(DEPLOYMENTS, here.namespace)) == 2
            assert await pods(here) == served


async def test_a_status_of_an_older_operator_gets_its_marks_with_the_next_rollout(
    controlled: ControlPlane,  # noqa: F811
    kube: KubeClient,  # noqa: F811
) -> None:
    async with stage(kube) as here:
        async with operator(controlled.kubeconfig, *here.flags):
            await here.create(replicas=2)
            await here.serving(2)
            (first,) = await deployments(kube, here.namespace, replicas=2)
        old = [{"hash": first["metadata"]["labels"]["imageedit.dev/revision"], "model": "1"}]
        body = {"status": {"revisions": old, "currentModelRevision": None}}
        await kube.patch(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME, body, subresource="status")

        async with operator(controlled.kubeconfig, *here.flags) as running:
            await looked(running)
            await asyncio.sleep(TWO_LISTS_S)
            seen = await kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
            assert seen["status"]["currentModelRevision"] == "1"
            assert "completedAt" not in seen["status"]["revisions"][0]

            await roll(here, "2")
            seen = await kube.get(IMAGE_EDIT_DEPLOYMENTS, here.namespace, NAME)
            before, after = (entry["completedAt"] for entry in seen["status"]["revisions"])
            assert before < after
            assert seen["status"]["currentModelRevision"] == "2"
