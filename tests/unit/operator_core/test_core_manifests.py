"""What the operator writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imageedit_operator.core import manifests
from imageedit_operator.core.revision import recipe, revision_hash
from unit.operator_core.builders import CARD, resource

MODEL = {"name": "qwen", "revision": "a", "source": {"demo": {}}}


def pod(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = manifests.deployment(resource(**spec), "abc")["spec"]["template"]["spec"]
    return found


def container(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod(**spec)["containers"][0]
    return found


def test_a_deployment_begins_with_no_replicas_unless_told_and_cannot_surge_by_itself() -> None:
    made = manifests.deployment(resource(), "abc")
    assert made["metadata"]["name"] == "edit-abc"
    assert made["spec"]["replicas"] == 0
    assert manifests.deployment(resource(), "abc", replicas=3)["spec"]["replicas"] == 3
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert made["spec"]["revisionHistoryLimit"] == 0


def test_the_selector_picks_one_revision_and_the_service_picks_all() -> None:
    made = manifests.deployment(resource(), "abc")
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert made["spec"]["selector"]["matchLabels"]["imageedit.dev/revision"] == "abc"
    assert made["spec"]["selector"]["matchLabels"].items() <= labels.items()
    selector = manifests.service(resource())["spec"]["selector"]
    assert selector.items() <= labels.items()
    assert "imageedit.dev/revision" not in selector


def test_the_scale_selector_fits_the_pods() -> None:
    labels = manifests.deployment(resource(), "abc")["spec"]["template"]["metadata"]["labels"]
    wanted = dict(part.split("=") for part in manifests.selector(resource()).split(","))
    assert wanted.items() <= labels.items()


@pytest.mark.parametrize("make", [manifests.service, lambda found: manifests.deployment(found, "abc")])
def test_children_are_controlled_by_the_resource_without_blocking_its_deletion(make: Any) -> None:
    (owner,) = make(resource())["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-1"
    assert owner["controller"] is True
    assert owner["blockOwnerDeletion"] is False


def test_the_service_shows_only_ready_pods_on_port_80() -> None:
    spec = manifests.service(resource())["spec"]
    assert spec["publishNotReadyAddresses"] is False
    assert [(port["port"], port["targetPort"]) for port in spec["ports"]] == [(80, "api")]


def test_the_service_is_offered_as_the_spec_says() -> None:
    annotations = {"lb.example/scheme": "internal"}
    made = manifests.service(resource(service={"type": "LoadBalancer", "annotations": annotations}))
    assert (made["spec"]["type"], made["metadata"]["annotations"]) == ("LoadBalancer", annotations)
    plain = manifests.service(resource())
    assert plain["spec"]["type"] == "ClusterIP"
    assert "annotations" not in plain["metadata"]


def test_arguments_follow_the_contract_and_the_entrypoint_stays() -> None:
    made = container(server={"image": "i", "sizes": ["768x768", "768x576"], "steps": {"standard": 8}})
    assert "command" not in made
    assert made["args"] == [
        "--model-name=qwen",
        "--model-dir=demo",
        "--model-revision=a",
        "--revision-hash=abc",
        "--device=npu",
        "--sizes=768x768,768x576",
        "--steps=8",
        "--queue-hard-limit=50",
    ]


def test_the_kubelet_does_not_expand_what_a_user_wrote() -> None:
    made = container(model={**MODEL, "revision": "$(IMAGEEDIT_POD_UID)"})
    assert "--model-revision=$$(IMAGEEDIT_POD_UID)" in made["args"]


def test_the_pod_learns_who_it_is() -> None:
    env = {item["name"]: item for item in container()["env"]}
    assert env["IMAGEEDIT_DEPLOYMENT"]["value"] == "edit"
    paths = {name: item["valueFrom"]["fieldRef"]["fieldPath"] for name, item in env.items() if "valueFrom" in item}
    assert paths == {
        "IMAGEEDIT_NAMESPACE": "metadata.namespace",
        "IMAGEEDIT_POD": "metadata.name",
        "IMAGEEDIT_POD_UID": "metadata.uid",
    }


def test_probes_ask_the_probe_port() -> None:
    made = container()
    assert made["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
    assert made["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    assert made["readinessProbe"]["periodSeconds"] == 2
    assert {port["name"]: port["containerPort"] for port in made["ports"]} == {"api": 8000, "probes": 8080}


def test_a_pod_asks_for_its_cards_by_limit_and_request() -> None:
    assert container(accelerator={"count": 2})["resources"] == {"requests": {CARD: "2"}, "limits": {CARD: "2"}}


def test_without_a_resource_name_no_card_is_asked_for() -> None:
    spec = {"accelerator": {"device": "cpu", "resourceName": ""}}
    assert "resources" not in container(**spec)
    assert "tolerations" not in pod(**spec)


def test_an_npu_pod_may_open_the_device_and_land_on_tainted_nodes() -> None:
    made = pod()
    assert made["securityContext"]["supplementalGroups"] == [1000]
    assert made["tolerations"] == [{"key": CARD, "operator": "Exists", "effect": "NoSchedule"}]
    assert {"name": "shm", "mountPath": "/dev/shm"} in made["containers"][0]["volumeMounts"]


def test_a_cpu_pod_uses_one_thread_and_no_device() -> None:
    made = pod(accelerator={"device": "cpu"})
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in made["containers"][0]["env"]
    assert "supplementalGroups" not in made["securityContext"]
    assert "shm" not in [volume["name"] for volume in made["volumes"]]


def test_device_choice_is_left_to_the_device_plugin() -> None:
    assert "VISIBLE_DEVICES" not in json.dumps(manifests.deployment(resource(), "abc"))


@pytest.mark.parametrize(
    ("source", "directory", "volume"),
    [
        ({"pvc": {"claimName": "m"}}, "/models", {"persistentVolumeClaim": {"claimName": "m", "readOnly": True}}),
        (
            {"pvc": {"claimName": "m", "path": "q/x"}},
            "/models/q/x",
            {"persistentVolumeClaim": {"claimName": "m", "readOnly": True}},
        ),
        ({"hostPath": {"path": "/data"}}, "/models", {"hostPath": {"path": "/data", "type": "Directory"}}),
    ],
)
def test_the_checkpoint_is_mounted_read_only(source: Any, directory: str, volume: Any) -> None:
    made = pod(model={**MODEL, "source": source})
    assert f"--model-dir={directory}" in made["containers"][0]["args"]
    assert {"name": "models", **volume} in made["volumes"]
    assert {"name": "models", "mountPath": "/models", "readOnly": True} in made["containers"][0]["volumeMounts"]


def test_the_demo_checkpoint_needs_no_volume() -> None:
    assert [volume["name"] for volume in pod()["volumes"]] == ["tmp", "work", "shm"]


def test_the_pod_is_hardened_and_drains_on_deletion() -> None:
    made = pod()
    assert made["automountServiceAccountToken"] is False
    assert made["enableServiceLinks"] is False
    assert made["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert made["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert made["terminationGracePeriodSeconds"] == 630
    assert made["readinessGates"] == [{"conditionType": "imageedit.dev/warm"}]


@pytest.mark.parametrize("device", ["npu", "cpu"])
def test_home_and_working_folder_can_be_written_and_are_bounded(device: str) -> None:
    made = pod(accelerator={"device": device})
    container = made["containers"][0]
    folders = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    limits = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in made["volumes"]}
    env = {item["name"]: item.get("value") for item in container["env"]}
    assert container["workingDir"] == env["HOME"] == "/var/lib/imageedit"
    assert env.get("ASCEND_WORK_PATH") == (env["HOME"] if device == "npu" else None)
    assert folders.keys() == {"/tmp", "/var/lib/imageedit", *(["/dev/shm"] if device == "npu" else [])}
    assert limits.keys() == set(folders.values())


def test_the_scrape_annotations_are_those_of_the_contract() -> None:
    annotations = manifests.deployment(resource(), "abc")["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "prometheus.io/path": "/metrics",
    }


def test_the_grace_period_follows_the_drain_timeout_without_making_a_revision() -> None:
    short = resource(rollout={"drainTimeout": "1m"})
    pod = manifests.deployment(short, "abc")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 90
    assert revision_hash(short) == revision_hash(resource())


def test_another_rendering_of_the_same_revision_has_another_digest() -> None:
    short = resource(rollout={"drainTimeout": "1m"})
    assert manifests.rendered(short, "abc") != manifests.rendered(resource(), "abc")


def test_a_deployment_carries_what_made_its_revision_outside_its_template() -> None:
    made = manifests.deployment(resource(), "abc")
    assert made["metadata"]["annotations"] == {
        "imageedit.dev/revision-spec": recipe(resource()),
        "imageedit.dev/rendered": manifests.rendered(resource(), "abc"),
    }
    assert "imageedit.dev/revision-spec" not in made["spec"]["template"]["metadata"]["annotations"]
