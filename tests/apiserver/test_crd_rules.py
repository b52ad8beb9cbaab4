"""The custom resource against a real apiserver: what is refused and with which words, what is filled in."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.operator_plane import install
from apiserver.pod_field_rules import POD_FIELD_GOOD, POD_FIELD_RULES
from apiserver.template_rules import TEMPLATE_GOOD, TEMPLATE_RULES
from localcluster import binaries, controlplane
from support.kubectl import CommandFailed, Kubectl

ROOT = Path(__file__).resolve().parents[2]
RESOURCE_DEFINITION = ROOT / "crds" / "imageeditdeployments.yaml"
SAMPLES = ROOT / "crds" / "samples"
OF_OTHER_APIS = {"httproute", "scaledobject"}
BESIDE = [path for path in sorted((ROOT / "docs" / "samples").glob("*.yaml")) if path.stem not in OF_OTHER_APIS]
"""Samples of the documents, but for those whose API is not part of Kubernetes."""
PROMETHEUS = {"prometheus": {"address": "http://prometheus:9090"}}
UNSET = object()

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """A bare apiserver that knows the resource."""
    with controlplane.up_only() as plane:
        install(plane)
        yield Kubectl(kubeconfig=plane.kubeconfig, kubectl=plane.kubectl, helm=binaries.path_of("helm"))


def resource(changes: dict[str, Any] | None = None, *, name: str = "qwen-edit") -> dict[str, Any]:
    """A good object with `path: value` changes; UNSET removes the field."""
    built: dict[str, Any] = {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "model": {"name": "qwen", "revision": "a", "source": {"demo": {}}},
            "server": {"image": "registry.example/imageedit-server:0.1.0"},
        },
    }
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        node = built["spec"]
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is UNSET:
            del node[last]
        else:
            node[last] = copy.deepcopy(value)
    return built


def try_out(kubectl: Kubectl, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as the apiserver would store it; raises CommandFailed with its words."""
    stored = kubectl.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(manifest))
    return dict(json.loads(stored))


def refusal(kubectl: Kubectl, manifest: dict[str, Any]) -> str:
    with pytest.raises(CommandFailed) as caught:
        try_out(kubectl, manifest)
    return str(caught.value)


AUTOSCALING = {"maxReplicas": 4, "metrics": PROMETHEUS}
SHARED = {"model.source": {"pvc": {"claimName": "models"}}}
SIZES, ADDRESS = "server.sizes", "autoscaling.metrics.prometheus.address"

