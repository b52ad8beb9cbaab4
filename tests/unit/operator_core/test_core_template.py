"""When `spec.template` is applied, what holds pods back until then, and what is said when it cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import template
from imageedit_operator.core.actions import ApplyTemplate, CreateDeployment, ScaleDeployment, SetGate
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed, Refusal
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.core.stored import find
from unit.operator_core.builders import OLD, deployment, manifest, resource, serving_pod, starting_pod
from unit.operator_core.cluster_model import Cluster

NOW = 1_000_000.0
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"team": "a"}}, "spec": {"hostNetwork": False}}
RESOURCE = resource(template=TEMPLATE, replicas=2)
HASH = revision_hash(RESOURCE)
REFUSAL = Refusal(message="Deployment is invalid: no image.")
BARE = deployment(0, HASH)
FINISHED = replace(BARE, templated=True)
FOREIGN = replace(BARE, owned=False)
STARTS, SERVES = starting_pod(revision_hash=HASH), serving_pod(revision_hash=HASH)
GOING = replace(STARTS, terminating=True)


@pytest.mark.parametrize(
    ("wanted", "deployments", "pods", "unfinished"),
    [
        ({}, (BARE,), (), False),
        (TEMPLATE, (), (), False),
        (TEMPLATE, (FOREIGN,), (), False),
        (TEMPLATE, (FINISHED,), (), False),
        (TEMPLATE, (BARE,), (), True),
        (TEMPLATE, (BARE,), (STARTS,), True),
        (TEMPLATE, (BARE,), (SERVES,), False),
        (TEMPLATE, (deployment(0, OLD),), (), False),
    ],
)
def test_a_deployment_is_unfinished_by_its_row(wanted: Any, deployments: Any, pods: Any, unfinished: bool) -> None:
    found = template.unfinished(resource(template=wanted), deployments, pods, HASH)
    assert (found is not None) is unfinished


@pytest.mark.parametrize(
    ("bare", "pods", "refusal", "applies"),
    [
        (None, (), None, False),
        (BARE, (), REFUSAL, False),
        (replace(BARE, replicas=1), (), None, False),
        (BARE, (STARTS,), None, False),
        (BARE, (GOING,), None, False),
        (BARE, (serving_pod(revision_hash=OLD),), None, True),
        (BARE, (), None, True),
    ],
)
def test_a_template_is_applied_by_its_row(bare: Any, pods: Any, refusal: Any, applies: bool) -> None:
    assert bool(template.finish(RESOURCE, bare, pods, refusal)) is applies


def test_the_second_manager_says_nothing_but_the_template_over_what_was_seen() -> None:
    assert template.manifest(RESOURCE, BARE) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"edit-{HASH}", "namespace": "team", "uid": f"uid-{HASH}", "resourceVersion": "7"},
        "spec": {"template": TEMPLATE},
    }


def fields(count: int) -> dict[str, str]:
    return {f".spec.template.spec.f{at}": "imageedit-operator" for at in range(count)}


@pytest.mark.parametrize(
    ("refusal", "reason", "words"),
    [
        (
            Refusal(message="x", contested=fields(1)),
            "TemplateConflict",
            "sets spec.f0, which imageedit-operator sets to",
        ),
        (Refusal(message="x", contested=fields(2)), "TemplateConflict", "spec.f1, which imageedit-operator sets to an"),
        (Refusal(message="x", contested=fields(5)), "TemplateConflict", "and 2 more to another value"),
        (Refusal(message="x", contested={".spec.x": "kubectl"}), "TemplateConflict", "sets spec.x, which kubectl sets"),
        (REFUSAL, "TemplateInvalid", "is refused: Deployment is invalid: no image; correct spec.template"),
    ],
)
def test_a_refusal_becomes_a_reason_and_what_to_do(refusal: Refusal, reason: str, words: str) -> None:
    found = template.trouble(refusal)
    assert found is not None
    assert (found.reason, words in found.message) == (reason, True)


def test_no_refusal_is_no_trouble() -> None:
    assert template.trouble(None) is None


@pytest.mark.parametrize(
    ("field", "own"),
    [
        ('.spec.template.spec.containers[name="server"].image', True),
        ('.spec.template.spec.containers[name="server"].args', True),
        ('.spec.template.spec.containers[name="server"].env[name="IMAGEEDIT_DEPLOYMENT"].value', True),
        ('.spec.template.spec.containers[name="server"].ports[containerPort=8000,protocol="TCP"].name', True),
        ('.spec.template.spec.containers[name="server"].livenessProbe.httpGet', True),
        ('.spec.template.spec.volumes[name="tmp"].emptyDir.sizeLimit', True),
        (".spec.template.spec.readinessGates", True),
        (".spec.template.metadata.labels.app.kubernetes.io/name", True),
        ('.spec.template.spec.containers[name="server"].imagePullPolicy', False),
        ('.spec.template.spec.containers[name="server2"].image', False),
        (".spec.template.spec.schedulerName", False),
        (".spec.template.metadata.labels.team", False),
    ],
)
def test_a_field_is_the_operators_own_when_its_manifest_sets_it(field: str, own: bool) -> None:
    assert template.is_own(field, RESOURCE) is own


# --- in the plan

OLD_PODS = (serving_pod("a", revision_hash=OLD), serving_pod("b", revision_hash=OLD))


def seen(*pods: ObservedPod, refusal: Refusal | None = None, **changes: Any) -> Observed:
    """Two old pods serve, and the new revision's Deployment is bare."""
    rest = Observed(
        deployments=(deployment(2, OLD), BARE),
        pods=(*OLD_PODS, *pods),
        service_exists=True,
        service_matches=True,
        cards=Known(value=CardLedger(allocatable=9, requested=2)),
        template_refusal=refusal,
        status={"lastGoodRevision": OLD, "currentRevision": OLD, "desiredReplicas": 2},
    )
    return replace(rest, **changes)


