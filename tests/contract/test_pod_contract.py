"""Operator and server never import each other; here both are held to docs/reference/pod-contract.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from imageedit_operator import queue_metrics
from imageedit_operator.core import manifests, pods
from imageedit_operator.core.pod_fields import RESERVED_VARIABLES
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.warmz import parse_warm_report
from imageedit_server import errors
from imageedit_server.arguments import environment_name
from imageedit_server.settings import Settings, settings_from
from imageedit_server.telemetry import Telemetry

ROOT = Path(__file__).resolve().parents[2]
DIGEST = "sha256:" + "0a" * 32
PAGE = (ROOT / "docs" / "reference" / "pod-contract.md").read_text()


def resource(**spec: Any) -> Any:
    """A parsed resource that says everything that the server is told."""
    return parse(
        {
            "metadata": {"name": "qwen-edit", "namespace": "team", "uid": "u-1", "generation": 1},
            "spec": {
                "model": {
                    "name": "qwen-image-edit-2511",
                    "revision": "2026-11 $(HOME)",
                    "source": {"demo": {}},
                    "manifestDigest": DIGEST,
                },
                "server": {
                    "image": "registry.example/server:1",
                    "sizes": ["768x768", "768x576"],
                    "steps": {"standard": 24, "high": 40, "dynamic": True},
                    "queue": {"hardLimit": 7, "maxWait": "2m"},
                    "references": 3,
                    "negativePrompt": True,
                },
                "accelerator": {"device": "cpu"},
                **spec,
            },
        }
    )


def server_container() -> dict[str, Any]:
    """The container that the operator writes."""
    deployment = manifests.deployment(resource(), revision_hash(resource()))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def kubelet_expands(argument: str) -> str:
    """What the kubelet makes of an argument: $$ is an escaped $."""
    return argument.replace("$$", "$")


def settings_of_the_pod() -> Settings:
    """The server's own reading of what the operator gives it."""
    container = server_container()
    values = {"metadata.namespace": "team", "metadata.name": "pod-1", "metadata.uid": "pod-uid"}
    environment = {
        item["name"]: item["value"] if "value" in item else values[item["valueFrom"]["fieldRef"]["fieldPath"]]
        for item in container["env"]
    }
    return settings_from([kubelet_expands(argument) for argument in container["args"]], environment)


def test_the_server_reads_every_argument_as_the_operator_means_it() -> None:
    settings = settings_of_the_pod()

    assert settings.model_name == "qwen-image-edit-2511"
    assert settings.model_dir == "demo"
    assert settings.model_revision == "2026-11 $(HOME)"
    assert settings.revision_hash == revision_hash(resource())
    assert settings.device == "cpu"
    assert [str(size) for size in settings.sizes] == ["768x768", "768x576"]
    assert settings.steps == 24
    assert settings.queue_hard_limit == 7
    assert settings.max_wait_s == 120
    assert (settings.steps_high, settings.dynamic_steps) == (40, True)
    assert (settings.max_references, settings.warm_cfg) == (3, True)
    assert settings.manifest_digest == DIGEST


def test_the_pod_tells_the_server_who_it_is() -> None:
    settings = settings_of_the_pod()

    assert (settings.namespace, settings.deployment, settings.pod, settings.pod_uid) == (
        "team",
        "qwen-edit",
        "pod-1",
        "pod-uid",
    )


def test_the_ports_are_those_of_the_contract() -> None:
    settings = settings_of_the_pod()
    ports = {port["name"]: port["containerPort"] for port in server_container()["ports"]}

    assert ports == {"api": settings.port, "probes": settings.probe_port} == {"api": 8000, "probes": 8080}


def test_every_variable_of_the_operator_stands_on_the_page() -> None:
    other_root = {"injection": "Plugin", "driverRoot": "/opt/driver", "compileCache": {"hostPath": "/data/ops"}}
    on_npu = manifests.deployment(resource(accelerator=other_root), "abc")
    (container,) = on_npu["spec"]["template"]["spec"]["containers"]
    given = {item["name"] for item in (*container["env"], *server_container()["env"])}

    rows = re.findall(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", PAGE, re.MULTILINE)
    assert given == {name for row in rows for name in re.findall(r"[A-Z_]+", row)}


def test_every_argument_of_the_operator_stands_on_the_page() -> None:
    given = {argument.partition("=")[0] for argument in server_container()["args"]}

    assert given == set(re.findall(r"^\| `(--[a-z-]+)` \|", PAGE, re.MULTILINE))


def test_fields_at_their_default_give_no_argument_that_an_earlier_server_does_not_know() -> None:
    bare = resource(model={"name": "m", "revision": "r", "source": {"demo": {}}}, server={"image": "i"})
    (container,) = manifests.deployment(bare, "abc")["spec"]["template"]["spec"]["containers"]
    first = PAGE.split("From `--max-wait` on")[0].split("| `--max-wait`")[0]

    given = {argument.partition("=")[0] for argument in container["args"]}

    assert given == set(re.findall(r"^\| `(--[a-z-]+)` \|", first, re.MULTILINE))


def test_a_variable_of_an_argument_that_the_operator_gives_is_refused() -> None:
    given = {argument.partition("=")[0].removeprefix("--") for argument in server_container()["args"]}

    assert {environment_name(name) for name in given} <= set(RESERVED_VARIABLES)


def test_every_variable_that_the_operator_sets_is_refused_or_may_be_set_instead() -> None:
    given = {item["name"] for item in server_container()["env"]}

    assert given - set(RESERVED_VARIABLES) == {"OMP_NUM_THREADS"}


def test_the_operator_reads_the_page_s_example_of_warmz() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)

    report = parse_warm_report(json.loads(example))

    assert report.warm
    assert report.check_ok
    assert report.edit_s_by_size == {"768x768": 21.3}
    assert (report.running, report.waiting, report.accepting) == (0, 0, True)


def test_exit_reasons_are_the_same_on_both_sides_and_on_the_page() -> None:
    on_the_page = {
        reason: int(code) for reason, code in re.findall(r"^\| `([A-Z]\w+)` \| (\d+) \|", PAGE, re.MULTILINE)
    }

    assert on_the_page == errors.EXIT_CODES
    assert set(on_the_page) == set(pods.EXIT_REASONS)


@pytest.mark.parametrize("metric", [queue_metrics.WAITING, queue_metrics.RUNNING])
def test_the_server_exports_what_the_autoscaler_asks_for_with_the_labels_it_selects(metric: str) -> None:
    telemetry = Telemetry(namespace="team", deployment="qwen-edit", revision_hash="abc", sizes=("768x768",))

    (series,) = [line for line in telemetry.exposition().decode().splitlines() if line.startswith(f"{metric}{{")]

    labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
    assert labels == {"imageedit_namespace": "team", "imageedit_deployment": "qwen-edit", "imageedit_revision": "abc"}


def test_readiness_gate_and_labels_of_the_pods_stand_on_the_page() -> None:
    deployment = manifests.deployment(resource(), "abc")
    template = deployment["spec"]["template"]
    (gate,) = template["spec"]["readinessGates"]

    names = {gate["conditionType"], *template["metadata"]["labels"], *template["metadata"]["annotations"]}
    assert {name for name in names if name.partition("=")[0] not in PAGE} == set()
