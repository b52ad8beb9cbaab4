"""The chart's admission policy against a real apiserver: what a resource may not reach, and what still passes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.operator_plane import install
from localcluster import binaries, controlplane
from localcluster.progress import console
from support.kubectl import CommandFailed, Kubectl, wait_for

CHART = Path(__file__).resolve().parents[2] / "helm" / "imageedit-operator"
STRICT, EXEMPT, LAX = "strict", "exempt", "lax"
"""Namespaces: under the defaults, exempt from them, and under a second release that allows everything."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """A bare apiserver with the policies of two releases in force, and one object from before."""
    helm = binaries.ensure(("helm",), console)["helm"]
    with controlplane.up_only() as plane:
        install(plane)
        client = Kubectl(kubeconfig=plane.kubeconfig, kubectl=plane.kubectl, helm=helm)
        for name in (STRICT, EXEMPT, LAX):
            client.run("create", "namespace", name)
        client.run("create", "-f", "-", stdin=json.dumps(resource(HOST_SOURCE, name="older")))
        apply_policy(client, "strict", f"policy.exemptNamespaces={{{EXEMPT},{LAX}}}")
        apply_policy(
            client,
            "lax",
            f"watchNamespaces={{{LAX}}}",
            *("policy.allowHostPath=true", "policy.allowPrivileged=true", "policy.serviceAccounts={edit}"),
            "policy.driverRoots={/usr/local/Ascend/driver,/opt/driver}",
        )
        wait_for("the policies to be in force", lambda: in_force(client), timeout_s=90)
        yield client


def apply_policy(kubectl: Kubectl, release: str, *values: str) -> None:
    arguments = [part for value in values for part in ("--set", value)]
    shown = kubectl.run_helm("template", release, str(CHART), "--show-only", "templates/policy.yaml", *arguments)
    kubectl.run("apply", "-f", "-", stdin=shown)


def in_force(kubectl: Kubectl) -> bool:
    """Policies reach admission a moment after they are stored."""
    return "policy.allowHostPath" in refusal(kubectl, resource(HOST_SOURCE)) and "may be left out" in refusal(
        kubectl, resource({"server.serviceAccountName": "other"}, namespace=LAX)
    )


def resource(changes: dict[str, Any], *, name: str = "edit", namespace: str = STRICT) -> dict[str, Any]:
    """A good object with `path: value` changes."""
    built: dict[str, Any] = {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": {"name": "m", "revision": "a", "source": {"demo": {}}}, "server": {"image": "server:1"}},
    }
    for path, value in changes.items():
        *parents, last = path.split(".")
        node = built["spec"]
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = copy.deepcopy(value)
    return built


def try_out(kubectl: Kubectl, manifest: dict[str, Any]) -> None:
    kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))


def refusal(kubectl: Kubectl, manifest: dict[str, Any]) -> str:
    """The words of the refusal; empty when there is none."""
    try:
        try_out(kubectl, manifest)
    except CommandFailed as error:
        return str(error)
    return ""


HOST_SOURCE: dict[str, Any] = {"model.source": {"hostPath": {"path": "/etc"}}}


def template(**pod: Any) -> dict[str, Any]:
    return {"template": {"spec": pod}}


def secured(**context: Any) -> dict[str, Any]:
    return template(containers=[{"name": "a"}, {"name": "b", "securityContext": context}])


OF_TEMPLATES: dict[str, list[dict[str, Any]]] = {
    "a hostPath in spec.template.spec.volumes reaches a folder of the node": [
        template(volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/etc"}}]),
    ],
    "in spec.template share what belongs to the node": [
        template(hostNetwork=True),
        template(hostPID=True),
        template(hostIPC=True),
        template(containers=[{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 2, "hostPort": 2}]}]),
        template(initContainers=[{"name": "a", "ports": [{"containerPort": 2, "hostPort": 2}]}]),
    ],
    "a securityContext in spec.template may not be privileged": [
        secured(privileged=True),
        secured(capabilities={"add": ["SYS_ADMIN"]}),
        secured(procMount="Unmasked"),
        secured(seLinuxOptions={"type": "spc_t"}),
        secured(windowsOptions={"hostProcess": True}),
        secured(seccompProfile={"type": "Unconfined"}),
        secured(appArmorProfile={"type": "Unconfined"}),
        template(initContainers=[{"name": "a", "securityContext": {"privileged": True}}]),
        template(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        template(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        {"template": {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}}}},
    ],
}
"""What the policy says, and templates that make it say so."""

REFUSED: list[tuple[dict[str, Any], str]] = [
    (HOST_SOURCE, "spec.model.source.hostPath reads a folder of the node"),
    (
        {"model.source": {"pvc": {"claimName": "m"}}, "model.prefetch": {"hostPath": {"path": "/etc"}}},
        "spec.model.prefetch.hostPath writes into a folder of the node",
    ),
    (
        {"server.volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/etc"}}]},
        "a hostPath in spec.server.volumes reaches a folder of the node",
    ),
    ({"accelerator.compileCache": {"hostPath": "/etc"}}, "spec.accelerator.compileCache writes into a folder"),
    ({"accelerator.injection": "Privileged"}, "spec.accelerator.injection Privileged gives the pod every card"),
    ({"server.serviceAccountName": "edit"}, "spec.server.serviceAccountName may be left out, or be one of default"),
    ({"accelerator.driverRoot": "/opt/driver"}, "spec.accelerator.driverRoot is mounted from the node"),
    *((change, words) for words, changes in OF_TEMPLATES.items() for change in changes),
]

PASSES: list[dict[str, Any]] = [
    {},
    {"model.source": {"pvc": {"claimName": "models"}}},
    {"model.source": {"pvc": {"claimName": "m"}}, "model.prefetch": {"pvc": {"claimName": "fast"}}},
    {"server.volumes": [{"name": "a", "secret": {"secretName": "s"}}]},
    {"accelerator": {"injection": "Plugin"}},
    {"accelerator": {"injection": "DRA"}},
    {"accelerator": {"injection": "Runtime", "runtimeClassName": "ascend"}},
    {"server.serviceAccountName": "default"},
    {"template": {"metadata": {"labels": {"team": "a"}, "annotations": {"a": "b"}}}},
    template(hostNetwork=False, volumes=[{"name": "a", "csi": {"driver": "d"}}], securityContext={"runAsUser": 1000}),
    template(containers=[{"name": "a", "ports": [{"containerPort": 1}], "securityContext": {"privileged": False}}]),
    secured(capabilities={"drop": ["ALL"]}, seccompProfile={"type": "RuntimeDefault"}),
]


IDS = [f"{next(reversed(changes))}-{at}" for at, (changes, _) in enumerate(REFUSED)]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=IDS)
def test_what_reaches_the_node_is_refused_with_words(kubectl: Kubectl, changes: dict[str, Any], words: str) -> None:
    assert words in refusal(kubectl, resource(changes))


@pytest.mark.parametrize("changes", PASSES, ids=[f"{list(changes)}-{at}" for at, changes in enumerate(PASSES)])
def test_what_does_not_reach_the_node_passes(kubectl: Kubectl, changes: dict[str, Any]) -> None:
    try_out(kubectl, resource(changes))


@pytest.mark.parametrize("namespace", [EXEMPT, LAX])
@pytest.mark.parametrize("changes", [changes for changes, _ in REFUSED], ids=IDS)
def test_what_an_administrator_allows_passes(kubectl: Kubectl, namespace: str, changes: dict[str, Any]) -> None:
    try_out(kubectl, resource(changes, namespace=namespace))


def test_a_change_to_what_is_refused_is_refused_too(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", stdin=json.dumps(resource({}, name="changed")))
    with pytest.raises(CommandFailed, match=r"policy\.allowPrivileged"):
        kubectl.merge("ied", "changed", STRICT, {"spec": {"accelerator": {"injection": "Privileged"}}})


def test_an_object_from_before_keeps_working_until_its_spec_changes(kubectl: Kubectl) -> None:
    kubectl.merge("ied", "older", STRICT, {"metadata": {"labels": {"team": "a"}}})
    kubectl.run(
        *("patch", "ied", "older", "-n", STRICT, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": {"phase": "Serving"}})),
    )
    with pytest.raises(CommandFailed, match=r"policy\.allowHostPath"):
        kubectl.merge("ied", "older", STRICT, {"spec": {"model": {"revision": "b"}}})
