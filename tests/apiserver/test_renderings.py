"""Everything that the operator can render is taken by a real apiserver, field by field."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from apiserver.operator_plane import (
    client,
    create_resource,
    kubectl,
    new_namespace,
    plane,  # noqa: F401 - a fixture
)
from imageedit_operator.core import manifests, template
from imageedit_operator.core.accelerator import INJECTIONS
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.core.service_spec import ServiceSpec
from imageedit_operator.kube.client import TEMPLATE_MANAGER
from imageedit_operator.kube.kinds import DEPLOYMENTS, SERVICES
from imageedit_operator.kube.losses import marked
from imageedit_operator.kube.parsing import parse_deployment, service_matches
from localcluster.controlplane import ControlPlane

pytestmark = pytest.mark.timeout(300)

SERVER: dict[str, Any] = {
    "image": "server:1",
    "sizes": ["768x768"],
    "steps": {"standard": 16, "high": 40, "dynamic": True},
    "queue": {"hardLimit": 5, "maxWait": "2m"},
    "references": 2,
    "negativePrompt": True,
    "resources": {"requests": {"cpu": 4, "memory": "8Gi"}, "limits": {"memory": "64Gi", "ephemeral-storage": "20Gi"}},
    "env": [
        {"name": "IMAGEEDIT_PROMPT_DENYLIST", "value": "/etc/lists/words"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
        {"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ],
    "volumes": [
        {"name": "lists", "configMap": {"name": "c", "items": [{"key": "words", "path": "words"}]}},
        {"name": "keys", "secret": {"secretName": "s", "optional": True}},
        {"name": "jobs", "persistentVolumeClaim": {"claimName": "jobs"}},
        {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "fonts", "hostPath": {"path": "/usr/share/fonts", "type": "Directory"}},
    ],
    "volumeMounts": [
        {"name": name, "mountPath": f"/data/{name}", "readOnly": name != "jobs"}
        for name in ("lists", "keys", "jobs", "scratch", "fonts")
    ],
    "imagePullSecrets": [{"name": "regcred"}],
    "serviceAccountName": "edit",
    "priorityClassName": "high",
}
ACCELERATOR: dict[str, Any] = {
    "device": "npu",
    "resourceName": "huawei.com/Ascend910",
    "deviceGroup": 1001,
    "driverRoot": "/opt/driver",
    "nodeSelector": {"node.kubernetes.io/npu.chip.name": "910B3"},
    "tolerations": [{"key": "team", "operator": "Equal", "value": "a", "effect": "NoExecute", "tolerationSeconds": 60}],
    "compileCache": {"hostPath": "/data/ops"},
}


@pytest.mark.parametrize("way", INJECTIONS)
async def test_a_deployment_with_every_field_is_taken_as_it_was_written(
    plane: ControlPlane,  # noqa: F811
    way: str,
) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        runtime = {"runtimeClassName": "ascend"} if way == "Runtime" else {}
        accelerator = {**ACCELERATOR, **runtime, "injection": way}
        stored = await create_resource(kube, namespace, server=SERVER, accelerator=accelerator)
    found = parse(stored)
    written = [manifests.deployment(found, revision_hash(found)), manifests.claim_template(found)]
    for manifest in (item for item in written if item is not None):
        taken = json.loads(
            kubectl(
                plane,
                *("create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"),
                stdin=json.dumps(manifest),
            )
        )
        assert lost(manifest["spec"], taken["spec"]) == []


def lost(written: Any, taken: Any, path: str = "spec") -> list[str]:
    """Paths of what the apiserver left out or changed; an empty value may go."""
    if isinstance(written, dict):
        return [
            missing
            for name, value in written.items()
            for missing in (
                lost(value, taken[name], f"{path}.{name}") if name in taken else [f"{path}.{name}"] if value else []
            )
        ]
    if isinstance(written, list):
        if len(written) != len(taken):
            return [path]
        return [
            missing
            for n, (one, other) in enumerate(zip(written, taken, strict=True))
            for missing in lost(one, other, f"{path}[{n}]")
        ]
    return [] if written == taken else [f"{path}: {written!r} became {taken!r}"]


# What an apiserver drops, fills in, writes otherwise or takes for the name of a list.
ODD_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"env": "prod", "ports": ""}, "annotations": {"a": "", "containers": "x"}},
    "spec": {
        "hostNetwork": False,
        "shareProcessNamespace": False,
        "hostname": "",
        "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["a"]}, {"ip": "10.0.0.8", "hostnames": ["b"]}],
        "affinity": {"podAntiAffinity": {}, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "dnsConfig": {"nameservers": [], "options": [{"name": "ndots", "value": None}]},
        "securityContext": {"runAsUser": None, "sysctls": [], "fsGroup": 0},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "volumes": [
            {"name": "none"},
            {"name": "empty", "emptyDir": {}},
            {"name": "null", "emptyDir": None},
            {"name": "all", "projected": {"sources": []}},
            {"name": "map", "configMap": {"name": "c", "optional": False, "items": []}},
            {"name": "csi", "csi": {"driver": "d", "readOnly": False, "volumeAttributes": {"env": "a", "volumes": ""}}},
        ],
        "containers": [
            {
                "name": "server",
                "env": [{"name": "EMPTY", "value": ""}, {"name": "NULL", "value": None}],
                "stdin": False,
                "lifecycle": {},
                "ports": [{"containerPort": 9000}],
                "volumeMounts": [{"name": "empty", "mountPath": "/e", "readOnly": False, "subPath": ""}],
                "volumeDevices": [],
                "resources": {"limits": {"cpu": None}, "requests": None, "claims": []},
            },
            {
                "name": "log",
                "image": "log:1",
                "args": None,
                "env": [],
                "ports": [{"containerPort": 7, "hostPort": 0}, {"containerPort": 7, "protocol": "UDP"}],
                "resources": {"requests": {"memory": "1024Mi", "cpu": 1}},
                "securityContext": {"runAsNonRoot": False, "capabilities": {"drop": []}},
                "livenessProbe": {"httpGet": {"path": "/", "port": 7}, "initialDelaySeconds": 0},
            },
        ],
    },
}


async def test_from_a_template_of_odd_values_nothing_was_taken_before_somebody_does(
    plane: ControlPlane,  # noqa: F811
) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        stored = parse(await create_resource(kube, namespace, template=ODD_TEMPLATE))
        wanted = manifests.deployment(stored, revision_hash(stored))

        async def lost_by_now() -> tuple[str, ...]:
            live = await kube.get(DEPLOYMENTS, namespace, wanted["metadata"]["name"])
            return marked(parse_deployment(live, owner_uid=stored.uid), live, stored).changed

        made = parse_deployment(await kube.apply(DEPLOYMENTS, namespace, wanted, uid=""), owner_uid=stored.uid)
        assert await lost_by_now() == ()
        beside = template.manifest(stored, made)
        await kube.apply_beside(DEPLOYMENTS, namespace, beside, manager=TEMPLATE_MANAGER, dry_run=False)
        assert await lost_by_now() == ()
        await kube.patch(DEPLOYMENTS, namespace, made.name, {"spec": {"replicas": 2}})
        assert await lost_by_now() == ()

        odd = await kube.get(DEPLOYMENTS, namespace, made.name)
        left = [item for item in odd["spec"]["template"]["spec"]["hostAliases"] if item["ip"] != "10.0.0.9"]
        body = {"spec": {"template": {"spec": {"hostAliases": left}}}}
        kubectl(plane, "-n", namespace, "patch", "deployment", made.name, "--type=merge", "-p", json.dumps(body))
        assert await lost_by_now() == ("spec.template.spec.hostAliases[ip=10.0.0.9] taken away",)


async def test_an_annotation_that_is_taken_out_leaves_the_service_and_a_strangers_stays(
    plane: ControlPlane,  # noqa: F811
) -> None:
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        annotated = {"type": "NodePort", "annotations": {"lb.example/a": "1", "lb.example/b": "2"}}
        before = parse(await create_resource(kube, namespace, service=annotated))
        await kube.apply(SERVICES, namespace, manifests.service(before))
        kubectl(plane, "-n", namespace, "annotate", "service", "edit", "stranger.example/c=3")
        after = replace(before, service=ServiceSpec(annotations={"lb.example/a": "1"}))
        wanted = manifests.service(after)

        live = await kube.get(SERVICES, namespace, "edit")
        assert service_matches(manifests.service(before), live)
        assert not service_matches(wanted, live)
        await kube.apply(SERVICES, namespace, wanted)
        live = await kube.get(SERVICES, namespace, "edit")

    assert service_matches(wanted, live)
    assert live["spec"]["type"] == "ClusterIP"
    assert live["metadata"]["annotations"] == {"lb.example/a": "1", "stranger.example/c": "3"}
