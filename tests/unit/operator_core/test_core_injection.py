"""How a pod gets at its card: one row of the table a test, and what holds for every row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imageedit_operator.core import manifests
from imageedit_operator.core import resource as resources
from imageedit_operator.core.accelerator import INJECTIONS, AutoInjection
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
@pytest.mark.parametrize("auto", INJECTIONS[1:])
def test_no_rendering_chooses_a_card_or_gives_one_to_an_init_container(device: str, way: str, auto: str) -> None:
    made = pod(AutoInjection(injection=auto), device=device, injection=way)
    assert "VISIBLE_DEVICES" not in json.dumps(made)
    assert "initContainers" not in made
    assert "command" not in made["containers"][0]
    amounts = made["containers"][0]["resources"]
    assert amounts["requests"][CARD] == amounts["limits"][CARD] == "1"


def test_what_the_operator_was_told_makes_no_new_revision() -> None:
    one, other = parsed(AutoInjection()), parsed(AutoInjection(injection="Plugin"))
    assert revision_hash(one) == revision_hash(other)
