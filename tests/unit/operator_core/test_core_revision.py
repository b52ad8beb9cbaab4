"""Which fields make a new revision."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core.revision import deployment_name, files_key, recipe, revision_hash
from unit.operator_core.builders import autoscaling, resource

DIGEST = "sha256:" + "0a" * 32
MORE: list[dict[str, Any]] = [
    {"steps": {"high": 40}},
    {"steps": {"standard": 8, "dynamic": True}},
    {"queue": {"hardLimit": 5, "maxWait": "2m"}},
    {"references": 2},
    {"negativePrompt": True},
    {"resources": {"requests": {"cpu": 4}, "limits": {"memory": "1Gi"}}},
    {"env": [{"name": "A", "value": "1"}]},
    {"volumes": [{"name": "a", "emptyDir": {}}], "volumeMounts": [{"name": "a", "mountPath": "/data"}]},
    {"imagePullSecrets": [{"name": "regcred"}]},
    {"serviceAccountName": "edit"},
    {"priorityClassName": "high"},
]
MORE_OF_CARDS: list[dict[str, Any]] = [
    {"injection": "Plugin"},
    {"runtimeClassName": "ascend"},
    {"injection": "Plugin", "driverRoot": "/var/lib/Ascend/driver"},
    {"deviceGroup": 1001},
    {"nodeSelector": {"chip": "910B3"}},
    {"tolerations": [{"operator": "Exists"}]},
    {"compileCache": {"hostPath": "/data/ops"}},
    {"injection": "DRA", "deviceClassName": "npu.example"},
]
MODEL = {"name": "qwen", "revision": "a", "source": {"demo": {}}}


@pytest.mark.parametrize(
    "change",
    [
        {"model": {**MODEL, "name": "other"}},
        {"model": {**MODEL, "revision": "b"}},
        {"model": {**MODEL, "source": {"pvc": {"claimName": "models"}}}},
        {"model": {**MODEL, "source": {"hostPath": {"path": "/models"}}}},
        {"server": {"image": "server:2"}},
        {"server": {"image": "server:1", "sizes": ["768x576"]}},
        {"server": {"image": "server:1", "steps": {"standard": 8}}},
        {"server": {"image": "server:1", "queue": {"hardLimit": 5}}},
        {"accelerator": {"device": "cpu"}},
        {"accelerator": {"resourceName": "huawei.com/Ascend310P"}},
        {"accelerator": {"count": 2}},
        {"model": {**MODEL, "manifestDigest": DIGEST}},
        *({"server": {"image": "server:1", **more}} for more in MORE),
        *({"accelerator": more} for more in MORE_OF_CARDS),
    ],
)
def test_a_field_of_the_pod_makes_a_new_revision(change: dict[str, Any]) -> None:
    assert revision_hash(resource(**change)) != revision_hash(resource())


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 7},
        {"autoscaling": autoscaling()},
        {"rollout": {"strategy": "Recreate"}},
        {"service": {"type": "NodePort", "annotations": {"a": "b"}}},
        {"server": {"image": "server:1", "sizes": ["768x768"], "steps": {"standard": 16}, "queue": {"hardLimit": 50}}},
        {"accelerator": {"device": "npu", "resourceName": "huawei.com/Ascend910", "count": 1}},
        {"accelerator": {"injection": "Auto", "driverRoot": "/usr/local/Ascend/driver/", "deviceGroup": 1000}},
        {
            "server": {
                "image": "server:1",
                "steps": {"dynamic": False},
                "queue": {"maxWait": "Auto"},
                "references": 1,
                "negativePrompt": False,
                "resources": {"limits": {}},
                "env": [],
                "volumes": [],
                "volumeMounts": [],
                "imagePullSecrets": [],
            }
        },
    ],
)
def test_what_needs_no_new_pod_keeps_the_revision(change: dict[str, Any]) -> None:
    assert revision_hash(resource(**change)) == revision_hash(resource())


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"model": {**MODEL, "source": {"pvc": {"claimName": "models"}}}},
        {"model": {**MODEL, "source": {"pvc": {"claimName": "models", "path": "a/b"}}}},
        {"model": {**MODEL, "source": {"hostPath": {"path": "/models"}}}},
        {
            "server": {
                "image": "server:2",
                "sizes": ["64x64", "96x64"],
                "steps": {"standard": 8},
                "queue": {"hardLimit": 5},
            },
            "accelerator": {"device": "cpu", "resourceName": "", "count": 2},
        },
        {"model": {**MODEL, "manifestDigest": DIGEST}},
        *({"server": {"image": "server:1", **more}} for more in MORE),
        *({"accelerator": more} for more in MORE_OF_CARDS),
    ],
)
@pytest.mark.parametrize("restarted_at", ["", "2026-11-30T08:00:00Z"])
def test_a_recipe_put_back_into_a_spec_makes_the_same_revision(spec: dict[str, Any], restarted_at: str) -> None:
    made = replace(resource(**spec), restarted_at=restarted_at)
    stored = json.loads(recipe(made))
    again = replace(resource(**{k: v for k, v in stored.items() if k != "restartedAt"}))
    again = replace(again, restarted_at=stored.get("restartedAt", ""))
    assert revision_hash(again) == revision_hash(made)


def test_a_restart_makes_a_new_revision_each_time() -> None:
    hashes = {revision_hash(replace(resource(), restarted_at=text)) for text in ("", "1", "2")}
    assert len(hashes) == 3


def test_files_are_told_apart_by_their_place_and_the_models_revision() -> None:
    pvc = {"pvc": {"claimName": "models", "path": "q"}}
    one = resource(model={**MODEL, "source": pvc})
    assert files_key(one) == files_key(resource(model={**MODEL, "source": pvc}, server={"image": "server:2"}))
    assert files_key(one) != files_key(resource(model={**MODEL, "revision": "b", "source": pvc}))
    assert files_key(one) != files_key(resource(model={**MODEL, "source": {"hostPath": {"path": "/q"}}}))


def test_files_whose_digest_is_named_are_others() -> None:
    assert files_key(resource(model={**MODEL, "manifestDigest": DIGEST})) != files_key(resource(model=MODEL))


def test_the_same_time_and_amount_written_otherwise_are_the_same_revision() -> None:
    def made(**server: Any) -> str:
        return revision_hash(resource(server={"image": "server:1", **server}))

    assert made(queue={"maxWait": "2m"}) == made(queue={"maxWait": "120s"})
    assert made(resources={"limits": {"cpu": 8}}) == made(resources={"limits": {"cpu": "8"}})


def test_the_demo_files_are_those_of_the_image() -> None:
    assert files_key(resource()) != files_key(resource(server={"image": "server:2"}))


def test_sizes_are_a_set() -> None:
    one = resource(server={"image": "i", "sizes": ["768x768", "768x576"]})
    other = resource(server={"image": "i", "sizes": ["768x576", "768x768"]})
    assert revision_hash(one) == revision_hash(other)


def test_a_pvc_and_its_path_are_told_apart() -> None:
    def at(source: dict[str, Any]) -> str:
        return revision_hash(resource(model={**MODEL, "source": source}))

    assert at({"pvc": {"claimName": "a", "path": "b"}}) != at({"pvc": {"claimName": "ab"}})


def test_the_hash_is_the_same_in_every_release() -> None:
    """An upgrade of the operator that changes this value restarts every pod of every user."""
    assert revision_hash(resource()) == "d3e77bebcc"


def test_the_longest_name_leaves_room_for_the_names_of_pods() -> None:
    hash_ = revision_hash(resource())
    assert re.fullmatch("[0-9a-f]{10}", hash_)
    assert len(deployment_name("x" * 40, hash_)) <= 52
