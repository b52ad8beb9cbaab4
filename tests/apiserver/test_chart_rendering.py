"""The chart as helm renders it, against a real apiserver and against the programs that it starts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from imageedit_operator.settings import load
from localcluster import binaries, controlplane
from localcluster.progress import console
from support.kubectl import CommandFailed, Kubectl, wait_for

CHART = Path(__file__).resolve().parents[2] / "helm" / "imageedit-operator"
NAMESPACED = ("--set", "watchNamespaces={team-a,team-b}")
LEASES = "coordination.k8s.io/leases"
NO_HEALTH = ("--set", "cardHealth=false")
PLUGIN_ROLES = ("--set", "pluginRoles.create=true", "--set", "pluginRoles.aggregateTo={edit}")
NO_LEDGER = ("--set", "cardLedger=false")
PODMONITOR = ("--set", "podMonitor.enabled=true", "--set", "podMonitor.labels.release=prometheus")

pytestmark = pytest.mark.timeout(400)

Manifest = Mapping[str, Any]


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """A bare apiserver and helm, with the namespaces that the variants name."""
    helm = binaries.ensure(("helm",), console)["helm"]
    with controlplane.up_only() as plane:
        client = Kubectl(kubeconfig=plane.kubeconfig, kubectl=plane.kubectl, helm=helm)
        for name in ("imageedit-system", "team-a", "team-b"):
            client.run("create", "namespace", name)
        yield client


def render(kubectl: Kubectl, *arguments: str, release: str = "imageedit-operator") -> list[Manifest]:
    """`helm template`, parsed."""
    text = kubectl.run_helm("template", release, str(CHART), "--namespace", "imageedit-system", *arguments)
    return [document for document in yaml.safe_load_all(text) if document]


def only(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


def kinds(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {(m["kind"], f"{m['metadata'].get('namespace', '')}/{m['metadata']['name']}") for m in manifests}


def rules(manifests: list[Manifest]) -> set[tuple[str, str, str]]:
    """(resource, verb, namespace or "*") of every right that is granted."""
    return {
        (f"{group}/{resource}".lstrip("/"), verb, m["metadata"].get("namespace", "*"))
        for m in manifests
        if m["kind"] in {"Role", "ClusterRole"}
        for rule in m["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_helm_finds_nothing_to_criticise(kubectl: Kubectl) -> None:
    assert "0 chart(s) failed" in kubectl.run_helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        NAMESPACED,
        NO_LEDGER,
        NO_HEALTH,
        PLUGIN_ROLES,
        (*NAMESPACED, *NO_LEDGER),
        ("--set", "dashboards.enabled=false", "--set", "scrapeAnnotations=false"),
        ("--set", "policy.serviceAccounts={edit}", "--set", "policy.exemptNamespaces={team-a}"),
        ("--set", "imagePullSecrets[0].name=regcred", "--set", "priorityClassName=system-cluster-critical"),
        ("--set", "extraEnv[0].name=A", "--set-string", "extraEnv[0].value=1", "--set", "extraArgs={--shutdown=5}"),
        ("--set", "tolerations[0].operator=Exists", "--set", "nodeSelector.disk=ssd", "--set", "podAnnotations.a=b"),
    ],
    ids=lambda arguments: " ".join(arguments) or "defaults",
)
def test_the_apiserver_takes_every_object(kubectl: Kubectl, arguments: tuple[str, ...]) -> None:
    manifests = render(kubectl, *arguments)
    taken = kubectl.run(
        *("apply", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"),
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}),
    )
    assert len(taken.split()) == len(manifests)


def test_the_operator_understands_its_arguments(kubectl: Kubectl) -> None:
    manifests = render(kubectl, *NAMESPACED, "--set", "operator.workers=3", "--set", "operator.resyncSeconds=60")
    (container,) = only(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    settings = load(container["args"], {})
    assert (settings.namespaces, settings.workers, settings.resync_s) == (("team-a", "team-b"), 3, 60.0)


def test_the_operator_is_told_how_pods_get_at_cards(kubectl: Kubectl) -> None:
    values = ("--set", "accelerator.autoInjection=Plugin", "--set", "accelerator.runtimeClassName=ascend")
    (container,) = only(render(kubectl, *values), "Deployment")["spec"]["template"]["spec"]["containers"]
    auto = load(container["args"], {}).auto
    assert (auto.injection, auto.runtime_class) == ("Plugin", "ascend")


def test_the_charts_defaults_are_the_operators(kubectl: Kubectl) -> None:
    (container,) = only(render(kubectl), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert load(container["args"], {}) == load([], {})
    assert container["ports"] == [{"name": "probes", "containerPort": load([], {}).http_port}]


def test_the_pod_passes_the_restricted_security_standard(kubectl: Kubectl) -> None:
    kubectl.run("label", "namespace", "team-a", "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    template = only(render(kubectl), "Deployment")["spec"]["template"]
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team-a"},
        "spec": template["spec"],
    }
    lax = copy.deepcopy(pod)
    del lax["spec"]["containers"][0]["securityContext"]

    def refused() -> bool:  # once the label has reached the admission plugin
        try:
            kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(lax))
        except CommandFailed as error:
            return 'violates PodSecurity "restricted' in str(error)
        return False

    wait_for("a pod that is not restricted to be refused", refused, timeout_s=90)
    kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


def test_two_replicas_share_a_lease_and_prefer_different_nodes(kubectl: Kubectl) -> None:
    manifests = render(kubectl, release="mine")
    spec = only(manifests, "Deployment")["spec"]
    pod = spec["template"]["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]) == (2, {"maxSurge": 1, "maxUnavailable": 0})
    settings = load(pod["containers"][0]["args"], {})
    assert (settings.leader_elect, settings.lease_name) == (True, "mine-imageedit-operator")
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]


def test_a_lone_replica_has_no_disruption_budget_that_would_hold_up_a_drain(kubectl: Kubectl) -> None:
    assert only(render(kubectl), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert not any(m["kind"] == "PodDisruptionBudget" for m in render(kubectl, "--set", "replicas=1"))


def test_own_rules_of_affinity_replace_the_preference(kubectl: Kubectl) -> None:
    spec = only(render(kubectl, "--set", "affinity.nodeAffinity.x=y"), "Deployment")["spec"]
    assert spec["template"]["spec"]["affinity"] == {"nodeAffinity": {"x": "y"}}


def test_watched_namespaces_get_roles_of_their_own_and_nothing_else_is_writable(kubectl: Kubectl) -> None:
    granted = rules(render(kubectl, *NAMESPACED))
    assert {where for _, _, where in granted} == {"team-a", "team-b", "imageedit-system", "kube-system", "*"}
    assert {resource for resource, _, where in granted if where == "imageedit-system"} == {LEASES}
    assert {(resource, verb) for resource, verb, where in granted if where == "*"} == {
        ("nodes", "list"),
        ("pods", "list"),
    }


def test_without_the_card_ledger_a_namespaced_install_has_no_right_over_the_cluster(kubectl: Kubectl) -> None:
    manifests = render(kubectl, *NAMESPACED, *NO_LEDGER)
    assert [m["metadata"]["name"] for m in manifests if m["kind"].startswith("Cluster")] == []


def test_of_kube_system_only_configmaps_that_can_be_named_are_readable(kubectl: Kubectl) -> None:
    def there(*arguments: str) -> set[tuple[str, str]]:
        return {(right, verb) for right, verb, where in rules(render(kubectl, *arguments)) if where == "kube-system"}

    assert there() == there(*NAMESPACED) == {("configmaps", "get")}
    assert there(*NO_HEALTH) == there(*NO_LEDGER) == set()


def test_both_ways_of_installing_grant_the_same_rights_in_a_watched_namespace(kubectl: Kubectl) -> None:
    everywhere = {(resource, verb) for resource, verb, where in rules(render(kubectl, *NO_LEDGER)) if where == "*"}
    in_team_a = {(r, verb) for r, verb, where in rules(render(kubectl, *NAMESPACED)) if where == "team-a"}
    assert everywhere == in_team_a


def test_roles_of_the_plugin_are_made_where_asked_for_and_bound_to_nobody(kubectl: Kubectl) -> None:
    def roles(*arguments: str) -> dict[tuple[str, str], Manifest]:
        made = (m for m in render(kubectl, *arguments) if m["kind"] in {"Role", "ClusterRole"})
        return {(m["kind"], m["metadata"]["name"]): m for m in made if "plugin" in m["metadata"]["name"]}

    name = "imageedit-operator-plugin"
    found = roles(*PLUGIN_ROLES)
    assert roles() == {}
    assert set(found) == {("ClusterRole", name), ("ClusterRole", f"{name}-cards"), ("Role", f"{name}-cards")}
    assert found["ClusterRole", name]["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    bindings = [m for m in render(kubectl, *PLUGIN_ROLES) if m["kind"].endswith("Binding")]
    assert bindings == [m for m in render(kubectl) if m["kind"].endswith("Binding")]


def test_no_right_is_a_wildcard_and_the_spec_is_never_writable(kubectl: Kubectl) -> None:
    granted = rules(render(kubectl))
    assert not any("*" in (resource, verb) for resource, verb, _ in granted)
    writes = {verb for resource, verb, _ in granted if resource == "imageedit.dev/imageeditdeployments"}
    assert writes == {"get", "list", "watch"}
    assert not any("secrets" in resource for resource, _, _ in granted)


@pytest.mark.parametrize("arguments", [("--kube-version", "1.29.0"), ("--set", "policy.enabled=false")])
def test_without_a_policy_nothing_of_one_is_rendered(kubectl: Kubectl, arguments: tuple[str, ...]) -> None:
    assert not any(m["kind"].startswith("ValidatingAdmission") for m in render(kubectl, *arguments))


def test_the_policy_covers_the_namespaces_that_are_watched(kubectl: Kubectl) -> None:
    arguments = (*NAMESPACED, "--set", "policy.exemptNamespaces={team-b}")
    binding = only(render(kubectl, *arguments), "ValidatingAdmissionPolicyBinding")["spec"]
    assert binding["matchResources"]["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"]},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team-b"]},
    ]
    assert "matchResources" not in only(render(kubectl), "ValidatingAdmissionPolicyBinding")["spec"]


def test_the_dashboard_arrives_unchanged(kubectl: Kubectl) -> None:
    config = only(render(kubectl), "ConfigMap")
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config["data"]["imageedit.json"]) == json.loads((CHART / "dashboards/imageedit.json").read_text())


def test_pod_monitors_select_the_pods_and_ports_of_the_contract(kubectl: Kubectl) -> None:
    manifests = render(kubectl, *PODMONITOR)
    servers, operator = (
        next(m for m in manifests if m["kind"] == "PodMonitor" and m["metadata"]["name"] == name)
        for name in ("imageedit-operator-servers", "imageedit-operator")
    )
    assert servers["spec"]["namespaceSelector"] == {"any": True}
    assert servers["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "imageedit-server",
        "app.kubernetes.io/managed-by": "imageedit-operator",
    }
    assert servers["metadata"]["labels"]["release"] == "prometheus"
    template = only(manifests, "Deployment")["spec"]["template"]
    assert operator["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert {e["port"] for m in (servers, operator) for e in m["spec"]["podMetricsEndpoints"]} == {"probes"}


def test_pod_monitors_are_off_unless_asked_for(kubectl: Kubectl) -> None:
    assert not any(m["kind"] == "PodMonitor" for m in render(kubectl))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("imagePullSecret=x", "additional properties 'imagePullSecret' not allowed"),
        ("image.registry=x", "additional properties 'registry' not allowed"),
        ("operator.workers=0", "minimum: got 0, want 1"),
        ("image.pullPolicy=Sometimes", "value must be one of 'Always', 'IfNotPresent', 'Never'"),
        ("watchNamespaces={Team}", "does not match pattern"),
        ("podMonitor.interval=fast", "does not match pattern"),
        ("cardLedger=maybe", "got string, want boolean"),
        ("policy.driverRoots={driver}", "does not match pattern"),
        ("accelerator.autoInjection=Auto", "value must be one of 'Runtime', 'Plugin', 'Privileged'"),
    ],
)
def test_a_wrong_value_is_refused(kubectl: Kubectl, value: str, words: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        render(kubectl, "--set", value)
    assert words in str(caught.value)


def test_names_stay_short_enough_for_a_long_release_name(kubectl: Kubectl) -> None:
    manifests = render(kubectl, release="r" * 53)
    assert max(len(name.split("/")[1]) for _, name in kinds(manifests)) <= 63


def test_install_upgrade_and_removal_leave_only_the_resource_definition(kubectl: Kubectl) -> None:
    where = ("--namespace", "imageedit-system")
    try:
        said = kubectl.run_helm("install", "imageedit-operator", str(CHART), *where)
        assert "crds/imageeditdeployments.yaml" in said
        assert kubectl.exists("deployment", "imageedit-operator", "-n", "imageedit-system")
        kubectl.run_helm("upgrade", "imageedit-operator", str(CHART), *where, *NAMESPACED)
        assert not kubectl.exists("clusterrole", "imageedit-operator")
        assert kubectl.exists("role", "imageedit-operator", "-n", "team-a")
    finally:
        kubectl.run_helm("uninstall", "imageedit-operator", *where)
    assert not kubectl.exists("clusterrole", "imageedit-operator-cards")
    assert not kubectl.exists("role", "imageedit-operator", "-n", "team-a")
    assert kubectl.exists("crd", "imageeditdeployments.imageedit.dev")
