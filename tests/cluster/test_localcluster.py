"""What the local cluster gives to the other tests and the demo."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest

from cluster.web_pods import GATE, PYTHON, web_pod, web_service
from localcluster import cluster as local
from localcluster.addresses import RESOURCE_NAME
from localcluster.errors import LocalClusterError
from support.kubectl import Kubectl, condition, wait_for

WAIT_S = 30.0
CALL_API = """
import json, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
token = open(f"{folder}/token").read()
request = urllib.request.Request("https://10.96.0.1/version", headers={"Authorization": f"Bearer {token}"})
print(json.load(urllib.request.urlopen(request, context=context, timeout=5))["gitVersion"])
"""


@pytest.fixture
def cards(cluster: local.Cluster, two_cards: None) -> local.Cluster:
    """The cluster with two healthy cards."""
    if not cluster.embedded:
        pytest.skip("KUBECONFIG names a cluster without simulated cards")
    return cluster


def offered(kubectl: Kubectl) -> int:
    """The healthy cards that the node offers."""
    (node,) = kubectl.get("nodes")["items"]
    return int(node["status"]["allocatable"][RESOURCE_NAME])


def phase(kubectl: Kubectl, name: str, namespace: str) -> str:
    """Pending, Running, ..."""
    return str(kubectl.get("pod", name, "-n", namespace)["status"].get("phase"))


def is_true(kubectl: Kubectl, kind: str, name: str, namespace: str) -> bool:
    """Whether the pod's condition is True."""
    return bool(condition(kubectl.get("pod", name, "-n", namespace), kind)["status"] == "True")


def start(kubectl: Kubectl, pod: dict[str, Any]) -> None:
    """Create a pod and wait until its containers are ready."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    kubectl.apply(pod)
    wait_for("ready containers", lambda: is_true(kubectl, "ContainersReady", name, namespace), timeout_s=WAIT_S)


def answer(url: str) -> str | None:
    """The body of a GET, None while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return str(response.read().decode())
    except (urllib.error.URLError, OSError):
        return None


