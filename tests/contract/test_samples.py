"""The samples beside the custom resource fit what the operator writes and what the server takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
from imageedit_operator.queue_metrics import RUNNING, WAITING
from imageedit_server.arguments import ARGUMENTS

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "docs" / "samples"
JOBS = ("weights-hub", "weights-modelscope", "weights-s3")
LONGEST_S = 600


def sample(name: str) -> dict[str, Any]:
    """The only object of a file."""
    (found,) = yaml.safe_load_all((SAMPLES / f"{name}.yaml").read_text())
    return dict(found)


def service() -> dict[str, Any]:
    """The Service of the resource that the samples are written for."""
    resource = yaml.safe_load((ROOT / "crds/samples/npu-pvc.yaml").read_text())
    return manifests.service(parse(resource))


def trigger(kind: str) -> dict[str, str]:
    """What the only trigger of this type of the ScaledObject is told; KEDA takes strings alone."""
    (found,) = [item["metadata"] for item in sample("scaledobject")["spec"]["triggers"] if item["type"] == kind]
    return dict(found)


def pod_template() -> dict[str, Any]:
    resource = yaml.safe_load((ROOT / "crds/samples/npu-pvc.yaml").read_text())
    return dict(manifests.deployment(parse(resource), "abc")["spec"]["template"])


def test_the_network_policy_selects_server_pods_and_names_their_ports() -> None:
    spec = sample("networkpolicy")["spec"]
    template = pod_template()
    ports = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
    assert spec["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert ports == {port["name"] for port in template["spec"]["containers"][0]["ports"]}


def test_the_ingress_leads_to_the_service() -> None:
    (rule,) = sample("ingress")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    found = path["backend"]["service"]
    (port,) = service()["spec"]["ports"]
    assert (found["name"], found["port"]["number"]) == (service()["metadata"]["name"], port["port"])


def test_the_ingress_lets_pictures_and_long_edits_through() -> None:
    annotations = sample("ingress")["metadata"]["annotations"]
    told = {name.rsplit("/", 1)[1]: value for name, value in annotations.items()}
    assert int(told["proxy-body-size"].removesuffix("m")) * 1024**2 == int(ARGUMENTS["max-body-bytes"][0] or 0)
    assert {int(told["proxy-read-timeout"]), int(told["proxy-send-timeout"])} == {LONGEST_S}
    assert (told["proxy-buffering"], told["proxy-next-upstream"]) == ("off", "off")


def test_the_route_leads_to_the_service_and_waits_as_long_as_the_ingress() -> None:
    (rule,) = sample("httproute")["spec"]["rules"]
    (backend,) = rule["backendRefs"]
    (port,) = service()["spec"]["ports"]
    assert (backend["name"], backend["port"]) == (service()["metadata"]["name"], port["port"])
    assert set(rule["timeouts"].values()) == {f"{LONGEST_S}s"}


def test_the_scaled_object_scales_the_resource_through_its_scale_subresource() -> None:
    definition = yaml.safe_load((ROOT / "crds/imageeditdeployments.yaml").read_text())["spec"]
    (version,) = definition["versions"]
    resource = yaml.safe_load((ROOT / "crds/samples/npu-pvc.yaml").read_text())
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    assert sample("scaledobject")["spec"]["scaleTargetRef"] == {
        "apiVersion": f"{definition['group']}/{version['name']}",
        "kind": definition["names"]["kind"],
        "name": resource["metadata"]["name"],
    }


def test_the_scaled_object_asks_for_the_queue_of_its_resource() -> None:
    found = sample("scaledobject")
    name, namespace = found["spec"]["scaleTargetRef"]["name"], found["metadata"]["namespace"]
    labels = f'imageedit_namespace="{namespace}",imageedit_deployment="{name}"'
    asked = re.findall(r"(\w+){([^}]*)}", trigger("prometheus")["query"])
    assert dict(asked) == {WAITING: labels, RUNNING: labels}


def test_the_scaled_object_takes_no_data_for_no_empty_queue() -> None:
    assert trigger("prometheus")["ignoreNullValues"] == "false"


def test_the_scaled_object_is_woken_from_zero_by_more_than_the_queue_of_pods() -> None:
    spec = sample("scaledobject")["spec"]
    assert (spec["minReplicaCount"], int(trigger("cron")["desiredReplicas"]) > 0) == (0, True)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_hashes_the_files_before_they_get_their_name(name: str) -> None:
    (container,) = sample(name)["spec"]["template"]["spec"]["containers"]
    script = container["command"][-1]
    steps = [script.index(step) for step in ("mkdir -p", "imageedit-server manifest", 'mv "$incoming"')]
    assert steps == sorted(steps)


def test_every_sample_stands_in_a_page() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert [path.name for path in SAMPLES.glob("*.yaml") if f"samples/{path.name}" not in pages] == []


def test_no_sample_names_an_address_outside_of_examples() -> None:
    text = "".join(path.read_text() for path in SAMPLES.glob("*.yaml"))
    assert {host for host in re.findall(r"https?://([a-z.-]+)", text) if not host.endswith(".example")} == set()
