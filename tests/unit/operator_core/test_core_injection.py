"""How a pod gets at its card: one row of the table a test, and what holds for every row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imageedit_operator.core import manifests
from imageedit_operator.core import resource as resources
from imageedit_operator.core.accelerator import AUTO_INJECTIONS, INJECTIONS, AutoInjection
from imageedit_operator.core.injection import Injection, injection
from imageedit_operator.core.revision import revision_hash
from unit.operator_core.builders import CARD, manifest

DRIVER = ["/usr/local/Ascend/driver", "/usr/local/dcmi", "/etc/ascend_install.info"]
CHART_CLASS = AutoInjection(injection="Runtime", runtime_class="from-the-chart")


def parsed(auto: AutoInjection, **accelerator: Any) -> resources.ImageEditDeployment:
    return resources.parse(manifest(accelerator=accelerator), auto)


def pod(auto: AutoInjection | None = None, **accelerator: Any) -> dict[str, Any]:
    whole = parsed(auto or AutoInjection(), **accelerator)
    found: dict[str, Any] = manifests.deployment(whole, "abc")["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("given", "auto", "runtime_class", "driver", "privileged"),
    [
        ({"device": "cpu", "injection": "Plugin"}, AutoInjection(), "", False, False),
        ({"device": "cpu", "runtimeClassName": "ascend"}, CHART_CLASS, "", False, False),
        ({"injection": "Runtime", "runtimeClassName": "ascend"}, CHART_CLASS, "ascend", False, False),
        ({"injection": "Runtime"}, AutoInjection(), "", False, False),
        ({"injection": "Runtime"}, CHART_CLASS, "from-the-chart", False, False),
        ({"injection": "Plugin"}, CHART_CLASS, "", True, False),
        ({"injection": "Privileged"}, CHART_CLASS, "", True, True),
        ({"injection": "DRA"}, AutoInjection(injection="Plugin", runtime_class="x"), "", False, False),
        ({"runtimeClassName": "ascend"}, AutoInjection(injection="Plugin"), "ascend", False, False),
        ({}, AutoInjection(), "", False, False),
        ({}, CHART_CLASS, "from-the-chart", False, False),
        ({}, AutoInjection(injection="Plugin", runtime_class="x"), "", True, False),
        ({}, AutoInjection(injection="Privileged"), "", True, True),
    ],
)
def test_each_row_of_the_table(
    given: dict[str, Any], auto: AutoInjection, runtime_class: str, driver: bool, privileged: bool
) -> None:
    made = injection(parsed(auto, **given).accelerator)
    assert (made.runtime_class, made.privileged) == (runtime_class, privileged)
    assert [mount["mountPath"] for _, mount in made.folders] == (DRIVER if driver else [])


def test_a_cpu_pod_carries_nothing() -> None:
    assert injection(parsed(AutoInjection(injection="Privileged"), device="cpu").accelerator) == Injection()


def test_driver_folders_are_read_only_at_the_same_path_and_of_an_exact_type() -> None:
    folders = injection(parsed(AutoInjection(), injection="Plugin").accelerator).folders
    assert all(volume["hostPath"]["path"] == mount["mountPath"] and mount["readOnly"] for volume, mount in folders)
    assert [volume["hostPath"]["type"] for volume, _ in folders] == ["Directory", "Directory", "File"]


def test_a_driver_elsewhere_is_found_by_the_loader() -> None:
    made = pod(injection="Plugin", driverRoot="/var/lib/Ascend/driver/")
    (path,) = [item["value"] for item in made["containers"][0]["env"] if item["name"] == "LD_LIBRARY_PATH"]
    assert path == "/var/lib/Ascend/driver/lib64/common:/var/lib/Ascend/driver/lib64/driver"
    assert "LD_LIBRARY_PATH" not in json.dumps(pod(injection="Plugin"))


def test_the_runtime_class_is_named_in_the_pod() -> None:
    assert pod(runtimeClassName="ascend")["runtimeClassName"] == "ascend"
    assert "runtimeClassName" not in pod()


def test_a_privileged_container_says_nothing_that_the_apiserver_refuses_beside_it() -> None:
    assert pod(injection="Privileged")["containers"][0]["securityContext"] == {
        "privileged": True,
        "readOnlyRootFilesystem": True,
    }


def test_the_group_of_the_device_nodes_can_be_another_one() -> None:
    assert pod(deviceGroup=1001)["securityContext"]["supplementalGroups"] == [1001]


def test_pods_go_where_the_user_says_and_bear_the_taint_of_their_card() -> None:
    mine = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    made = pod(nodeSelector={"chip": "910B3"}, tolerations=[mine])
    assert made["nodeSelector"] == {"chip": "910B3"}
    assert made["tolerations"] == [{"key": CARD, "operator": "Exists", "effect": "NoSchedule"}, mine]


@pytest.mark.parametrize("device", ["npu", "cpu"])
@pytest.mark.parametrize("way", INJECTIONS)
@pytest.mark.parametrize("auto", AUTO_INJECTIONS)
def test_no_rendering_chooses_a_card_or_gives_one_to_an_init_container(device: str, way: str, auto: str) -> None:
    made = pod(AutoInjection(injection=auto), device=device, injection=way)
    assert "VISIBLE_DEVICES" not in json.dumps(made)
    assert "initContainers" not in made
    assert "command" not in made["containers"][0]
    amounts = made["containers"][0]["resources"]
    if (device, way) == ("npu", "DRA"):
        assert amounts == {"claims": [{"name": "card"}]}
    else:
        assert amounts == {"requests": {CARD: "1"}, "limits": {CARD: "1"}}


def test_what_the_operator_was_told_makes_no_new_revision() -> None:
    one, other = parsed(AutoInjection()), parsed(AutoInjection(injection="Plugin"))
    assert revision_hash(one) == revision_hash(other)


def test_a_claimed_card_comes_from_a_template_of_its_class_and_count() -> None:
    whole = parsed(AutoInjection(), injection="DRA", deviceClassName="npu.example", count=2)
    template = manifests.claim_template(whole)
    assert template is not None
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "npu.example", "allocationMode": "ExactCount", "count": 2}
    made = manifests.deployment(whole, "abc")["spec"]["template"]["spec"]
    assert made["resourceClaims"] == [
        {"name": "card", "resourceClaimTemplateName": template["metadata"]["name"]},
    ]


def test_claims_of_other_content_have_a_template_of_another_name() -> None:
    made = [
        manifests.claim_template(parsed(AutoInjection(), injection="DRA", count=count))["metadata"]["name"]  # type: ignore[index]
        for count in (1, 1, 2)
    ]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("given", [{}, {"injection": "Plugin"}, {"injection": "DRA", "device": "cpu"}])
def test_pods_that_count_cards_have_no_claim(given: dict[str, Any]) -> None:
    assert manifests.claim_template(parsed(AutoInjection(), **given)) is None
    assert "resourceClaims" not in pod(**given)


def test_a_pod_that_claims_its_card_requests_no_extended_resource() -> None:
    assert parsed(AutoInjection(), injection="DRA").accelerator.extended_resource == ""
    assert parsed(AutoInjection(), injection="DRA", device="cpu").accelerator.extended_resource == CARD


def test_compiled_operators_are_kept_apart_for_each_image() -> None:
    def cache(image: str) -> tuple[dict[str, Any], dict[str, Any]]:
        whole = resources.parse(
            manifest(server={"image": image}, accelerator={"compileCache": {"hostPath": "/data/ops"}})
        )
        made = manifests.deployment(whole, "abc")["spec"]["template"]["spec"]
        (volume,) = [item for item in made["volumes"] if item["name"] == "compile-cache"]
        (mount,) = [item for item in made["containers"][0]["volumeMounts"] if item["name"] == "compile-cache"]
        env = {item["name"]: item.get("value") for item in made["containers"][0]["env"]}
        assert env["ASCEND_CACHE_PATH"] == env["ACL_OP_COMPILER_CACHE_DIR"] == mount["mountPath"]
        return volume, mount

    (volume, one), (_, again), (_, other) = cache("server:1"), cache("server:1"), cache("server:2")
    assert volume["hostPath"] == {"path": "/data/ops", "type": "Directory"}
    assert one["subPath"] == again["subPath"] != other["subPath"]


def test_a_cpu_pod_has_no_compile_cache() -> None:
    assert "compile-cache" not in json.dumps(pod(device="cpu", compileCache={"hostPath": "/data/ops"}))
