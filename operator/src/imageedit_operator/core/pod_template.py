"""The pod of a revision: what the operator gives every server, and what `spec.server` adds to it."""

from __future__ import annotations

import hashlib
from typing import Any

from imageedit_operator.core.injection import Injection, injection
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import copy_name

API_PORT = 8000
PROBE_PORT = 8080
MODELS_DIR = "/models"
WARM_GATE = "imageedit.dev/warm"

TERMINATION_MARGIN_S = 30
"""A pod that is deleted by others drains as long as one that we drain; the margin covers
the propagation time and the process's own exit."""

WORK_DIR = "/var/lib/imageedit"
"""Home and working folder: where CANN puts logs, traces, compiled operators and kernel_meta, and
libraries their caches."""

CACHE_DIR = "/var/cache/imageedit"
"""Compiled operators that outlive the pod."""

CACHE_VARIABLES = ("ASCEND_CACHE_PATH", "ACL_OP_COMPILER_CACHE_DIR")
CARD_REQUEST = "card"

SHARED_MEMORY, TMP_LIMIT, WORK_LIMIT = "2Gi", "8Gi", "8Gi"
"""A pod that writes more is evicted, before its node runs out of disk or memory."""

Item = dict[str, Any]


def pod_spec(resource: ImageEditDeployment, hash_: str) -> Item:
    """The spec of the pod template."""
    accelerator, added = resource.accelerator, resource.server.pod
    injected, place = injection(accelerator), accelerator.place()
    named = {
        "nodeSelector": dict(place.node_selector),
        "tolerations": [dict(item) for item in place.tolerations],
        "runtimeClassName": injected.runtime_class,
        "resourceClaims": _claims(resource),
        "imagePullSecrets": [{"name": name} for name in added.image_pull_secrets],
        "serviceAccountName": added.service_account_name,
        "priorityClassName": added.priority_class_name,
    }
    return {
        "readinessGates": [{"conditionType": WARM_GATE}],
        "terminationGracePeriodSeconds": int(resource.rollout.drain_timeout_s) + TERMINATION_MARGIN_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "seccompProfile": {"type": "RuntimeDefault"},
            **({"supplementalGroups": [accelerator.device_group]} if accelerator.device == "npu" else {}),
        },
        "containers": [_container(resource, hash_, injected)],
        "volumes": [*(volume for volume, _ in _volumes(resource, injected)), *map(dict, added.volumes)],
        **{name: value for name, value in named.items() if value},
    }


def _container(resource: ImageEditDeployment, hash_: str, injected: Injection) -> Item:
    added = resource.server.pod
    container: Item = {
        "name": "server",
        "image": resource.server.image,
        "args": _args(resource, hash_),
        "workingDir": WORK_DIR,
        "env": [*_env(resource, injected), *map(dict, added.env)],
        "ports": [
            {"name": "api", "containerPort": API_PORT, "protocol": "TCP"},
            {"name": "probes", "containerPort": PROBE_PORT, "protocol": "TCP"},
        ],
        # The API process answers /healthz long before the model is loaded, so no start-up probe is needed.
        "livenessProbe": _probe("/healthz", delay_s=20, period_s=10, timeout_s=5, failures=6),
        "readinessProbe": _probe("/readyz", delay_s=0, period_s=2, timeout_s=2, failures=2),
        "terminationMessagePolicy": "File",
        "securityContext": _security(injected),
        "volumeMounts": [*(mount for _, mount in _volumes(resource, injected)), *map(dict, added.volume_mounts)],
    }
    resources = _resources(resource)
    return {**container, "resources": resources} if resources else container


def _security(injected: Injection) -> Item:
    if injected.privileged:  # the apiserver refuses it together with the other two
        return {"privileged": True, "readOnlyRootFilesystem": True}
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _resources(resource: ImageEditDeployment) -> Item:
    """The user's amounts and the cards, for which request and limit must be the same, or the claim on them."""
    accelerator, given = resource.accelerator, resource.server.pod.resources
    cards = {accelerator.extended_resource: str(accelerator.count)} if accelerator.extended_resource else {}
    whole: Item = {kind: {**given.get(kind, {}), **cards} for kind in ("requests", "limits")}
    whole["claims"] = [{"name": claim["name"]} for claim in _claims(resource)]
    return {kind: amounts for kind, amounts in whole.items() if amounts}


def _claims(resource: ImageEditDeployment) -> list[Item]:
    if not resource.accelerator.claims:
        return []
    return [{"name": CARD_REQUEST, "resourceClaimTemplateName": claim_template_name(resource)}]


def claim_template_name(resource: ImageEditDeployment) -> str:
    """Name of the ResourceClaimTemplate: one for each content."""
    content = f"{resource.accelerator.device_class}/{resource.accelerator.count}"
    return f"{resource.name}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"


