"""Wrong and good values of the fields that go into the server's pod: `path: value`, and the words of the refusal."""

from __future__ import annotations

from typing import Any

ENV, VOLUMES, MOUNTS = "server.env", "server.volumes", "server.volumeMounts"
EMPTY = {"name": "a", "emptyDir": {}}
TAKEN = "this variable is set by the operator, by a field of the spec or by the device plugin"
ELSEWHERE = "this path is the operator's or the system's; mount the volume elsewhere"
QUANTITY = "should match '^([0-9]+"


def _volume(**kind: Any) -> dict[str, Any]:
    return {VOLUMES: [{"name": "a", **kind}]}


def _mount(path: str, **more: Any) -> dict[str, Any]:
    return {VOLUMES: [EMPTY], MOUNTS: [{"name": "a", "mountPath": path, **more}]}


POD_FIELD_RULES: list[tuple[dict[str, Any], str]] = [
    # settings of the server
    ({"model.manifestDigest": "sha256:" + "A" * 64}, "the digest must be sha256 and a colon"),
    ({"model.manifestDigest": "sha256:12"}, "spec.model.manifestDigest in body should be at least 71 chars long"),
    ({"server.steps": {"standard": 20, "high": 19}}, "high must not be below standard"),
    ({"server.steps.high": 101}, "spec.server.steps.high in body should be less than or equal to 100"),
    ({"server.steps.dynamic": "on"}, "spec.server.steps.dynamic in body must be of type boolean"),
    ({"server.queue.maxWait": "90"}, "maxWait must be Auto, or a whole number followed by s, m or h"),
    ({"server.queue.maxWait": "25h"}, "maxWait may be at most 24h"),
    ({"server.references": 5}, "spec.server.references in body should be less than or equal to 4"),
    ({"server.negativePrompt": 1}, "spec.server.negativePrompt in body must be of type boolean"),
    # resources
    ({"server.resources.limits": {"huawei.com/Ascend910": 1}}, "only cpu, memory and ephemeral-storage stand here"),
    ({"server.resources.requests": {"cpus": 1}}, "only cpu, memory and ephemeral-storage stand here"),
    ({"server.resources.requests": {"cpu": "two"}}, QUANTITY),
    ({"server.resources.limits": {"memory": "-1"}}, QUANTITY),
    # variables
    ({ENV: [{"name": "1A", "value": "x"}]}, 'the name of a variable must be letters, digits and "_"'),
    ({ENV: [{"name": "IMAGEEDIT_MODEL_DIR", "value": "/m"}]}, TAKEN),
    ({ENV: [{"name": "ASCEND_VISIBLE_DEVICES", "value": "0"}]}, TAKEN),
    ({ENV: [{"name": "ASCEND_RT_VISIBLE_DEVICES", "value": "0"}]}, TAKEN),
    ({ENV: [{"name": "A"}]}, "give a variable exactly one of value and valueFrom"),
    (
        {ENV: [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
        "give a variable exactly one of value and valueFrom",
    ),
    ({ENV: [{"name": "A", "valueFrom": {}}]}, "give exactly one of secretKeyRef, configMapKeyRef and fieldRef"),
    ({ENV: [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]}, 'Duplicate value: {"name":"A"}'),
    ({ENV: [{"name": f"A{n}", "value": "x"} for n in range(65)]}, "must have at most 64 items"),
    # volumes
    (_volume(), "give exactly one of secret, configMap, persistentVolumeClaim, emptyDir and hostPath"),
    (_volume(emptyDir={}, secret={"secretName": "s"}), "give exactly one of secret, configMap"),
    ({VOLUMES: [{"name": "A", "emptyDir": {}}]}, 'the name of a volume must be lower-case letters, digits and "-"'),
    ({VOLUMES: [{"name": "models", "emptyDir": {}}]}, "this name is that of a volume of the operator"),
    ({VOLUMES: [{"name": "ascend-driver", "emptyDir": {}}]}, "this name is that of a volume of the operator"),
    (_volume(hostPath={"path": "data"}), 'the path on the node must be absolute, without ".."'),
    (_volume(hostPath={"path": "/data/.."}), 'the path on the node must be absolute, without ".."'),
    (_volume(emptyDir={"sizeLimit": "much"}), QUANTITY),
    ({VOLUMES: [{"name": f"v{n}", "emptyDir": {}} for n in range(17)]}, "must have at most 16 items"),
    # mounts
    ({MOUNTS: [{"name": "a", "mountPath": "/data"}]}, "every volumeMount must name one of volumes"),
    (_mount("data"), "the mount path must be absolute"),
    (_mount("/data/../etc"), "the mount path must be absolute"),
    (_mount("/"), "mountPath in body should be at least 2 chars long"),
    (_mount("/models"), ELSEWHERE),
    (_mount("/usr/local/Ascend/driver"), ELSEWHERE),
    (_mount("/data", subPath="../b"), 'subPath must be relative to the volume, without ".."'),
    # accelerator
    ({"accelerator.injection": "Guess"}, 'supported values: "Auto", "Runtime", "Plugin", "Privileged", "DRA"'),
    (
        {"accelerator": {"injection": "Plugin", "runtimeClassName": "ascend"}},
        "a runtimeClassName belongs to injection Auto and Runtime",
    ),
    ({"accelerator.runtimeClassName": "Ascend"}, "runtimeClassName must be the name of a RuntimeClass"),
    ({"accelerator.driverRoot": "driver"}, "driverRoot must be an absolute path"),
    ({"accelerator.driverRoot": "/usr/../etc"}, "driverRoot must be an absolute path"),
    ({"accelerator.deviceGroup": 0}, "spec.accelerator.deviceGroup in body should be greater than or equal to 1"),
    ({"accelerator.nodeSelector": {f"l{n}": "x" for n in range(17)}}, "must have at most 16 items"),
    ({"accelerator.tolerations": [{"operator": "In"}]}, 'supported values: "Equal", "Exists"'),
    ({"accelerator.compileCache": {}}, "spec.accelerator.compileCache.hostPath: Required value"),
    ({"accelerator.compileCache": {"hostPath": "a/b"}}, "the folder of the compile cache must be absolute"),
    ({"accelerator.deviceClassName": "NPU"}, "deviceClassName must be the name of a DeviceClass"),
    # service
    ({"service.type": "ExternalName"}, 'supported values: "ClusterIP", "NodePort", "LoadBalancer"'),
    ({"service.annotations": {f"a{n}": "x" for n in range(33)}}, "must have at most 32 items"),
    # the rest
    ({"server.imagePullSecrets": [{}]}, "spec.server.imagePullSecrets[0].name: Required value"),
    ({"server.serviceAccountName": ""}, "spec.server.serviceAccountName in body should be at least 1 chars long"),
    ({"server.priorityClassName": ""}, "spec.server.priorityClassName in body should be at least 1 chars long"),
]

POD_FIELD_GOOD: list[dict[str, Any]] = [
    {"model.manifestDigest": "sha256:" + "0a" * 32},
    {"server.steps": {"standard": 16, "high": 16, "dynamic": True}},
    {"server.queue.maxWait": "24h", "server.references": 4, "server.negativePrompt": True},
    {"server.resources": {"requests": {"cpu": 8, "memory": "64Gi"}, "limits": {"cpu": "500m", "memory": "1.5e9"}}},
    {"server.resources.limits": {"ephemeral-storage": "20G"}},
    {
        ENV: [
            {"name": "IMAGEEDIT_PROMPT_DENYLIST", "value": "/etc/lists/words"},
            {"name": "OTEL_EXPORTER_OTLP_HEADERS", "valueFrom": {"secretKeyRef": {"name": "otel", "key": "headers"}}},
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "EMPTY", "value": ""},
        ]
    },
    {ENV: [{"name": f"A{n}", "value": "x" * 64} for n in range(64)]},
    {
        VOLUMES: [
            {"name": "lists", "configMap": {"name": "lists", "items": [{"key": "words", "path": "words"}]}},
            {"name": "keys", "secret": {"secretName": "keys", "optional": True}},
            {"name": "jobs", "persistentVolumeClaim": {"claimName": "jobs", "readOnly": False}},
            {"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "fonts", "hostPath": {"path": "/usr/share/fonts", "type": "Directory"}},
        ],
        MOUNTS: [
            {"name": "lists", "mountPath": "/etc/lists", "readOnly": True},
            {"name": "jobs", "mountPath": "/var/lib/jobs", "subPath": "a/b"},
            {"name": "jobs", "mountPath": "/models-of-mine"},
        ],
    },
    {"server.imagePullSecrets": [{"name": "regcred"}], "server.serviceAccountName": "edit"},
    {"server.priorityClassName": "serving"},
    {"accelerator": {"injection": "Runtime", "runtimeClassName": "ascend.v1", "deviceGroup": 1001}},
    {"accelerator": {"injection": "Plugin", "driverRoot": "/var/lib/Ascend/driver"}},
    {"accelerator": {"injection": "Privileged"}},
    {"accelerator": {"injection": "DRA", "deviceClassName": "npu.example", "compileCache": {"hostPath": "/data/ops"}}},
    {"service": {"type": "LoadBalancer", "annotations": {"lb.example/scheme": "internal"}}},
    {"accelerator.nodeSelector": {"node.kubernetes.io/npu.chip.name": "910B3"}},
    {"accelerator.tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]},
]
