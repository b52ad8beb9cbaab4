"""The installed product on the local cluster: the chart, resources, and how to reach a service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.kubectl import Kubectl

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "imageedit-operator"
OPERATOR_NAMESPACE = "imageedit-system"
RELEASE = "imageedit-operator"
DEMO_NAMESPACE, DEMO_NAME = "imageedit-demo", "qwen-demo"
SERVER_IMAGE = "imageedit.local/server:dev"
INSTALL_TIMEOUT_S = 180.0
BACKGROUND_TOLERANCE = 30
"""Largest error of a channel, of 255, at which a background counts as the colour asked for (trained to 20)."""


VALUES_OF_TESTS = ("policy.allowHostPath=true",)
"""A broken source, which is one of the tests, is a folder of the node."""


def install_operator(kubectl: Kubectl, *, values: tuple[str, ...] = ()) -> None:
    """`helm upgrade --install` of the working tree's chart, CRD included, and wait until the operator is Available."""
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "crds" / "imageeditdeployments.yaml"))
    arguments = [
        *("upgrade", "--install", RELEASE, str(CHART), "--namespace", OPERATOR_NAMESPACE, "--create-namespace"),
        *("--set", "image.repository=imageedit.local/operator", "--set", "image.tag=dev"),
        *("--set", "image.pullPolicy=Never", "--wait", "--timeout", f"{INSTALL_TIMEOUT_S:.0f}s"),
    ]
    for value in values:
        arguments += ["--set", value]
    kubectl.run_helm(*arguments, timeout_s=INSTALL_TIMEOUT_S + 20)
    # The image is a view of the checkout: a pod that ran before runs the code of before, and helm sees no change.
    deployment = ("deployment", RELEASE, "-n", OPERATOR_NAMESPACE)
    kubectl.run("rollout", "restart", *deployment)
    kubectl.run(
        "rollout", "status", *deployment, f"--timeout={INSTALL_TIMEOUT_S:.0f}s", timeout_s=INSTALL_TIMEOUT_S + 20
    )


def image_edit_deployment(
    name: str,
    *,
    namespace: str,
    revision: str = "2026-11-a",
    replicas: int | None = None,
    autoscaling: dict[str, Any] | None = None,
    strategy: str = "Auto",
    sizes: tuple[str, ...] = ("128x128",),
    steps: int = 16,
    hard_limit: int = 50,
    source: dict[str, Any] | None = None,
    prefetch: dict[str, Any] | None = None,
    accelerator: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A manifest of the resource with the demo checkpoint on a simulated card."""
    spec: dict[str, Any] = {
        "model": {"name": "qwen-image-edit-tiny", "revision": revision, "source": source or {"demo": {}}},
        "server": {
            "image": SERVER_IMAGE,
            "sizes": list(sizes),
            "steps": {"standard": steps},
            "queue": {"hardLimit": hard_limit},
        },
        "accelerator": accelerator or {"device": "cpu", "resourceName": "huawei.com/Ascend910", "count": 1},
        "rollout": {"strategy": strategy},
    }
    if prefetch is not None:
        spec["model"]["prefetch"] = prefetch
    if replicas is not None:
        spec["replicas"] = replicas
    if autoscaling is not None:
        spec["autoscaling"] = autoscaling
    return {
        "apiVersion": "imageedit.dev/v1alpha1",
        "kind": "ImageEditDeployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def api_url(kubectl: Kubectl, name: str, namespace: str) -> str:
    """The OpenAI base URL of a resource's Service, by its cluster address."""
    service = kubectl.get("service", name, "-n", namespace)
    return f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}/v1"


def diagnosis(kubectl: Kubectl, namespace: str) -> str:
    """What a person would look at first when something failed: resources, pods, events, the operator's log."""
    sections = []
    for title, arguments in (
        ("resources", ("get", "imageeditdeployments", "-n", namespace, "-o", "yaml")),
        ("pods", ("get", "pods", "-A", "-o", "wide")),
        ("events", ("get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp")),
        (
            "operator log",
            (
                "logs",
                "-n",
                OPERATOR_NAMESPACE,
                "-l",
                "app.kubernetes.io/name=imageedit-operator",
                "--tail=60",
                "--prefix",
            ),
        ),
        (
            "server log",
            ("logs", "-n", namespace, "-l", "app.kubernetes.io/name=imageedit-server", "--tail=40", "--prefix"),
        ),
    ):
        try:
            text = kubectl.run(*arguments)
        except Exception as error:  # a diagnosis shows what it can get
            text = f"(not available: {error})"
        sections.append(f"--- {title}\n{text.rstrip()}")
    return "\n".join(sections)
