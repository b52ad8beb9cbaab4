"""Wrong and good values of `spec.template`: the template, and the words of the refusal."""

from __future__ import annotations

from typing import Any

LABELS, NODES = "are set by the operator, which finds pods by them", "nodes and cards are chosen by spec.accelerator"
GIVEN, CARDS = "are given by spec.server.serviceAccountName", "cards are asked for by spec.accelerator"
VARIABLE = "a variable of the container server is set by the operator"
CARD = {"huawei.com/Ascend910": 1}


def labels(**names: str) -> dict[str, Any]:
    return {"metadata": {"labels": names}}


def pod(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def container(name: str = "log", **fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": name, **fields}])


TEMPLATE_RULES: list[tuple[dict[str, Any], str]] = [
    (labels(**{"imageedit.dev/revision": "x"}), LABELS),
    (labels(**{"app.kubernetes.io/component": "x"}), LABELS),
    (labels(**{f"l{n}": "x" for n in range(33)}), "must have at most 32 items"),
    ({"metadata": {"annotations": {"imageedit.dev/rendered": "x"}}}, "annotations under imageedit.dev/"),
    (
        {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "1"}}},
        "controller.kubernetes.io/pod-deletion-cost are set by the operator",
    ),
    (pod(nodeName="n"), NODES),
    (pod(nodeSelector={"a": "b"}), NODES),
    (pod(tolerations=[{"operator": "Exists"}]), NODES),
    (pod(runtimeClassName="ascend"), NODES),
    (pod(resourceClaims=[{"name": "card"}]), NODES),
    (pod(serviceAccountName="admin"), GIVEN),
    (pod(serviceAccount="admin"), GIVEN),
    (pod(priorityClassName="high"), GIVEN),
    (pod(terminationGracePeriodSeconds=1), "follows from spec.rollout.drainTimeout"),
    (container(resources={"limits": CARD}), CARDS),
    (container(resources={"requests": CARD}), CARDS),
    (pod(initContainers=[{"name": "i", "resources": {"limits": CARD}}]), CARDS),
    (container("server", env=[{"name": "IMAGEEDIT_PORT", "value": "1"}]), VARIABLE),
    (container("server", env=[{"name": "ASCEND_VISIBLE_DEVICES", "value": "0"}]), VARIABLE),
    (pod(containers=[{"image": "log:1"}]), "spec.template.spec.containers[0].name: Required value"),
    (pod(containers=[{"name": f"c{n}"} for n in range(17)]), "must have at most 16 items"),
    (pod(containers=[{"name": "c"}, {"name": "c"}]), 'Duplicate value: {"name":"c"}'),
]

TEMPLATE_GOOD: list[dict[str, Any]] = [
    {},
    labels(team="pictures", **{"app.kubernetes.io/part-of": "studio"}),
    {"metadata": {"annotations": {"a.example/b": "c" * 8000}}},
    pod(affinity={"podAntiAffinity": {}}, hostAliases=[{"ip": "10.0.0.1", "hostnames": ["models"]}]),
    pod(schedulerName="volcano", topologySpreadConstraints=[{"maxSkew": 1}], dnsConfig={"nameservers": ["10.0.0.2"]}),
    container(image="log:1", env=[{"name": "HOME", "value": "/"}], resources={"limits": {"cpu": 1, "memory": "1Gi"}}),
    container("server", env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]),
    pod(initContainers=[{"name": "wait", "image": "wait:1", "restartPolicy": "Always"}]),
    container("server", env=[{"name": f"A{n}", "value": "x" * 100} for n in range(64)]),
]
