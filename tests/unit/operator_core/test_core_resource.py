"""The resource as typed values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from imageedit_operator.core.fields import InvalidResource, seconds
from imageedit_operator.core.resource import parse
from imageedit_operator.core.rollout_spec import Canary, Rollout
from unit.operator_core.builders import autoscaling, manifest


def test_defaults_are_applied_without_the_apiserver() -> None:
    found = parse(manifest())
    assert found.server.sizes == ("768x768",)
    assert found.server.steps == 16
    assert found.server.queue_hard_limit == 50
    assert found.accelerator.device == "npu"
    assert found.accelerator.resource_name == "huawei.com/Ascend910"
    assert found.accelerator.count == 1
    assert found.replicas == 1
    assert found.autoscaling is None
    assert found.rollout == Rollout()
    assert (found.history_limit, found.restarted_at, found.promoted) == (3, "", "")


def test_the_rollout_is_read_with_all_its_fields() -> None:
    found = parse(
        manifest(
            rollout={
                "strategy": "InPlace",
                "paused": True,
                "canary": {"hold": "30m"},
                "progressDeadline": "45m",
                "rollbackOnFailure": False,
                "drainTimeout": "1m",
            }
        )
    ).rollout
    assert found == Rollout(
        strategy="InPlace",
        paused=True,
        canary=Canary(pods=1, hold_s=1800.0),
        progress_deadline_s=2700.0,
        rollback_on_failure=False,
        drain_timeout_s=60.0,
    )


def test_annotations_restart_and_promote() -> None:
    whole = manifest()
    whole["metadata"]["annotations"] = {"imageedit.dev/restarted-at": "now", "imageedit.dev/promoted-revision": "abc"}
    assert (parse(whole).restarted_at, parse(whole).promoted) == ("now", "abc")


def test_defaults_of_autoscaling() -> None:
    spec = {"maxReplicas": 8, "metrics": {"prometheus": {"address": "http://p:9090"}}}
    found = parse(manifest(autoscaling=spec)).autoscaling
    assert found is not None
    assert (found.min_replicas, found.max_replicas, found.target_per_replica) == (1, 8, 2)
    assert (found.max_age_s, found.hold_s) == (60.0, 300.0)


def test_a_deletion_timestamp_is_seen() -> None:
    whole = manifest()
    whole["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
    assert parse(whole).deleting


@pytest.mark.parametrize(("text", "expected"), [("1s", 1.0), ("60s", 60.0), ("5m", 300.0), ("2h", 7200.0)])
def test_durations(text: str, expected: float) -> None:
    assert seconds(text, "spec.x") == expected


@pytest.mark.parametrize("text", ["", "0s", "5", "5 m", "1.5m", "-1s", "1d", 60, None])
def test_what_is_no_duration_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidResource, match=r"spec\.x"):
        seconds(text, "spec.x")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.name", ""),
        ("model.name", "x" * 129),
        ("model.revision", None),
        ("model.source", {}),
        ("model.source", {"demo": {}, "hostPath": {"path": "/m"}}),
        ("model.source", {"pvc": {"claimName": "c", "path": "/abs"}}),
        ("model.source", {"pvc": {"claimName": "c", "path": "a/../../b"}}),
        ("model.source", {"pvc": {}}),
        ("model.source", {"hostPath": {"path": "relative"}}),
        ("model.source", {"hostPath": {"path": "/models/../etc"}}),
        ("model.manifestDigest", "sha256:12"),
        ("model.manifestDigest", "sha256:" + "A" * 64),
        ("server.image", None),
        ("server.steps", {"standard": 20, "high": 19}),
        ("server.steps", {"dynamic": "on"}),
        ("server.queue", {"maxWait": "25h"}),
        ("server.queue", {"maxWait": "soon"}),
        ("server.references", 5),
        ("server.negativePrompt", "yes"),
        ("accelerator", {"injection": "Guess"}),
        ("accelerator", {"injection": "Plugin", "runtimeClassName": "ascend"}),
        ("accelerator", {"driverRoot": "driver"}),
        ("accelerator", {"deviceGroup": 0}),
        ("accelerator", {"nodeSelector": {"chip": 910}}),
        ("accelerator", {"tolerations": ["all"]}),
        ("accelerator", {"compileCache": {"hostPath": "ops"}}),
        ("service", {"type": "ExternalName"}),
        ("service", {"annotations": {"a": 1}}),
        ("server.sizes", []),
        ("server.sizes", ["768x768", "768x768"]),
        ("server.sizes", ["768x100"]),
        ("server.sizes", ["32x768"]),
        ("server.sizes", ["4096x768"]),
        ("server.sizes", "768x768"),
        ("server.steps", {"standard": 1}),
        ("server.queue", {"hardLimit": -1}),
        ("accelerator", {"device": "tpu"}),
        ("accelerator", {"count": 0}),
        ("replicas", -1),
        ("replicas", True),
        ("replicas", 1.5),
        ("rollout", {"strategy": "Yolo"}),
        ("rollout", {"paused": "yes"}),
        ("rollout", {"canary": {"pods": 0}}),
        ("rollout", {"canary": {"hold": "soon"}}),
        ("rollout", {"canary": {}, "strategy": "Recreate"}),
        ("rollout", {"progressDeadline": "auto"}),
        ("rollout", {"drainTimeout": "3h"}),
        ("revisionHistoryLimit", 11),
        ("autoscaling", autoscaling(minReplicas=0)),
        ("autoscaling", autoscaling(maxReplicas=1, minReplicas=2)),
        ("autoscaling", autoscaling(policy="Latency")),
        ("autoscaling", autoscaling(hold="soon")),
        ("autoscaling", autoscaling(queueDepth={"targetPerReplica": 0})),
        ("autoscaling", autoscaling(metrics={"prometheus": {"address": "ftp://p"}})),
    ],
)
def test_a_wrong_field_is_refused_by_name(path: str, value: Any) -> None:
    whole = copy.deepcopy(manifest())
    *parents, last = path.split(".")
    place = whole["spec"]
    for parent in parents:
        place = place[parent]
    place[last] = value
    with pytest.raises(InvalidResource, match=f"^spec\\.{path.split('.', maxsplit=1)[0]}"):
        parse(whole)
