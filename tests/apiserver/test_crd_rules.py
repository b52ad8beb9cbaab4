"""The rules of the custom resource against a real apiserver: what is refused and with which words, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.crd_objects import AUTOSCALING, PROMETHEUS, UNSET, bare_apiserver, resource, try_out
from apiserver.pod_field_rules import POD_FIELD_GOOD, POD_FIELD_RULES
from apiserver.template_rules import TEMPLATE_GOOD, TEMPLATE_RULES
from support.kubectl import CommandFailed, Kubectl

ROOT = Path(__file__).resolve().parents[2]
RESOURCE_DEFINITION = ROOT / "crds" / "imageeditdeployments.yaml"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with bare_apiserver() as running:
        yield running


def refusal(kubectl: Kubectl, manifest: dict[str, Any]) -> str:
    with pytest.raises(CommandFailed) as caught:
        try_out(kubectl, manifest)
    return str(caught.value)


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


def _contains(whole: Any, part: Any) -> bool:
    """Every value of `part` is in `whole`; defaults may be beside it."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _contains(whole[key], part[key]) for key in part)
    return bool(whole == part)