def planned(observed: Observed, **spec: Any) -> Any:
    whole = resource(template=TEMPLATE, **{"replicas": 2, **spec})
    return plan(whole, observed, PlanMemory(), NOW)[0]


def test_the_first_deployment_is_made_without_pods() -> None:
    made = planned(Observed(service_exists=True, service_matches=True))
    (created,) = [action for action in made.actions if isinstance(action, CreateDeployment)]
    assert created.manifest["spec"]["replicas"] == 0
    assert not [action for action in made.actions if isinstance(action, ApplyTemplate)]


def test_a_bare_deployment_gets_its_template_and_no_pod() -> None:
    made = planned(seen())
    assert [action.manifest for action in made.actions if isinstance(action, ApplyTemplate)] == [
        template.manifest(RESOURCE, BARE)
    ]
    assert not [action for action in made.actions if isinstance(action, ScaleDeployment)]
    assert find(made.status, "Progressing")["reason"] == "RollingOut"
    assert find(made.status, "Ready")["status"] == "False"


def test_a_finished_deployment_gets_its_first_pod() -> None:
    made = planned(seen(deployments=(deployment(2, OLD), FINISHED)))
    assert [(action.name, action.replicas) for action in made.actions if isinstance(action, ScaleDeployment)] == [
        (f"edit-{HASH}", 1)
    ]


def test_a_refused_template_stands_and_the_old_revision_follows_the_number_of_pods() -> None:
    made = planned(seen(refusal=REFUSAL), replicas=3)
    assert [(action.name, action.replicas) for action in made.actions if isinstance(action, ScaleDeployment)] == [
        (f"edit-{OLD}", 3)
    ]
    for kind in ("Ready", "Progressing", "Degraded", "RolloutStuck"):
        assert find(made.status, kind)["reason"] == "TemplateInvalid"
    assert find(made.status, "Available")["status"] == "True"
    assert find(made.status, "Progressing")["message"].endswith("the rollout stops here and the old revision serves on")
    assert planned(seen(refusal=REFUSAL)).requeue_after_s == 5


def test_on_a_first_start_no_old_revision_is_said_to_serve() -> None:
    made = planned(seen(refusal=REFUSAL, pods=(), deployments=(BARE,), status={}))
    assert find(made.status, "Progressing")["message"].endswith("correct spec.template")
    assert find(made.status, "Available")["status"] == "False"


def test_pods_that_somebody_started_without_the_template_go_and_get_no_gate() -> None:
    warm = replace(SERVES, name="new", ready=False, gate=None)
    by_hand = seen(warm, deployments=(deployment(2, OLD), replace(BARE, replicas=1)))
    made = planned(by_hand)
    assert not [action for action in made.actions if isinstance(action, ApplyTemplate)]
    assert not [action for action in made.actions if isinstance(action, SetGate) and action.value]
    assert planned(replace(by_hand, pods=OLD_PODS)).actions[-1] == ScaleDeployment(
        name=f"edit-{HASH}",
        uid=f"uid-{HASH}",
        resource_version="7",
        replicas=0,
        why="removes 1 pod that does not exist yet",
    )


# --- carried out


@pytest.mark.parametrize("dies", [0.0, 0.3])
@pytest.mark.parametrize("two_operators", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_from_any_place_where_an_operator_ends_the_pods_end_with_the_template(
    dies: float, two_operators: bool, seed: int
) -> None:
    model = Cluster(manifest=manifest(replicas=2, template=TEMPLATE), cards=3, two_operators=two_operators, seed=seed)
    model.settle()
    model.dies = dies
    model.change(template={"spec": {"hostNetwork": True}})
    model.settle()
    model.change(template={})
    model.settle()
    model.change(template=TEMPLATE)
    model.upgrade_operator()
    model.settle()
    assert model.condition("Ready")["status"] == "True"
    assert {pod.hash for pod in model.active} == {model.hash}
    run = [item for item in model.deployments.values() if item.replicas]
    assert [(item.hash, item.templated) for item in run] == [(model.hash, True)]
    assert model.violations == []
