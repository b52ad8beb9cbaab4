"""The custom resource as its users meet it on a real apiserver: defaults, samples, scale, columns, explanations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.crd_objects import AUTOSCALING, bare_apiserver, resource, try_out
from support.kubectl import CommandFailed, Kubectl

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "crds" / "samples"
OF_OTHER_APIS = {"httproute", "scaledobject"}
BESIDE = [path for path in sorted((ROOT / "docs" / "samples").glob("*.yaml")) if path.stem not in OF_OTHER_APIS]
"""Samples of the documents, but for those whose API is not part of Kubernetes."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with bare_apiserver() as running:
        yield running


def test_what_is_left_out_gets_its_default(kubectl: Kubectl) -> None:
    spec = try_out(kubectl, resource({"autoscaling": AUTOSCALING}))["spec"]
    assert spec["server"] | {"image": ""} == {
        "image": "",
        "sizes": ["768x768"],
        "steps": {"standard": 16, "dynamic": False},
        "queue": {"hardLimit": 50, "maxWait": "Auto"},
        "references": 1,
        "negativePrompt": False,
    }
    assert spec["accelerator"] == {
        "device": "npu",
        "resourceName": "huawei.com/Ascend910",
        "count": 1,
        "injection": "Auto",
        "driverRoot": "/usr/local/Ascend/driver",
        "deviceGroup": 1000,
        "deviceClassName": "npu.huawei.com",
    }
    assert spec["service"] == {"type": "ClusterIP"}
    assert spec["replicas"] == 1
    assert spec["rollout"] == {
        "strategy": "Auto",
        "paused": False,
        "progressDeadline": "Auto",
        "rollbackOnFailure": True,
        "drainTimeout": "10m",
    }
    assert spec["revisionHistoryLimit"] == 3
    assert spec["autoscaling"] == {
        "minReplicas": 1,
        "maxReplicas": 4,
        "policy": "QueueDepth",
        "queueDepth": {"targetPerReplica": 2},
        "metrics": {"prometheus": {"address": "http://prometheus:9090"}, "maxAge": "60s"},
        "hold": "5m",
    }


def test_autoscaling_is_not_filled_in_when_it_is_absent(kubectl: Kubectl) -> None:
    assert "autoscaling" not in try_out(kubectl, resource())["spec"]


def test_a_field_that_nobody_knows_is_refused(kubectl: Kubectl) -> None:
    with pytest.raises(CommandFailed, match=r'unknown field "spec\.server\.precision"'):
        kubectl.run(
            *("create", "--dry-run=server", "--validate=strict", "-f", "-"),
            stdin=json.dumps(resource({"server.precision": "bfloat16"})),
        )


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_sample_is_valid(kubectl: Kubectl, sample: Path) -> None:
    kubectl.run("create", "--dry-run=server", "--validate=strict", "-f", str(sample))


@pytest.mark.parametrize("sample", BESIDE, ids=lambda path: path.stem)
def test_a_sample_of_the_documents_is_valid(kubectl: Kubectl, sample: Path) -> None:
    kubectl.run("create", "--dry-run=server", "--validate=strict", "-f", str(sample))


def test_there_are_samples() -> None:
    found = {path.stem for path in SAMPLES.glob("*.yaml")}
    assert found == {"demo", "npu-pvc", "npu-hostpath", "autoscaling", "template"}


def test_scale_writes_replicas_and_finds_the_pods(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", stdin=json.dumps(resource({"replicas": 2}, name="scaled")))
    status = {"replicas": 2, "selector": "imageedit.dev/deployment=scaled"}
    _patch_status(kubectl, "scaled", status)
    kubectl.run("scale", "ied/scaled", "--replicas=3")
    scale = json.loads(
        kubectl.run("get", "--raw", "/apis/imageedit.dev/v1alpha1/namespaces/default/imageeditdeployments/scaled/scale")
    )
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == status
    assert kubectl.get("ied", "scaled")["spec"]["replicas"] == 3


def test_get_shows_what_matters_in_columns(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", stdin=json.dumps(resource(name="shown")))
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "WarmingUp",
        "message": "1 of 2 pods is warm",
        "lastTransitionTime": "2026-11-30T00:00:00Z",
        "observedGeneration": 1,
    }
    _patch_status(
        kubectl,
        "shown",
        {
            "ready": "1/2",
            "updatedReplicas": 1,
            "desiredReplicas": 2,
            "currentModelRevision": "before",
            "phase": "Starting",
            "conditions": [condition],
        },
    )
    header, line = kubectl.run("get", "ied", "shown").strip().splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "DESIRED", "REVISION", "PHASE", "REASON", "AGE"]
    assert line.split()[:-1] == ["shown", "1/2", "1", "2", "before", "Starting", "WarmingUp"]


def test_get_wide_shows_the_revision_that_the_spec_asks_for_beside_the_one_that_serves(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", stdin=json.dumps(resource(name="wide")))
    _patch_status(kubectl, "wide", {"ready": "1/1", "currentModelRevision": "before"})
    header, line = kubectl.run("get", "ied", "wide", "-o", "wide").strip().splitlines()
    assert header.split()[4:6] == ["REVISION", "WANTED-REVISION"]
    assert line.split()[2:4] == ["before", "a"]


def test_a_phase_that_is_not_documented_is_refused(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", stdin=json.dumps(resource(name="phased")))
    with pytest.raises(CommandFailed, match='Unsupported value: "Fine"'):
        _patch_status(kubectl, "phased", {"phase": "Fine"})


def test_the_schema_explains_itself(kubectl: Kubectl) -> None:
    text = kubectl.run("explain", "imageeditdeployment.spec.accelerator.count", "--api-version=imageedit.dev/v1alpha1")
    assert "Atlas A3 counts dies" in text


def _patch_status(kubectl: Kubectl, name: str, status: dict[str, Any]) -> None:
    kubectl.run("patch", "ied", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
