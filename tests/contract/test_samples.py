"""The samples beside the custom resource fit what the operator writes and what the server takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
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