def series(cluster: local.Cluster, query: str) -> list[dict[str, Any]]:
    """The result of an instant query."""
    body = answer(f"{cluster.prometheus_url}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    return list(json.loads(body)["data"]["result"]) if body else []


def test_a_pod_behind_a_closed_gate_is_ready_only_once_its_condition_is_set(kubectl: Kubectl, namespace: str) -> None:
    start(kubectl, web_pod("web", namespace, gate=True))
    assert not is_true(kubectl, "Ready", "web", namespace)
    patch = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
    kubectl.run("patch", "pod", "web", "-n", namespace, "--subresource=status", "-p", json.dumps(patch))
    wait_for("the pod to be Ready", lambda: is_true(kubectl, "Ready", "web", namespace), timeout_s=WAIT_S)


def test_a_service_address_answers_from_the_host(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(web_service(namespace))
    start(kubectl, web_pod("web", namespace, cards=0))
    address = kubectl.get("service", "web", "-n", namespace)["spec"]["clusterIP"]
    wait_for("an answer", lambda: answer(f"http://{address}/") == "answered 1\n", timeout_s=WAIT_S)


def test_logs_and_exec_reach_a_container_which_knows_its_card(kubectl: Kubectl, namespace: str) -> None:
    start(kubectl, web_pod("web", namespace))
    assert kubectl.run("logs", "web", "-n", namespace).splitlines()[0] in {"cards 0", "cards 1"}
    assert kubectl.run("exec", "web", "-n", namespace, "--", PYTHON, "-c", "import os; print(os.getuid())") == "65532\n"


def test_a_pod_imports_the_virtual_environment_and_cannot_write_to_it(kubectl: Kubectl, namespace: str) -> None:
    start(kubectl, web_pod("web", namespace, cards=0))
    code = "import os, yaml; print(yaml.__file__.startswith('/opt/imageedit/venv/'), os.access(yaml.__file__, os.W_OK))"
    assert kubectl.run("exec", "web", "-n", namespace, "--", PYTHON, "-c", code) == "True False\n"


def test_a_service_account_token_opens_the_api_from_inside_a_pod(kubectl: Kubectl, namespace: str) -> None:
    start(kubectl, web_pod("web", namespace, cards=0))
    version = kubectl.run("exec", "web", "-n", namespace, "--", PYTHON, "-c", CALL_API).strip()
    assert version == json.loads(kubectl.run("get", "--raw", "/version"))["gitVersion"]


def test_a_pod_of_the_plain_runtime_gets_nothing_from_the_host(
    cards: local.Cluster, kubectl: Kubectl, namespace: str
) -> None:
    pod = web_pod("web", namespace, cards=0)
    pod["spec"]["runtimeClassName"] = "plain"
    kubectl.apply(pod)
    wait_for("the refusal", lambda: PYTHON in waiting_message(kubectl, "web", namespace), timeout_s=WAIT_S)


def waiting_message(kubectl: Kubectl, name: str, namespace: str) -> str:
    """Why the pod's container does not run."""
    statuses = kubectl.get("pod", name, "-n", namespace)["status"].get("containerStatuses", [])
    states = [state for status in statuses for key in ("state", "lastState") for state in status.get(key, {}).values()]
    return " ".join(state.get("message", "") for state in states)


def test_a_pod_stays_pending_while_no_card_is_free(cards: local.Cluster, kubectl: Kubectl, namespace: str) -> None:
    start(kubectl, web_pod("first", namespace, cards=2))
    kubectl.apply(web_pod("second", namespace, cards=1))
    wait_for(
        "the scheduler's refusal",
        lambda: "Insufficient huawei.com/Ascend910" in message(kubectl, "PodScheduled", "second", namespace),
        timeout_s=WAIT_S,
    )
    assert phase(kubectl, "second", namespace) == "Pending"
    kubectl.run("delete", "pod", "first", "-n", namespace)
    wait_for("the second pod to run", lambda: phase(kubectl, "second", namespace) == "Running", timeout_s=WAIT_S)


def message(kubectl: Kubectl, kind: str, name: str, namespace: str) -> str:
    """The message of the pod's condition."""
    return str(condition(kubectl.get("pod", name, "-n", namespace), kind).get("message", ""))


def test_a_sick_card_lowers_what_the_node_offers_until_it_is_well(cards: local.Cluster, kubectl: Kubectl) -> None:
    cards.set_card_health(1, healthy=False)
    wait_for("one card", lambda: offered(kubectl) == 1, timeout_s=WAIT_S)
    cards.set_card_health(1, healthy=True)
    wait_for("two cards", lambda: offered(kubectl) == 2, timeout_s=WAIT_S)


def test_the_number_of_cards_changes_at_run_time(cards: local.Cluster, kubectl: Kubectl) -> None:
    cards.set_cards(5)
    wait_for("five cards", lambda: offered(kubectl) == 5, timeout_s=WAIT_S)


def test_a_card_that_is_not_there_is_refused_in_words(cards: local.Cluster) -> None:
    with pytest.raises(LocalClusterError, match="there is no card 7"):
        cards.set_card_health(7, healthy=False)


def test_prometheus_scrapes_annotated_pods_and_drops_the_gone(
    cards: local.Cluster, kubectl: Kubectl, namespace: str
) -> None:
    start(kubectl, web_pod("web", namespace, cards=0))
    query = f'up{{namespace="{namespace}", pod="web"}}'
    wait_for("the pod's series", lambda: bool(series(cards, query)), timeout_s=WAIT_S)
    kubectl.run("delete", "pod", "web", "-n", namespace)
    wait_for("the series to end", lambda: not series(cards, query), timeout_s=WAIT_S)


def test_the_audit_log_says_who_wrote_what(cards: local.Cluster, kubectl: Kubectl, namespace: str) -> None:
    def writes() -> list[dict[str, Any]]:
        assert cards.audit_log is not None
        events = [json.loads(line) for line in cards.audit_log.read_text().splitlines() if namespace in line]
        return [
            event for event in events if event["verb"] == "create" and event["objectRef"]["resource"] == "configmaps"
        ]

    kubectl.run("create", "configmap", "noted", "-n", namespace)
    wait_for("the line", lambda: any(event["objectRef"].get("name") == "noted" for event in writes()), timeout_s=WAIT_S)
    (event,) = (event for event in writes() if event["objectRef"].get("name") == "noted")
    assert event["user"]["username"] == "imageedit-admin"
    assert event["userAgent"].startswith("kubectl/")


def test_the_admin_reads_the_api_servers_metrics(kubectl: Kubectl) -> None:
    assert "\napiserver_request_total{" in kubectl.run("get", "--raw", "/metrics")


def test_a_second_up_returns_at_once(cluster: local.Cluster) -> None:
    began = time.monotonic()
    assert local.up(cards=2) == cluster
    assert time.monotonic() - began < 5