RULES: list[tuple[dict[str, Any], str]] = [
    # model
    ({"model.name": UNSET}, "spec.model.name: Required value"),
    ({"model.name": ""}, "spec.model.name in body should be at least 1 chars long"),
    ({"model.name": "x" * 129}, "spec.model.name: Too long: may not be more than 128 bytes"),
    ({"model.name": " qwen"}, "the model name must not begin or end with white space"),
    ({"model.revision": UNSET}, "spec.model.revision: Required value"),
    ({"model.revision": "a "}, "the model revision must not begin or end with white space"),
    ({"model.revision": "x" * 129}, "spec.model.revision: Too long: may not be more than 128 bytes"),
    ({"model.source": UNSET}, "spec.model.source: Required value"),
    ({"model.source": {}}, "give exactly one of pvc, hostPath and demo"),
    ({"model.source": {"demo": {}, "hostPath": {"path": "/m"}}}, "give exactly one of pvc, hostPath and demo"),
    ({"model.source": {"pvc": {"claimName": "c"}, "hostPath": {"path": "/m"}}}, "give exactly one of"),
    ({"model.source": {"pvc": {}}}, "spec.model.source.pvc.claimName: Required value"),
    ({"model.source": {"pvc": {"claimName": "Models"}}}, "the claim name must be a DNS-1123 name"),
    (
        {"model.source": {"pvc": {"claimName": "m", "path": "/abs"}}},
        "the path must be relative to the root of the volume",
    ),
    ({"model.source": {"pvc": {"claimName": "m", "path": "a/../b"}}}, 'the path must not contain ".."'),
    ({"model.source": {"pvc": {"claimName": "m", "path": ".."}}}, 'the path must not contain ".."'),
    ({"model.source": {"hostPath": {"path": "data"}}}, "the path must be absolute, beginning with /"),
    ({"model.source": {"hostPath": {"path": "/data/../etc"}}}, 'the path must not contain ".."'),
    ({"model.prefetch": {"pvc": {"claimName": "c"}}}, "the demo checkpoint lies inside the image: leave prefetch out"),
    ({**SHARED, "model.prefetch": {}}, "give exactly one of hostPath and pvc"),
    (
        {**SHARED, "model.prefetch": {"hostPath": {"path": "/c"}, "pvc": {"claimName": "c"}}},
        "give exactly one of hostPath and pvc",
    ),
    ({**SHARED, "model.prefetch": {"hostPath": {}}}, "spec.model.prefetch.hostPath.path: Required value"),
    ({**SHARED, "model.prefetch": {"hostPath": {"path": "c"}}}, "the folder for copies must be an absolute path"),
    (
        {**SHARED, "model.prefetch": {"hostPath": {"path": "/c/.."}}},
        'the folder for copies must not contain ".."',
    ),
    ({**SHARED, "model.prefetch": {"hostPath": {"path": "//"}}}, "must not be the whole disk of the node"),
    ({**SHARED, "model.prefetch": {"pvc": {}}}, "spec.model.prefetch.pvc.claimName: Required value"),
    (
        {**SHARED, "model.prefetch": {"pvc": {"claimName": "Fast"}}},
        "the name of the claim for copies must be a DNS-1123",
    ),
    ({**SHARED, "model.prefetch": {"pvc": {"claimName": "models"}}}, "the claim for copies is the source itself"),
    (
        {"model.source": {"hostPath": {"path": "/m/q"}}, "model.prefetch": {"hostPath": {"path": "/m/q/c"}}},
        "the folder for copies lies inside the source",
    ),
    # server
    ({"server.image": UNSET}, "spec.server.image: Required value"),
    ({"server.image": "a b"}, "the image must be a reference such as registry/name:tag, without white space"),
    ({SIZES: []}, "spec.server.sizes in body should have at least 1 items"),
    ({SIZES: [f"{64 + 32 * i}x64" for i in range(17)]}, "spec.server.sizes: Too many: 17: must have at most 16 items"),
    ({SIZES: ["768x768", "768x768"]}, 'spec.server.sizes[1]: Duplicate value: "768x768"'),
    ({SIZES: ["768*768"]}, "a size must be WIDTHxHEIGHT in pixels, for example 768x576"),
    ({SIZES: ["10000x64"]}, "a size must be WIDTHxHEIGHT in pixels"),
    ({SIZES: ["768x770"]}, "both sides of a size must be multiples of 32"),
    ({SIZES: ["770x768"]}, "both sides of a size must be multiples of 32"),
    ({SIZES: ["32x768"]}, "both sides of a size must be between 64 and 2048"),
    ({SIZES: ["768x2080"]}, "both sides of a size must be between 64 and 2048"),
    ({"server.steps.standard": 1}, "spec.server.steps.standard in body should be greater than or equal to 2"),
    ({"server.steps.standard": 101}, "spec.server.steps.standard in body should be less than or equal to 100"),
    ({"server.queue.hardLimit": -1}, "spec.server.queue.hardLimit in body should be greater than or equal to 0"),
    ({"server.queue.hardLimit": 1001}, "spec.server.queue.hardLimit in body should be less than or equal to 1000"),
    # accelerator
    (
        {"accelerator.device": "cuda"},
        'spec.accelerator.device: Unsupported value: "cuda": supported values: "npu", "cpu"',
    ),
    ({"accelerator.resourceName": "Ascend910"}, "resourceName must be a qualified name such as huawei.com/Ascend910"),
    ({"accelerator.resourceName": "huawei.com/"}, "resourceName must be a qualified name"),
    ({"accelerator.resourceName": "a/b/c"}, "resourceName must be a qualified name"),
    ({"accelerator.resourceName": "huawei.com/" + "x" * 64}, "resourceName must be a qualified name"),
    ({"accelerator.count": 0}, "spec.accelerator.count in body should be greater than or equal to 1"),
    ({"accelerator.count": 17}, "spec.accelerator.count in body should be less than or equal to 16"),
    # replicas and autoscaling
    ({"replicas": -1}, "spec.replicas in body should be greater than or equal to 0"),
    ({"replicas": 1001}, "spec.replicas in body should be less than or equal to 1000"),
    ({"autoscaling": {"metrics": PROMETHEUS}}, "spec.autoscaling.maxReplicas: Required value"),
    ({"autoscaling": {"maxReplicas": 2}}, "spec.autoscaling.metrics: Required value"),
    ({"autoscaling": AUTOSCALING, "autoscaling.metrics": {}}, "spec.autoscaling.metrics.prometheus: Required value"),
    (
        {"autoscaling": AUTOSCALING, "autoscaling.minReplicas": 0},
        "minReplicas in body should be greater than or equal to 1",
    ),
    ({"autoscaling": AUTOSCALING, "autoscaling.minReplicas": 5}, "minReplicas must not be above maxReplicas"),
    (
        {"autoscaling": AUTOSCALING, "autoscaling.maxReplicas": 1001},
        "maxReplicas in body should be less than or equal to 1000",
    ),
    ({"autoscaling": AUTOSCALING, "autoscaling.policy": "Latency"}, 'Unsupported value: "Latency"'),
    (
        {"autoscaling": AUTOSCALING, "autoscaling.queueDepth.targetPerReplica": 0},
        "targetPerReplica in body should be greater than or equal to 1",
    ),
    (
        {"autoscaling": AUTOSCALING, "autoscaling.queueDepth.targetPerReplica": 51},
        "targetPerReplica must not be above server.queue.hardLimit",
    ),
    (
        {"autoscaling": AUTOSCALING, "server.queue.hardLimit": 1},
        "targetPerReplica must not be above server.queue.hardLimit",
    ),
    ({"autoscaling": AUTOSCALING, ADDRESS: "prometheus:9090"}, "the address must be an http or https URL"),
    ({"autoscaling": AUTOSCALING, ADDRESS: "ftp://prometheus"}, "the address must be an http or https URL"),
    ({"autoscaling": AUTOSCALING, ADDRESS: "http://"}, "the address must be an http or https URL"),
    (
        {"autoscaling": AUTOSCALING, "autoscaling.metrics.maxAge": "60"},
        "maxAge must be a whole number followed by s, m or h",
    ),
    ({"autoscaling": AUTOSCALING, "autoscaling.metrics.maxAge": "0s"}, "maxAge must be a whole number followed by"),
    ({"autoscaling": AUTOSCALING, "autoscaling.hold": "1.5m"}, "hold must be a whole number followed by s, m or h"),
    ({"autoscaling": AUTOSCALING, "autoscaling.hold": "100000s"}, "spec.autoscaling.hold: Too long"),
    # rollout
    ({"rollout.strategy": "Canary"}, 'supported values: "Auto", "Surge", "InPlace", "Recreate"'),
    (
        {"rollout": {"strategy": "Recreate", "canary": {}}},
        "a canary needs pods of two revisions, which strategy Recreate never has",
    ),
    ({"rollout.canary": {"pods": 0}}, "spec.rollout.canary.pods in body should be greater than or equal to 1"),
    ({"rollout.canary": {"pods": 1001}}, "spec.rollout.canary.pods in body should be less than or equal to 1000"),
    ({"rollout.canary": {"hold": "soon"}}, "hold of a canary must be a whole number followed by s, m or h"),
    ({"rollout.progressDeadline": "auto"}, "progressDeadline must be Auto, or a whole number followed by s, m or h"),
    ({"rollout.drainTimeout": "10"}, "drainTimeout must be a whole number followed by s, m or h"),
    ({"rollout.drainTimeout": "121m"}, "drainTimeout may be at most 2h"),
    ({"rollout.paused": "yes"}, "spec.rollout.paused in body must be of type boolean"),
    ({"revisionHistoryLimit": -1}, "spec.revisionHistoryLimit in body should be greater than or equal to 0"),
    ({"revisionHistoryLimit": 11}, "spec.revisionHistoryLimit in body should be less than or equal to 10"),
    *POD_FIELD_RULES,
    *(({"template": template}, words) for template, words in TEMPLATE_RULES),
]