def _args(resource: ImageEditDeployment, hash_: str) -> list[str]:
    server, digest = resource.server, resource.model.manifest_digest
    settings = {
        "model-name": resource.model.name,
        "model-dir": _model_dir(resource),
        "model-revision": resource.model.revision,
        "revision-hash": hash_,
        "device": resource.accelerator.device,
        "sizes": ",".join(server.sizes),
        "steps": str(server.steps),
        "queue-hard-limit": str(server.queue_hard_limit),
        # From here on only what is not at its default: images of earlier releases do not know these.
        **({"max-wait": str(int(server.max_wait_s))} if server.max_wait_s is not None else {}),
        **({"steps-high": str(server.steps_high)} if server.steps_high is not None else {}),
        **({"dynamic-steps": "on"} if server.dynamic_steps else {}),
        **({"max-references": str(server.references)} if server.references != 1 else {}),
        **({"warm-cfg": "on"} if server.negative_prompt else {}),
        **({"manifest-digest": digest} if digest else {}),
    }
    # "--name=value" in one word: a value that begins with a dash stays a value. The kubelet
    # expands $(NAME) in arguments, $$ is its escape.
    return [f"--{name}={value.replace('$', '$$')}" for name, value in settings.items()]


def _model_dir(resource: ImageEditDeployment) -> str:
    source, prefetch = resource.model.source, resource.model.prefetch
    if prefetch is not None:
        return f"{MODELS_DIR}/{copy_name(resource)}" if prefetch.kind == "pvc" else MODELS_DIR
    if source.kind == "demo":
        return "demo"
    if source.kind == "pvc" and source.path:
        return f"{MODELS_DIR}/{source.path}"
    return MODELS_DIR


def _env(resource: ImageEditDeployment, injected: Injection) -> list[Item]:
    npu = resource.accelerator.device == "npu"
    env: list[Item] = [
        {"name": "IMAGEEDIT_DEPLOYMENT", "value": resource.name},
        _from_field("IMAGEEDIT_NAMESPACE", "metadata.namespace"),
        _from_field("IMAGEEDIT_POD", "metadata.name"),
        _from_field("IMAGEEDIT_POD_UID", "metadata.uid"),
        {"name": "HOME", "value": WORK_DIR},
        *([{"name": "ASCEND_WORK_PATH", "value": WORK_DIR}] if npu else []),
        *([{"name": name, "value": CACHE_DIR} for name in CACHE_VARIABLES] if _cache(resource) else []),
    ]
    # Threads of several pods on one node would only wait for each other.
    threads = [] if npu else [{"name": "OMP_NUM_THREADS", "value": "1"}]
    given = {item["name"] for item in resource.server.pod.env}
    return [*env, *(item for item in (*threads, *injected.env) if item["name"] not in given)]


def _from_field(name: str, path: str) -> Item:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, *, delay_s: int, period_s: int, timeout_s: int, failures: int) -> Item:
    return {
        "httpGet": {"path": path, "port": "probes"},
        "initialDelaySeconds": delay_s,
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
    }


def _volumes(resource: ImageEditDeployment, injected: Injection) -> list[tuple[Item, Item]]:
    """Each volume of the operator's with its mount; the root file system is read-only."""
    volumes = [_scratch("tmp", "/tmp", TMP_LIMIT), _scratch("work", WORK_DIR, WORK_LIMIT), *_models(resource)]
    if resource.accelerator.device == "npu":
        memory = {"medium": "Memory", "sizeLimit": SHARED_MEMORY}
        volumes.append(({"name": "shm", "emptyDir": memory}, {"name": "shm", "mountPath": "/dev/shm"}))
    return [*volumes, *_cache(resource), *injected.folders]


def _models(resource: ImageEditDeployment) -> list[tuple[Item, Item]]:
    """The checkpoint, or its local copy. On a node that has no copy yet the pod waits until it is there."""
    source, prefetch = resource.model.source, resource.model.prefetch
    claim_name, path = source.claim_name, source.path if source.kind == "hostPath" else ""
    if prefetch is not None:
        claim_name = prefetch.claim_name
        path = f"{prefetch.path}/{copy_name(resource)}" if prefetch.kind == "hostPath" else ""
    mount = {"name": "models", "mountPath": MODELS_DIR, "readOnly": True}
    if path:
        return [({"name": "models", "hostPath": {"path": path, "type": "Directory"}}, mount)]
    if claim_name:
        claim = {"claimName": claim_name, "readOnly": True}
        return [({"name": "models", "persistentVolumeClaim": claim}, mount)]
    return []


def _cache(resource: ImageEditDeployment) -> list[tuple[Item, Item]]:
    """The image fixes the CANN release and the node the chip: together they are what compiled operators fit."""
    path = resource.accelerator.compile_cache
    if not path or resource.accelerator.device != "npu":
        return []
    image = hashlib.sha256(resource.server.image.encode()).hexdigest()[:16]
    volume = {"name": "compile-cache", "hostPath": {"path": path, "type": "Directory"}}
    return [(volume, {"name": "compile-cache", "mountPath": CACHE_DIR, "subPath": image})]


def _scratch(name: str, path: str, limit: str) -> tuple[Item, Item]:
    return {"name": name, "emptyDir": {"sizeLimit": limit}}, {"name": name, "mountPath": path}
