"""The resource definition is removed and applied again while the operator runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from apiserver.operator_plane import eventually, install, kubectl
from apiserver.operator_process import operator
from faults.conftest import CONTROLLERS
from faults.scene import scene
from imageedit_operator.kube.client import KubeClient
from localcluster import controlplane
from localcluster.controlplane import ControlPlane

DEFINITION = "imageeditdeployments.imageedit.dev"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """One of its own: without the definition the resources of every namespace are gone."""
    with controlplane.up_only(with_controllers=CONTROLLERS) as started:
        install(started)
        yield started


async def test_a_definition_that_goes_and_comes_back_costs_no_restart(plane: ControlPlane, kube: KubeClient) -> None:
    async with scene(kube) as stage, operator(plane.kubeconfig, *stage.flags()) as running:
        await stage.create()
        await stage.complete()
        stage.observer.harmed = True
        kubectl(plane, "delete", "crd", DEFINITION)

        async def tells() -> bool | None:
            status, text = await running.get("/healthz")
            return (
                True if status == 200 and "apply the resource definition again" in json.loads(text)["message"] else None
            )

        await eventually(tells, what="a word about the definition in /healthz")

        async def forgotten() -> bool | None:
            return True if "imageedit_deployment=" not in (await running.get("/metrics"))[1] else None

        await eventually(forgotten, what="the end of the series of resources that are gone")
        install(plane)
        await stage.create()
        await stage.complete()
        await stage.roll("next")
        await stage.complete()
        status, text = await running.get("/healthz")
        assert (status, json.loads(text)["message"]) == (200, "")
        assert running.process.returncode is None, running.messages()
        told = [line for line in running.log if "apply the resource definition again" in str(line.get("message"))]
        assert len(told) == 1
