"""`plan` reads files as kubectl does, and says what changes, how, and for how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from imageedit_operator.cli import dry_run, files, plan_text, plan_view
from imageedit_operator.cli.exits import CommandFailed, Exit, from_api
from imageedit_operator.cli.forecast import Forecast, Step
from imageedit_operator.cli.plan_view import PlanView
from imageedit_operator.cli.screen import Screen
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Budgets, Observed, ObservedBudget, Refusal
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.offer import Offer
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from unit.operator_cli.builders import CARD, NOW, hash_of, resource
from unit.operator_core import builders as core

OLD, NEW = hash_of(resource("a")), hash_of(resource("b"))
LIVE = resource("a")
OWN_BUDGET = ObservedBudget(uid="b", resource_version="3", max_unavailable=1, intact=True)
STATUS = {"currentRevision": OLD, "lastGoodRevision": OLD, "updateRevision": OLD, "readyReplicas": 1}


def observed(*, free: int | None = 1, status: Any = None, deployments: Any = None) -> Observed:
    """One pod of revision a serves."""
    pod = core.serving_pod("old-1", revision_hash=OLD, cards={CARD: 1})
    unknown = Unknown(reason="Forbidden", message="nodes is forbidden")
    return Observed(
        deployments=deployments or (core.deployment(1, OLD),),
        pods=(pod,),
        service_exists=True,
        service_matches=True,
        cards=unknown if free is None else Known(value=CardLedger(allocatable=1 + free, requested=1)),
        status=STATUS if status is None else status,
    )


def planned(proposed: Any = None, *, seen: Observed | None = None, live: Any = LIVE) -> PlanView:
    return plan_view.build(live, proposed or resource("b"), seen or observed(), now=NOW)


def shown(view: PlanView, **screen: Any) -> str:
    return plan_text.text([view], Screen(**screen))


def actions(view: PlanView) -> dict[str, str]:
    return {f"{child.kind} {child.name}": child.action for child in view.children}


def test_a_new_revision_names_the_field_that_makes_it() -> None:
    view = planned()
    assert view.rolls
    assert (view.revision_before, view.revision) == (OLD, NEW)
    assert [(change.field, change.before, change.after) for change in view.changes] == [("model.revision", "a", "b")]


@pytest.mark.parametrize(
    ("budgets", "action"),
    [
        (Unknown(reason="Forbidden", message="no"), None),
        (Known(value=Budgets()), "create"),
        (Known(value=Budgets(others=("theirs",))), None),
        (Known(value=Budgets(named=OWN_BUDGET)), "keep"),
        (Known(value=Budgets(named=replace(OWN_BUDGET, intact=False))), "change"),
        (Known(value=Budgets(named=OWN_BUDGET, others=("theirs",))), "delete"),
    ],
)
def test_the_budget_of_evictions_is_one_of_the_children(budgets: Any, action: str | None) -> None:
    seen = replace(observed(), budgets=budgets)
    assert actions(planned(seen=seen)).get("PodDisruptionBudget edit") == action


def test_a_new_revision_creates_a_deployment_and_keeps_the_service() -> None:
    assert actions(planned()) == {
        "Service edit": "keep",
        f"Deployment edit-{NEW}": "create",
        f"Deployment edit-{OLD}": "keep",
    }


def test_an_earlier_revision_takes_up_its_deployment() -> None:
    seen = observed(deployments=(core.deployment(0, NEW), core.deployment(1, OLD)))
    assert actions(planned(seen=seen))[f"Deployment edit-{NEW}"] == "reuse"


def test_an_earlier_revision_with_another_template_gets_its_deployment_anew() -> None:
    kept = core.deployment(0, NEW, rendered="of an earlier operator")
    seen = observed(deployments=(kept, core.deployment(1, OLD)))
    assert actions(planned(seen=seen))[f"Deployment edit-{NEW}"] == "change"


def test_a_deployment_beyond_the_history_is_deleted() -> None:
    view = planned(
        resource("b", revisionHistoryLimit=0),
        seen=observed(
            deployments=(
                core.deployment(1, OLD),
                core.deployment(0, "0123456789"),
            )
        ),
    )
    assert actions(view)["Deployment edit-0123456789"] == "delete"


def test_the_diff_of_the_pods_has_the_changed_argument_and_not_the_hash() -> None:
    changed = [line for line in planned().pod_diff if line.startswith(("+ ", "- "))]
    assert [line[0] + line[1:].strip() for line in changed] == ["-- --model-revision=a", "+- --model-revision=b"]


def test_auto_decides_on_surge_with_a_free_card() -> None:
    view = planned(seen=observed(free=1))
    assert (view.strategy, view.chosen, view.outage_s) == ("Auto", "Surge", 0.0)


def test_auto_decides_on_in_place_without_one_and_tells_the_outage() -> None:
    view = planned(seen=observed(free=0, status={**STATUS, "warmup": {"lastSeconds": 42.0}}))
    assert view.chosen == "InPlace"
    assert view.outage_s is not None
    assert view.outage_s >= 42
    assert "without a warm pod" in shown(view)


def test_cards_tell_how_many_more_are_needed_at_one_time() -> None:
    view = planned(seen=observed(free=0))
    assert (view.cards.held, view.cards.more, view.cards.free) == (1, 1, 0)


def test_cards_that_may_not_be_counted_are_said_to_be_unknown() -> None:
    assert "the worst is assumed (nodes is forbidden)" in shown(planned(seen=observed(free=None)))


SEEN = replace(observed(), budgets=Known(value=Budgets()))
SILENT = core.serving_pod("old-1", revision_hash=OLD, cards={CARD: 1}, report=core.SILENT)
QUEUE = core.autoscaling()


@pytest.mark.parametrize(
    ("proposed", "seen", "unread", "words"),
    [
        (resource("b", accelerator={"injection": "Runtime"}), SEEN, "", None),
        (resource("b", accelerator={"device": "cpu"}), SEEN, "", None),
        (resource("b", accelerator={"runtimeClassName": "ascend"}), SEEN, "", None),
        (resource("b"), SEEN, "", "injection Auto is taken for Runtime"),
        (resource("b", autoscaling=QUEUE, accelerator={"injection": "Runtime"}), SEEN, "", "Prometheus was not asked"),
        (resource("b", accelerator={"injection": "Runtime"}), SEEN, "no get on configmaps", "no get on configmaps"),
        (
            resource("b", accelerator={"injection": "Runtime"}),
            replace(SEEN, cards=Unknown(reason="Forbidden", message="nodes is forbidden")),
            "no get on configmaps",
            "none is taken for free: nodes is forbidden",
        ),
        (
            resource("b", accelerator={"injection": "Runtime"}),
            replace(SEEN, budgets=Unknown(reason="Forbidden", message="budgets is forbidden")),
            "",
            "what evictions may take was not seen",
        ),
        (
            resource("b", accelerator={"injection": "Runtime"}),
            replace(SEEN, pods=(SILENT,)),
            "",
            "pod old-1 did not say what it works on",
        ),
    ],
)
def test_what_a_plan_could_not_see_is_said_and_nothing_else(
    proposed: Any, seen: Observed, unread: str, words: str | None
) -> None:
    view = plan_view.build(LIVE, proposed, seen, now=NOW, health_unread=unread)
    assert [words in said for said in view.assumed if words] == ([True] if words else [])
    assert bool(view.assumed) == ("not seen" in shown(view)) == (words is not None)


@pytest.mark.parametrize(("free", "chosen"), [(1, "Surge"), (0, "InPlace")])
def test_a_rollout_beside_a_sick_card_ends(free: int, chosen: str) -> None:
    node = SickNode(sick={"Ascend910-7": "it is being reset"}, capacity=2 + free, allocatable=2 + free, requested=1)
    cards = CardLedger(allocatable=1 + free, requested=1, sick_nodes={"node-1": node})
    view = planned(seen=replace(observed(), cards=Known(value=cards)))
    assert (view.cards.free, view.chosen, view.outcome) == (free, chosen, "Complete")


def test_a_warm_up_that_was_never_measured_is_said_to_be_assumed() -> None:
    silent = core.serving_pod("old-1", revision_hash=OLD, cards={CARD: 1}, report=core.SILENT)
    seen = Observed(
        deployments=(core.deployment(1, OLD),),
        pods=(silent,),
        cards=Known(value=CardLedger(allocatable=2, requested=1)),
        status=STATUS,
    )
    assert "600 s a warm-up assumed" in shown(planned(seen=seen))


def test_more_replicas_replace_no_pod() -> None:
    view = planned(resource("a", replicas=2))
    assert (view.rolls, view.chosen, view.pod_diff) == (False, "None", ())
    assert view.pods == 2


def test_a_resource_that_is_new_serves_for_the_first_time() -> None:
    view = planned(live=None, seen=Observed(cards=Known(value=CardLedger(allocatable=1, requested=0))))
    assert (view.exists, view.rolls, view.outage_s, view.outcome) == (False, True, None, "Complete")
    assert "it serves for the first time" in shown(view)


@pytest.mark.parametrize(
    ("status", "replicas", "pods"),
    [({"desiredReplicas": 3}, 1, 3), ({"desiredReplicas": 9}, 1, 4), ({"desiredReplicas": 0}, 1, 1), ({}, 2, 2)],
)
def test_with_autoscaling_the_number_of_pods_is_held_within_the_new_bounds(
    status: dict[str, Any], replicas: int, pods: int
) -> None:
    made = parse(resource("b", autoscaling=core.autoscaling()))
    seen = observed(status=status, deployments=(core.deployment(replicas, OLD),))
    assert plan_view.wanted_pods(made, seen) == pods


@pytest.mark.parametrize(
    ("strategy", "steps", "fewest", "expected"),
    [
        ("Auto", (), 1, "None"),
        ("Recreate", ("pod x drains",), 0, "Recreate"),
        ("Auto", ("pod x drains",), 1, "Surge"),
        ("Auto", ("pod x drains",), 0, "InPlace"),
    ],
)
def test_the_strategy_is_chosen_by_its_row(strategy: str, steps: tuple[str, ...], fewest: int, expected: str) -> None:
    seen = Forecast(
        outcome="Complete",
        message="",
        seconds=1,
        outage_s=0,
        fewest_warm=fewest,
        most_pods=1,
        deleted=(),
        steps=tuple(Step(at_s=0, what=what) for what in steps),
    )
    assert plan_view.chosen(strategy, seen, observed(), wanted=1) == expected


def test_a_plan_fits_a_terminal_of_80_columns() -> None:
    tree = shown(planned(seen=observed(free=0)), width=80).partition("\n\npods:")[0]
    assert max(map(len, tree.splitlines())) <= 80


def test_resources_are_found_among_other_documents_and_in_lists() -> None:
    documents = [resource("a"), {"kind": "Service"}, None, {"kind": "List", "items": [resource("b")]}]
    found = files.parse("---\n".join(yaml.safe_dump(item) for item in documents), "file")
    assert [item["spec"]["model"]["revision"] for item in found] == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["", "kind: Service", "a: [", "{kind: ImageEditDeployment, apiVersion: imageedit.dev/v1alpha1}"]
)
def test_a_file_without_a_whole_resource_is_wrong_usage(text: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        files.parse(text, "qwen.yaml")
    assert refused.value.code == Exit.USAGE
    assert "qwen.yaml" in refused.value.message


def test_what_the_file_lost_since_it_was_applied_goes_away() -> None:
    before = {"spec": {"replicas": 2, "autoscaling": {"maxReplicas": 3}}}
    live = {"spec": {"replicas": 2, "autoscaling": {"maxReplicas": 3}, "others": 1}}
    assert dry_run.three_way(before, {"spec": {"replicas": 2}}, live) == {"spec": {"replicas": 2, "autoscaling": None}}


def test_what_others_wrote_stays() -> None:
    assert dry_run.three_way({"spec": {}}, {"spec": {"a": 1}}, {"spec": {"replicas": 5}}) == {"spec": {"a": 1}}


@pytest.mark.parametrize("before", ["", ' "" is invalid: patch: Invalid value: "{\\"metadata\\":{}}": '])
def test_a_field_that_nobody_knows_is_named_without_the_whole_object(before: str) -> None:
    message = f'{before}strict decoding error: unknown field "spec.servr", unknown field "spec.x"'
    told = from_api(ApiError(status=422, reason="Invalid", message=message)).message
    assert told == 'The cluster refuses it: unknown field "spec.servr", unknown field "spec.x".'


@pytest.mark.parametrize(
    ("before", "wanted", "patch"),
    [
        ({"annotations": {}}, {}, {}),
        ({"annotations": {"a": "1"}}, {}, {"a": None}),
        ({"annotations": {"a": "1"}}, {"annotations": {"a": "2"}}, {"a": "2"}),
    ],
)
def test_the_annotation_of_a_restart_outlives_a_file_that_kubectl_applied(before: Any, wanted: Any, patch: Any) -> None:
    live = {"metadata": {"annotations": {"a": "1", "imageedit.dev/restarted-at": "noon"}}}
    made = dry_run.client_side({"metadata": before}, {"metadata": wanted}, live)
    assert made == {"metadata": {"annotations": patch}}


def applied_by(manager: str, at: str, *, operation: str = "Apply", part: str = "f:spec") -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "time": at, "fieldsV1": {part: {}}}


@pytest.mark.parametrize(
    ("entries", "manager"),
    [
        ([], "kubectl"),
        ([applied_by("argocd-controller", "2026-01-01")], "argocd-controller"),
        ([applied_by("flux", "2026-01-02"), applied_by("kubectl", "2026-01-01")], "flux"),
        ([applied_by("edit", "2026-01-02", operation="Update")], "kubectl"),
        ([applied_by("labels", "2026-01-02", part="f:metadata")], "kubectl"),
    ],
)
def test_a_file_is_tried_as_who_applied_the_spec_last(entries: list[Any], manager: str) -> None:
    assert dry_run.applier({"metadata": {"managedFields": entries}}) == manager


TEMPLATE = {"metadata": {"labels": {"team": "films"}}}
REFUSAL = Refusal(message="m", contested={".spec.template.spec.x": "imageedit-operator"})


def with_template(*, refusal: Refusal | None = None, tried: bool = True) -> PlanView:
    """A file that adds a template, and what the apiserver says to it."""
    seen = replace(observed(), template_refusal=refusal)
    return plan_view.build(LIVE, resource("a", template=TEMPLATE), seen, template_tried=tried, now=NOW)


@pytest.mark.parametrize(
    ("refusal", "tried", "said", "words"),
    [
        (None, True, "Fits", "the apiserver takes it"),
        (None, False, "NotTried", "not tried"),
        (REFUSAL, True, "TemplateConflict", "sets what the operator sets"),
        (Refusal(message="no image"), True, "TemplateInvalid", "the apiserver refuses it"),
    ],
)
def test_a_template_is_told_by_its_row(refusal: Refusal | None, tried: bool, said: str, words: str) -> None:
    view = with_template(refusal=refusal, tried=tried)
    assert view.template == said
    assert words in shown(view)


def test_without_a_template_nothing_is_said_of_it() -> None:
    assert planned().template == ""
    assert "template" not in shown(planned())


def test_a_template_rolls_is_applied_before_any_pod_and_stands_in_the_diff() -> None:
    view = with_template()
    steps = [step.what.split(":")[0] for step in view.steps]
    made = f"edit-{view.revision}"
    assert steps[:3] == [
        f"creates Deployment {made}",
        f"applies spec.template to Deployment {made}",
        f"scales {made} to 1",
    ]
    assert view.outcome == "Complete"
    assert "+      team: films" in view.pod_diff


def test_a_template_that_conflicts_ends_there_and_no_pod_moves() -> None:
    view = with_template(refusal=REFUSAL)
    assert (view.outcome, view.chosen, view.outage_s) == ("TemplateConflict", "None", 0.0)
    assert "spec.x, which imageedit-operator sets" in view.message


def test_cards_that_no_node_gives_to_these_pods_are_not_said_to_be_none_of_none() -> None:
    ledger = CardLedger(allocatable=0, requested=0, offer=Offer(nodes=2, unlabelled=2))
    seen = replace(observed(), cards=Known(value=ledger))
    view = planned(resource("b", accelerator={"nodeSelector": {"zone": "mars"}}), seen=seen)
    assert (
        f"no node that takes these pods offers {CARD}: 2 nodes offer it, 2 without the labels zone=mars; "
        "look at spec.accelerator.nodeSelector"
    ) in shown(view)
    assert view.outcome == "Unschedulable"


def test_a_file_that_changes_nothing_speaks_of_no_change_at_its_revision() -> None:
    words = shown(planned(LIVE))
    assert f"revision  {OLD}, as before\n" in words
    assert "what changes" not in words