@pytest.mark.parametrize(
    ("changes", "words"), RULES, ids=[f"{next(reversed(c))}-{n}" for n, (c, _) in enumerate(RULES)]
)
def test_a_wrong_field_is_refused_with_words(kubectl: Kubectl, changes: dict[str, Any], words: str) -> None:
    assert words in refusal(kubectl, resource(changes))


BAD_NAMES = [
    ("1edit", "metadata.name must be a DNS-1035 label"),
    ("qwen.edit", "metadata.name must be a DNS-1035 label"),
    ("q" * 41, "metadata.name may have at most 40 characters"),
]


@pytest.mark.parametrize(("name", "words"), BAD_NAMES)
def test_a_name_that_no_service_may_have_is_refused(kubectl: Kubectl, name: str, words: str) -> None:
    assert words in refusal(kubectl, resource(name=name))


def test_every_rule_is_broken_by_one_of_these_objects() -> None:
    def messages(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (rule["message"] for rule in node.get("x-kubernetes-validations", []))
            for child in node.values():
                yield from messages(child)
        elif isinstance(node, list):
            for child in node:
                yield from messages(child)

    said = [words for _, words in [*RULES, *BAD_NAMES]]
    found = list(messages(yaml.safe_load(RESOURCE_DEFINITION.read_text())))
    assert len(found) > 10
    assert [message for message in found if not any(words in message for words in said)] == []


GOOD: list[dict[str, Any]] = [
    {"model.source": {"pvc": {"claimName": "models"}}},
    {"model.source": {"pvc": {"claimName": "models.v1", "path": "a/b..c/d"}}},
    {"model.source": {"hostPath": {"path": "/data/models"}}},
    {**SHARED, "model.prefetch": {"hostPath": {"path": "/data/copies"}}},
    {**SHARED, "model.prefetch": {"pvc": {"claimName": "fast.v1"}}},
    {"model.source": {"hostPath": {"path": "/m/q"}}, "model.prefetch": {"hostPath": {"path": "/m/qc"}}},
    {"model.name": "x" * 128, "model.revision": "release of 3 November"},
    {SIZES: ["64x2048", "2048x64", "768x576"]},
    {SIZES: [f"{64 + 32 * i}x64" for i in range(16)]},
    {"server.steps.standard": 2, "server.queue.hardLimit": 0},
    {"server.steps.standard": 100, "server.queue.hardLimit": 1000},
    {"accelerator.resourceName": "", "accelerator.device": "cpu"},
    {"accelerator.resourceName": "huawei.com/ascend-1980", "accelerator.count": 16},
    {"accelerator.resourceName": "huawei.com/Ascend910-12c.3cpu.32g"},
    {"accelerator.resourceName": "npu/" + "x" * 63},
    {"replicas": 0},
    {"replicas": 1000},
    {"autoscaling": {"minReplicas": 3, "maxReplicas": 3, "metrics": PROMETHEUS}},
    {"autoscaling": AUTOSCALING, "autoscaling.queueDepth.targetPerReplica": 50},
    {"autoscaling": AUTOSCALING, ADDRESS: "https://[2001:db8::1]:9090/prometheus"},
    {"autoscaling": AUTOSCALING, "autoscaling.hold": "99999h", "autoscaling.metrics.maxAge": "15s"},
    {"rollout.strategy": "Recreate"},
    {"rollout": {"canary": {"pods": 1000, "hold": "9999h"}, "paused": True, "rollbackOnFailure": False}},
    {"rollout.progressDeadline": "Auto", "rollout.drainTimeout": "2h"},
    {"rollout.progressDeadline": "45m", "rollout.drainTimeout": "7200s"},
    {"revisionHistoryLimit": 0},
    {"revisionHistoryLimit": 10},
    *POD_FIELD_GOOD,
    *({"template": template} for template in TEMPLATE_GOOD),
]


@pytest.mark.parametrize("changes", GOOD, ids=[f"{next(reversed(c))}-{n}" for n, c in enumerate(GOOD)])
def test_a_value_at_the_edge_of_a_rule_passes(kubectl: Kubectl, changes: dict[str, Any]) -> None:
    wanted = resource(changes)["spec"]
    assert _contains(try_out(kubectl, resource(changes))["spec"], wanted)


@pytest.mark.parametrize("name", ["q", "q" * 40, "qwen-image-edit-2511"])
def test_a_short_dns_label_is_a_good_name(kubectl: Kubectl, name: str) -> None:
    assert try_out(kubectl, resource(name=name))["metadata"]["name"] == name


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


def _contains(whole: Any, part: Any) -> bool:
    """Every value of `part` is in `whole`; defaults may be beside it."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _contains(whole[key], part[key]) for key in part)
    return bool(whole == part)
