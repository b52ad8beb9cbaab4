"""The composed plan: actions, status, events and the next look."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from imageedit_operator.core import manifests
from imageedit_operator.core import status as statuses
from imageedit_operator.core.actions import (
    ApplyClaimTemplate,
    ApplyService,
    CreateDeployment,
    DeleteDeployment,
    DeletePod,
    LabelDeployment,
    Plan,
    PostEvent,
    ScaleDeployment,
    SetGate,
)
from imageedit_operator.core.contest import LONGEST_PAUSE_S
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import Observed, ObservedDeployment, ObservedJob, QueueSample
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.offer import Offer
from imageedit_operator.core.plan import PlanMemory, plan
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import copy_key, revision_hash
from imageedit_operator.core.stored import find
from unit.operator_core.builders import (
    OLD,
    SILENT,
    autoscaling,
    deployment,
    draining_pod,
    known,
    pending_pod,
    resource,
    serving_pod,
    starting_pod,
)

NOW = 1_000_000.0
HASH = revision_hash(resource())
CARDS = Known(value=CardLedger(allocatable=4, requested=2))


def observed(**changes: Any) -> Observed:
    """Two pods of the wanted revision serve."""
    pods = (serving("a"), serving("b"))
    rest = Observed(
        deployments=(deployment(2, HASH),), pods=pods, service_exists=True, service_matches=True, cards=CARDS
    )
    return replace(rest, **changes)


def serving(name: str, **changes: Any) -> ObservedPod:
    return serving_pod(name, revision_hash=HASH, **changes)


def planned(seen: Observed, found: ImageEditDeployment | None = None, *, now: float = NOW) -> Plan:
    made, _ = plan(found or resource(replicas=2), seen, PlanMemory(), now)
    return made


def rest_status(**changes: Any) -> dict[str, Any]:
    """The status that a first plan over the serving resource writes."""
    return {**copy.deepcopy(dict(planned(observed()).status)), **changes}


def events(made: Plan) -> list[str]:
    return [action.reason for action in made.actions if isinstance(action, PostEvent)]


def created_replicas(made: Plan) -> list[int]:
    return [a.manifest["spec"]["replicas"] for a in made.actions if isinstance(a, CreateDeployment)]


def test_a_deployment_that_somebody_changed_is_told_once() -> None:
    changed = deployment(2, HASH, changed=("spec.template by kubectl-set",))
    seen = observed(deployments=(changed,), status=rest_status())
    made = planned(seen)
    assert events(made) == ["FieldsChanged"]
    assert events(planned(replace(seen, status=made.status))) == []


def test_the_last_pods_that_leave_do_not_start() -> None:
    leaving = serving("a", ready=False, gate=False, gate_reason="Draining")
    status = planned(observed(deployments=(deployment(1, HASH),), pods=(leaving,)), resource(replicas=0)).status
    assert (status["phase"], status["ready"]) == ("Stopped", "0/0")


def test_a_new_resource_gets_its_service_and_a_deployment_of_all_its_pods() -> None:
    made = planned(Observed())
    assert [type(action) for action in made.actions] == [ApplyService, CreateDeployment]
    assert created_replicas(made) == [2]
    assert made.requeue_after_s == 2
    assert made.status["phase"] == "Pending"
    assert made.status["selector"].startswith("imageedit.dev/deployment=edit")


@pytest.mark.parametrize(
    ("deployments", "pods", "rollout", "replicas"),
    [
        ((deployment(2, "old"),), (), {}, 0),
        ((), (serving_pod("o", revision_hash="old"),), {}, 0),
        ((), (), {"paused": True}, 0),
        ((), (), {}, 2),
    ],
)
def test_a_deployment_begins_with_its_pods_only_where_there_is_nothing_to_replace(
    deployments: tuple[ObservedDeployment, ...],
    pods: tuple[ObservedPod, ...],
    rollout: dict[str, Any],
    replicas: int,
) -> None:
    made = planned(Observed(deployments=deployments, pods=pods), resource(replicas=2, rollout=rollout))
    assert created_replicas(made) == [replicas]


def test_what_claims_of_cards_are_made_from_comes_before_the_pods_that_name_it() -> None:
    made = planned(Observed(), resource(accelerator={"injection": "DRA"}))
    assert [type(action) for action in made.actions] == [ApplyService, ApplyClaimTemplate, CreateDeployment]


def test_a_lost_template_of_claims_comes_back_beside_pods_that_serve() -> None:
    drawn = resource(accelerator={"injection": "DRA"})
    there = deployment(1, revision_hash(drawn))
    lost = observed(deployments=(there,), pods=())
    assert next(type(action) for action in planned(lost, drawn).actions) == ApplyClaimTemplate
    kept = observed(deployments=(there,), pods=(), claims_exist=True)
    assert ApplyClaimTemplate not in [type(action) for action in planned(kept, drawn).actions]


def test_a_foreign_template_of_claims_is_named_and_not_written_over() -> None:
    seen = Observed(claims_exist=True, claims_foreign_owner="nobody")
    made = planned(seen, resource(accelerator={"injection": "DRA"}))
    assert not [action for action in made.actions if isinstance(action, ApplyClaimTemplate | CreateDeployment)]
    assert find(made.status, "Progressing")["message"].startswith("ResourceClaimTemplate edit-")


NO_CONTAINER: dict[str, Any] = {
    "revision_hash": HASH, "started": False, "container_id": "", "report": SILENT, "scheduled_at": NOW - 60
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"scheduled_at": NOW - 59}, False),
        ({"scheduled_at": 0.0}, False),
        ({"started": True}, False),
        ({"restarts": 1}, False),
        ({"last_exit_code": 0}, False),
        ({"terminating": True}, False),
    ],
)
def test_a_pod_that_has_no_container_for_a_minute_is_named(changes: dict[str, Any], told: bool) -> None:
    pod = starting_pod("a", **NO_CONTAINER | changes)
    made = planned(observed(deployments=(deployment(1, HASH),), pods=(pod,)), resource(replicas=1))
    assert ("has no running container" in find(made.status, "Progressing")["message"]) is told


def test_a_runtime_class_that_is_not_there_is_said_with_what_to_do() -> None:
    said = 'pods "p" is forbidden: pod rejected: RuntimeClass "ascend" not found'
    made = planned(Observed(deployments=(deployment(2, HASH, refused=said),)))
    for kind, status in (("Progressing", "False"), ("Available", "False"), ("Degraded", "True")):
        condition = find(made.status, kind)
        assert (condition["status"], condition["reason"]) == (status, "RuntimeClassMissing")


def test_a_quota_that_refuses_pods_is_said_and_is_no_fault_of_the_revision() -> None:
    made = planned(Observed(deployments=(deployment(2, HASH, refused="exceeded quota: cards"),)))
    assert find(made.status, "Degraded")["reason"] == "FailedCreate"
    assert find(made.status, "Progressing")["status"] == "True"


def test_a_suspicion_about_a_card_is_looked_at_again_soon() -> None:
    node = SickNode(capacity=2, allocatable=1, requested=2)
    cards = Known(value=CardLedger(allocatable=1, requested=1, sick_nodes={"node-1": node}))
    made = planned(observed(cards=cards, status=rest_status()))
    assert find(made.status, "Degraded")["status"] == "False"
    assert made.requeue_after_s == 5


def test_a_resource_on_its_way_out_is_left_to_its_owner_references() -> None:
    made = planned(Observed(status={"phase": "Serving"}), replace(resource(), deleting=True))
    assert made.actions == ()
    assert made.status == {"phase": "Serving"}


def test_at_rest_the_status_is_byte_for_byte_the_same() -> None:
    made = planned(observed(status=rest_status()), now=NOW + 5000)
    assert made.actions == ()
    assert repr(made.status) == repr(rest_status())
    assert made.requeue_after_s == 1200


def test_card_numbers_that_move_write_no_status() -> None:
    moved = Known(value=CardLedger(allocatable=9, requested=0))
    assert planned(observed(status=rest_status(), cards=moved)).status == rest_status()
    unknown = Unknown(reason="Forbidden", message="nodes may not be read")
    assert planned(observed(status=rest_status(), cards=unknown)).status == rest_status()


def test_card_numbers_come_with_the_next_change() -> None:
    moved = Known(value=CardLedger(allocatable=9, requested=2))
    made = planned(observed(status=rest_status(), cards=moved, pods=(serving("a"),)))
    assert made.status["cards"] == {"known": True, "allocatable": 9, "free": 7}


def test_the_status_counts_pods_by_what_they_do() -> None:
    old = serving_pod("o", revision_hash="old")
    seen = observed(
        deployments=(deployment(2, HASH), deployment(1, "old")),
        pods=(serving("a"), starting_pod("b", revision_hash=HASH), old),
    )
    status = planned(seen).status
    assert status["replicas"] == 3
    assert status["readyReplicas"] == 2
    assert status["updatedReplicas"] == 2
    assert status["startingReplicas"] == 1
    assert status["ready"] == "2/2"
    assert status["phase"] == "RollingOut"


def test_the_serving_revision_is_the_old_one_until_the_new_is_complete() -> None:
    before = rest_status(currentRevision="old", lastGoodRevision="old")
    seen = observed(
        deployments=(deployment(2, HASH), deployment(1, "old")),
        pods=(serving("a"), serving("b"), serving_pod("o", revision_hash="old")),
        status=before,
    )
    status = planned(seen, resource(replicas=3)).status
    assert (status["currentRevision"], status["updateRevision"], status["lastGoodRevision"]) == ("old", HASH, "old")
    done = planned(observed(status=before)).status
    assert (done["currentRevision"], done["lastGoodRevision"]) == (HASH, HASH)


def test_the_model_s_revision_of_the_status_is_the_one_that_serves() -> None:
    revisions = [{"hash": "old", "model": "before"}]
    before = rest_status(currentRevision="old", lastGoodRevision="old", revisions=revisions)
    rolling = planned(
        observed(
            deployments=(deployment(1, HASH), deployment(1, "old")),
            pods=(starting_pod("a", revision_hash=HASH), serving_pod("o", revision_hash="old")),
            status=before,
        )
    )
    assert rolling.status["currentModelRevision"] == "before"
    assert planned(observed(status=rolling.status)).status["currentModelRevision"] == resource().model.revision


def test_while_no_revision_served_yet_the_status_names_none() -> None:
    status = planned(observed(pods=(starting_pod("a", revision_hash=HASH),), status={})).status
    assert "currentModelRevision" not in status


def test_an_opened_gate_records_the_warm_up() -> None:
    warm = starting_pod("b", revision_hash=HASH, report=known(revision_hash=HASH, warmup_s=31.26))
    made = planned(observed(pods=(serving("a"), warm)))
    assert [action.pod for action in made.actions if isinstance(action, SetGate)] == ["b"]
    assert made.status["warmup"] == {"lastSeconds": 31.3, "p95Seconds": 31.3, "recentSeconds": [31.3]}


def test_a_status_that_waits_is_written_whole_by_the_next_plan() -> None:
    loading = starting_pod("b", revision_hash=HASH)
    warm = replace(loading, report=known(revision_hash=HASH, warmup_s=31.26))
    stored = planned(observed(pods=(serving("a"), loading))).status
    opening, memory = plan(resource(replicas=2), observed(pods=(serving("a"), warm), status=stored), PlanMemory(), NOW)
    assert [type(action) for action in opening.actions] == [SetGate]
    assert (opening.status, opening.requeue_after_s) == (stored, 2)
    written, memory = plan(resource(replicas=2), observed(status=opening.status), memory, NOW + 1)
    assert written.status["warmup"] == {"lastSeconds": 31.3, "p95Seconds": 31.3, "recentSeconds": [31.3]}
    assert events(written) == ["RolloutCompleted"]
    assert memory.unwritten_s is None


def test_a_pod_that_does_not_turn_ready_keeps_no_status_back() -> None:
    loading = starting_pod("b", revision_hash=HASH)
    warm = replace(loading, report=known(revision_hash=HASH, warmup_s=31.26))
    stored = planned(observed(pods=(serving("a"), loading))).status
    seen, memory = observed(pods=(serving("a"), warm), status=stored), PlanMemory()
    statuses_of = []
    for _ in range(2):
        made, memory = plan(resource(replicas=2), seen, memory, NOW)
        statuses_of.append(made.status)
    assert statuses_of[0] == stored
    assert statuses_of[1]["warmup"]["lastSeconds"] == 31.3


def test_a_pod_that_is_scaled_away_gets_no_gate_although_it_became_warm() -> None:
    late = starting_pod("b", revision_hash=HASH, report=known(revision_hash=HASH), deletion_cost=-1000)
    made = planned(observed(deployments=(deployment(1, HASH),), pods=(late,)), resource(replicas=0))
    assert [action.replicas for action in made.actions if isinstance(action, ScaleDeployment)] == [0]
    assert not [action for action in made.actions if isinstance(action, SetGate)]


def test_a_victim_whose_container_restarted_is_still_marked_as_draining() -> None:
    restarted = serving("b", ready=False, container_id="c-2")
    made = planned(observed(pods=(serving("a"), restarted)), resource(replicas=1))
    assert [(action.pod, action.reason) for action in made.actions if isinstance(action, SetGate)] == [
        ("b", "Draining")
    ]


def test_pods_that_leave_are_words_of_the_status() -> None:
    made = planned(observed(status=rest_status()), resource(replicas=1))
    progressing = next(item for item in made.status["conditions"] if item["type"] == "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("True", "ScalingDown")


def test_a_number_that_the_deployment_does_not_have_yet_is_not_ready() -> None:
    made = planned(observed(deployments=(deployment(3, HASH),)))
    ready = next(item for item in made.status["conditions"] if item["type"] == "Ready")
    assert ready["status"] == "False"


def test_pods_and_deployments_that_are_not_ours_are_left_alone() -> None:
    stranger = starting_pod("x", revision_hash="unknown", report=known(revision_hash="unknown"))
    failed = starting_pod("y", revision_hash="unknown", phase="Failed")
    seen = observed(pods=(*observed().pods, stranger, failed), status=rest_status())
    assert planned(seen).actions == ()


def test_a_foreign_deployment_of_our_name_stops_and_is_named() -> None:
    foreign = deployment(1, HASH, owned=False, foreign_owner="Deployment/other")
    made = planned(observed(deployments=(foreign,), pods=()))
    assert events(made) == ["NameConflict"]
    assert [action for action in made.actions if not isinstance(action, PostEvent)] == []
    assert made.status["phase"] == "Degraded"


def test_the_children_of_an_earlier_resource_of_the_name_are_waited_for() -> None:
    foreign = deployment(1, HASH, owned=False, foreign_owner="ImageEditDeployment edit")
    made = planned(observed(deployments=(foreign,), pods=()))
    ready = next(item for item in made.status["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "NameConflict")
    assert "this one starts when it is collected" in ready["message"]


def test_a_foreign_service_is_not_overwritten() -> None:
    made = planned(observed(service_foreign_owner="nobody", service_matches=False, status=rest_status()))
    assert not [action for action in made.actions if isinstance(action, ApplyService)]
    ready = next(item for item in made.status["conditions"] if item["type"] == "Ready")
    assert ready["reason"] == "NameConflict"


def test_a_service_that_drifted_is_applied_again() -> None:
    made = planned(observed(service_matches=False, status=rest_status()))
    assert [type(action) for action in made.actions] == [ApplyService]


def test_a_service_that_somebody_changes_back_at_once_is_applied_with_pauses_and_looked_at_after_them() -> None:
    seen, memory, now = observed(service_matches=False, status=rest_status()), PlanMemory(), NOW
    applied = []
    for _ in range(100):
        made, memory = plan(resource(replicas=2), seen, memory, now)
        assert made.requeue_after_s <= LONGEST_PAUSE_S
        applied += [now - NOW for action in made.actions if isinstance(action, ApplyService)]
        now += 1
    assert applied == [0, 1, 2, 4, 8, 16, 32, 64]


def test_cards_that_come_and_go_write_no_status_where_an_older_definition_prunes_it() -> None:
    stored = rest_status()
    model = stored.pop("currentModelRevision")
    after = planned(observed(status=stored, cards=Known(value=CardLedger(allocatable=4, requested=3)))).status
    assert after == {**stored, "currentModelRevision": model}


def test_words_of_others_of_any_length_leave_a_status_that_the_schema_takes() -> None:
    endless = "x" * 40_000
    waits = pending_pod("c", revision_hash=HASH, unschedulable_message=f"0/9 nodes are available: 1 {endless}.")
    pulls = starting_pod("c", revision_hash=HASH, waiting_reason="ErrImagePull", waiting_message=endless)
    failed = {"failedRevision": HASH, "failure": {"reason": "ImagePull", "message": endless}, "lastGoodRevision": OLD}
    for pod, status in ((waits, {}), (pulls, {}), (pulls, failed)):
        seen = observed(
            deployments=(deployment(1, HASH), deployment(1, OLD)),
            pods=(pod,),
            status=status,
            cards=Unknown(reason="Forbidden", message=endless),
        )
        after = planned(seen).status
        said = [item["message"] for item in after["conditions"]]
        assert max(map(len, (*said, after["cards"]["message"], after.get("failure", {}).get("message", "")))) <= 8192


def test_what_to_do_follows_words_of_the_scheduler_of_any_length() -> None:
    taints = ", ".join(f"1 node(s) had untolerated taint {{dedicated: team-{n}}}" for n in range(1000))
    waits = pending_pod("c", revision_hash=HASH, unschedulable_message=f"0/1000 nodes are available: {taints}.")
    said = find(planned(observed(pods=(waits,))).status, "Progressing")["message"]
    assert "tolerate the taint dedicated=team-0" in said
    assert len(said) < 2000


def test_a_change_of_the_service_that_is_refused_keeps_no_pod_out_of_it() -> None:
    warm = starting_pod("b", revision_hash=HASH, report=known(revision_hash=HASH, warm=True, check_ok=True))
    made = planned(observed(pods=(serving("a"), warm), service_matches=False, status=rest_status()))
    assert [type(action) for action in made.actions if not isinstance(action, PostEvent)] == [SetGate, ApplyService]


def test_a_service_comes_before_the_first_deployment() -> None:
    made = planned(Observed(cards=CARDS))
    assert [type(action) for action in made.actions][:2] == [ApplyService, CreateDeployment]


COPIED = resource(
    replicas=2,
    model={
        "name": "qwen",
        "revision": "a",
        "source": {"pvc": {"claimName": "models"}},
        "prefetch": {"hostPath": {"path": "/data"}},
    },
)


@pytest.mark.parametrize(("there", "reason"), [(("node-1", "node-2"), "VolumeNotReady"), (("node-1",), "Starting")])
def test_a_folder_that_is_not_mounted_is_no_news_where_the_copy_in_it_is_still_to_come(
    there: tuple[str, ...], reason: str
) -> None:
    hash_ = revision_hash(COPIED)
    jobs = tuple(
        ObservedJob(
            name=f"job-{node}",
            uid=f"uid-{node}",
            revision_hash=hash_,
            copy_key=copy_key(COPIED),
            place=node,
            node_uid=f"uid-{node}",
            state="Complete",
        )
        for node in there
    )
    hangs = starting_pod(
        "b", revision_hash=hash_, node="node-2", started=False, container_id="", report=SILENT, mount_words="no folder"
    )
    seen = Observed(
        deployments=(deployment(2, hash_),),
        pods=(serving_pod("a", revision_hash=hash_), hangs),
        service_exists=True,
        service_matches=True,
        cards=CARDS,
        jobs=jobs,
        nodes=Known(value={"node-1": "uid-node-1", "node-2": "uid-node-2"}),
        status={"lastGoodRevision": hash_, "currentRevision": hash_},
    )
    assert find(planned(seen, COPIED).status, "Progressing")["reason"] == reason


NO_MEMORY = "0/1 nodes are available: 1 Insufficient memory."
NO_CLAIM = '0/1 nodes are available: persistentvolumeclaim "models" not found.'


@pytest.mark.parametrize("other", [NO_MEMORY, NO_CLAIM])
@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_a_pod_that_lacks_a_card_is_told_beside_one_that_lacks_something_else(
    other: str, first: str, second: str
) -> None:
    pods = (
        pending_pod(first, revision_hash=HASH, unschedulable_message=other),
        pending_pod(second, revision_hash=HASH),
    )
    said = find(planned(observed(pods=pods)).status, "WaitingForCard")
    assert (said["status"], said["message"].split()[1]) == ("True", second)


def test_a_pod_that_lacks_a_volume_takes_no_part_in_whose_card_is_handed_over() -> None:
    pods = (
        serving_pod("o", revision_hash="old", terminating=True),
        pending_pod("a", revision_hash=HASH, unschedulable_since=NOW - 5, unschedulable_message=NO_CLAIM),
        pending_pod("b", revision_hash=HASH, unschedulable_since=NOW - 5),
    )
    seen = observed(deployments=(deployment(2, HASH), deployment(0, "old")), pods=pods)
    assert find(planned(seen).status, "WaitingForCard")["reason"] == "CardHandedOver"


def test_a_terminating_pod_of_ours_is_named_as_the_holder_of_the_card_that_another_waits_for() -> None:
    over = serving_pod("o", revision_hash=HASH, terminating=True, ends_by=NOW - 900, running=("log",))
    waits = pending_pod("p", revision_hash=HASH, unschedulable_since=NOW - 900)
    seen = observed(pods=(replace(over, gate=False, gate_reason="Draining", gate_since=NOW - 2000), waits))
    said = find(planned(seen).status, "WaitingForCard")
    assert said["status"] == "True"
    assert "which pod o (terminating, should have ended by " in said["message"]
    assert "and its container log still runs; kubectl describe pod o" in said["message"]


def test_a_pod_for_whose_card_no_node_is_there_is_not_told_to_free_one() -> None:
    waits = pending_pod("p", revision_hash=HASH, unschedulable_since=NOW - 900)
    cards = Known(value=CardLedger(allocatable=0, requested=0, offer=Offer(nodes=1, closed=1)))
    said = find(planned(observed(pods=(waits,), cards=cards)).status, "WaitingForCard")
    assert said["message"] == (
        "pod p waits for huawei.com/Ascend910, and no node that takes these pods offers huawei.com/Ascend910: "
        "those that offer it are cordoned or not ready; look at kubectl get nodes"
    )


def test_a_pod_that_fits_no_nodes_labels_names_those_of_the_spec() -> None:
    wanting = resource(accelerator={"nodeSelector": {"npu": "910b"}})
    hash_ = revision_hash(wanting)
    words = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    stuck = pending_pod("p", revision_hash=hash_, unschedulable_message=words)
    said = find(planned(observed(deployments=(deployment(1, hash_),), pods=(stuck,)), wanting).status, "Progressing")
    assert "no node has the labels npu=910b of spec.accelerator.nodeSelector" in said["message"]


def test_an_old_pod_without_a_card_is_told_while_the_rollout_is_paused() -> None:
    before = rest_status(lastGoodRevision="old", currentRevision="old")
    grows = (serving_pod("o", revision_hash="old"), pending_pod("p", revision_hash="old"))
    seen = observed(deployments=(deployment(0, HASH), deployment(2, "old")), pods=grows, status=before)
    said = find(planned(seen, resource(replicas=2, rollout={"paused": True})).status, "WaitingForCard")
    assert (said["status"], said["message"].split()[1]) == ("True", "p")


def test_a_claim_that_is_not_there_is_told_although_a_copy_is_to_come_into_it() -> None:
    spec = {"name": "qwen", "revision": "a", "source": {"demo": {}}, "prefetch": {"pvc": {"claimName": "models"}}}
    copied = resource(model={**spec, "source": {"pvc": {"claimName": "share"}}})
    hash_ = revision_hash(copied)
    pods = (pending_pod("a", revision_hash=hash_, unschedulable_message=NO_CLAIM),)
    seen = Observed(deployments=(deployment(1, hash_),), pods=pods, service_exists=True, service_matches=True)
    assert find(planned(seen, copied).status, "Progressing")["reason"] == "VolumeNotReady"


def test_labels_that_a_deployment_lost_are_put_back_and_its_pods_stay() -> None:
    lost = {"imageedit.dev/deployment": "edit"}
    unlabelled = tuple(replace(item, labels_lost=lost) for item in observed().deployments)
    made = planned(observed(deployments=unlabelled, status=rest_status()))
    (first, told) = made.actions
    assert first == LabelDeployment(name=unlabelled[0].name, uid=unlabelled[0].uid, labels=lost)
    assert isinstance(told, PostEvent)
    assert told.reason == "PutBack"


def test_labels_of_a_deployment_of_somebody_else_are_none_of_our_business() -> None:
    foreign = deployment(1, "old", owned=False, foreign_owner="nobody", labels_lost={"a": "b"})
    made = planned(observed(deployments=(*observed().deployments, foreign), status=rest_status()))
    assert not [action for action in made.actions if isinstance(action, LabelDeployment)]


def test_a_failed_pod_is_deleted_with_an_event() -> None:
    failed = serving("c", phase="Failed", failed_reason="UnexpectedAdmissionError", ready=False)
    made = planned(observed(pods=(*observed().pods, failed), status=rest_status()))
    assert [action.why for action in made.actions if isinstance(action, DeletePod)] == ["UnexpectedAdmissionError"]
    assert "UnexpectedAdmission" in events(made)


CURRENT = manifests.rendered(resource(replicas=2), HASH)


@pytest.mark.parametrize(
    ("kept", "pods", "anew"),
    [
        (deployment(0, HASH, rendered="of an earlier operator"), (), True),
        (deployment(0, HASH, rendered=CURRENT), (), False),
        (deployment(0, HASH), (), False),
        (deployment(0, HASH, rendered="of an earlier operator", owned=False, foreign_owner="nobody"), (), False),
        (deployment(2, HASH, rendered="of an earlier operator"), (), False),
        (deployment(2, HASH, rendered="of an earlier operator"), observed().pods, False),
        (deployment(0, HASH, rendered="of an earlier operator"), (serving("a", terminating=True),), False),
    ],
)
def test_a_revision_at_rest_is_written_anew_when_its_template_is_not_todays(
    kept: ObservedDeployment, pods: tuple[ObservedPod, ...], anew: bool
) -> None:
    made = planned(observed(deployments=(kept,), pods=pods))
    kinds = [type(action) for action in made.actions if isinstance(action, DeleteDeployment | CreateDeployment)]
    assert kinds == ([DeleteDeployment, CreateDeployment] if anew else [])


def test_a_failed_revision_is_not_written_anew_while_the_pods_go_back() -> None:
    good = deployment(2, "good")
    failed = deployment(0, HASH, rendered="of an earlier operator")
    status = rest_status(failedRevision=HASH, failure={"reason": "CrashLoop", "message": "m"}, lastGoodRevision="good")
    made = planned(observed(deployments=(good, failed), pods=(), status=status))
    assert not [action for action in made.actions if isinstance(action, DeleteDeployment | CreateDeployment)]


def test_old_deployments_beyond_the_history_go_oldest_first() -> None:
    past = tuple(deployment(0, f"old-{age}", created_at=float(age)) for age in range(5))
    made = planned(observed(deployments=(deployment(2, HASH), *past), status=rest_status()))
    gone = [action.name for action in made.actions if isinstance(action, DeleteDeployment)]
    assert gone == ["edit-old-1", "edit-old-0"]


def test_an_old_deployment_with_a_pod_is_kept() -> None:
    past = tuple(deployment(0, f"old-{age}", created_at=float(age)) for age in range(4))
    going = serving_pod("o", revision_hash="old-0", terminating=True, ready=False)
    seen = observed(deployments=(deployment(2, HASH), *past), pods=(*observed().pods, going), status=rest_status())
    assert not [action for action in planned(seen).actions if isinstance(action, DeleteDeployment)]


def test_a_new_revision_is_announced_once() -> None:
    before = rest_status(updateRevision="old", lastGoodRevision="old")
    starting = observed(pods=(starting_pod("a", revision_hash=HASH),), status=before)
    first = planned(starting)
    assert "RolloutStarted" in events(first)
    assert events(planned(replace(starting, status=first.status))) == []
    assert "RolloutCompleted" in events(planned(observed(status=first.status)))


def test_a_way_back_is_a_rollout_until_its_end_although_a_card_is_sick() -> None:
    rollout = {"revision": HASH, "startedAt": "2026-01-01T00:00:00Z", "steppedAt": "2026-01-01T00:00:00Z"}
    before = rest_status(phase="Degraded", rollout=rollout)
    find(before, "RolloutStuck").update(status="False", reason="Moving")  # type: ignore[attr-defined]
    sick = starting_pod("b", revision_hash=HASH, held_cards=("c-1",), unhealthy_cards=("c-1",))
    on_the_way = planned(observed(pods=(serving("a"), sick), status=before))
    assert on_the_way.status["phase"] == "Degraded"
    assert find(on_the_way.status, "RolloutStuck")["reason"] == "Moving"
    assert "RolloutCompleted" in events(planned(observed(status=on_the_way.status)))


def test_trouble_is_announced_once() -> None:
    crashing = serving("b", ready=False, gate=False, started=False, container_id="", report=SILENT, last_exit_code=66)
    seen = observed(pods=(serving("a"), crashing), status=rest_status())
    first = planned(seen)
    assert events(first) == ["CrashLoop"]
    assert events(planned(replace(seen, status=first.status))) == []


def test_what_the_next_plan_acts_on_is_looked_at_again_at_once() -> None:
    first = planned(observed())
    assert first.status["lastGoodRevision"] == HASH
    assert first.requeue_after_s == 1200  # nothing older waits for it
    older = (deployment(2, HASH), deployment(0, "old"))
    assert planned(observed(deployments=older, status=rest_status(lastGoodRevision="old"))).requeue_after_s == 0
    assert planned(observed(deployments=older, status=rest_status())).requeue_after_s == 1200


def test_a_new_number_of_replicas_is_announced() -> None:
    made = planned(observed(status=rest_status()), resource(replicas=3))
    assert "Scaled" in events(made)
    assert [action.replicas for action in made.actions if isinstance(action, ScaleDeployment)] == [3]
    assert "scaling" not in made.status


def test_a_decision_of_the_queue_is_recorded_with_its_reasons() -> None:
    queue = Known(value=QueueSample(waiting=7.0, running=1.0, pods=2))
    found = resource(autoscaling=autoscaling())
    made = planned(observed(status=rest_status(), queue=queue), found)
    assert made.status["scaling"] == {
        "lastScaleTime": "1970-01-12T13:46:40Z",
        "decision": "2 -> 4",
        "reasons": ["8 requests at 2 a pod ask for 4"],
    }
    assert made.status["desiredReplicas"] == 4
    assert made.reasons[0] == "scaling: 8 requests at 2 a pod ask for 4"


def test_the_queue_is_followed_every_five_seconds() -> None:
    found = resource(autoscaling=autoscaling())
    queue = Known(value=QueueSample(waiting=4.0, running=0.0, pods=2))
    first = planned(observed(queue=queue, status=rest_status()), found)
    again = planned(observed(queue=queue, status=first.status), found)
    assert again.actions == ()
    assert again.requeue_after_s == 5


def test_cards_of_our_own_pods_count_for_the_limit() -> None:
    queue = Known(value=QueueSample(waiting=100.0, running=0.0, pods=2))
    cards = Known(value=CardLedger(allocatable=3, requested=2))
    made = planned(observed(queue=queue, cards=cards, status=rest_status()), resource(autoscaling=autoscaling()))
    assert made.status["desiredReplicas"] == 3


def test_a_lost_status_does_not_shrink_what_serves() -> None:
    made = planned(observed(status={}), resource(autoscaling=autoscaling()))
    assert made.status["desiredReplicas"] == 2


def test_switching_autoscaling_off_hands_the_number_to_the_spec() -> None:
    made = planned(observed(status=rest_status(desiredReplicas=2)), resource(replicas=1))
    assert made.status["desiredReplicas"] == 1


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (resource(autoscaling=autoscaling()), resource(replicas=5, autoscaling=autoscaling()), True),
        (resource(autoscaling=autoscaling()), resource(autoscaling=autoscaling(maxReplicas=2)), False),
        (resource(replicas=1), resource(replicas=5), False),
        (resource(replicas=1), resource(replicas=5, autoscaling=autoscaling()), False),
        (resource(autoscaling=autoscaling()), resource(replicas=5), False),
    ],
)
def test_who_writes_replicas_while_autoscaling_decides_is_told_once(
    before: ImageEditDeployment, after: ImageEditDeployment, told: bool
) -> None:
    _, memory = plan(before, observed(), PlanMemory(), NOW)
    first, memory = plan(after, observed(), memory, NOW)
    second, _ = plan(after, observed(), memory, NOW)
    assert ["ReplicasIgnored" in events(made) for made in (first, second)] == [told, False]


def in_place(*, replicas: int, cards: int, **leaving: Any) -> Plan:
    """The plan while an old pod drains and its replacement waits for the card, once all is said."""
    busy = known(draining=True, accepting=True, running=1)
    old = draining_pod("o", revision_hash="old", report=busy, gate_since=NOW, gate=False, **leaving)
    others = tuple(serving_pod(f"s{n}", revision_hash="old") for n in range(replicas - 1))
    seen = Observed(
        deployments=(deployment(1, HASH), deployment(replicas, "old")),
        pods=(old, *others, pending_pod("n", revision_hash=HASH, unschedulable_since=NOW - 9)),
        service_exists=True,
        service_matches=True,
        cards=Known(value=CardLedger(allocatable=cards, requested=cards)),
        status={"updateRevision": HASH, "currentRevision": "old", "lastGoodRevision": "old"},
    )
    announced = {**planned(seen, resource(replicas=replicas)).status}
    progressing = {"type": "Progressing", "status": "True", "reason": "PlannedReplacement", "message": "m"}
    if replicas == 1:
        others_said = [c for c in announced["conditions"] if c["type"] != "Progressing"]
        announced["conditions"] = [*others_said, progressing]
    return planned(replace(seen, status=announced), resource(replicas=replicas))


def test_a_card_that_a_replacement_waits_for_is_followed_while_its_pod_leaves() -> None:
    made = in_place(replicas=2, cards=2)
    assert made.actions == ()
    assert made.requeue_after_s == 2


def test_a_time_without_a_warm_pod_is_followed_twice_a_second() -> None:
    made = in_place(replicas=1, cards=1)
    assert made.actions == ()
    assert made.requeue_after_s == 0.5


def test_what_drains_is_seen_as_motion_and_what_is_stuck_is_only_watched() -> None:
    busy = known(draining=True, accepting=False, running=1, revision_hash=HASH)
    leaving = draining_pod("b", revision_hash=HASH, report=busy, gate_since=NOW)
    seen = observed(pods=(serving("a"), leaving), status=rest_status())
    assert planned(seen, resource(replicas=1)).requeue_after_s == 2
    stuck = observed(pods=(serving("a"), pending_pod("b", revision_hash=HASH)), status=rest_status())
    settled = replace(stuck, status=planned(stuck).status)
    assert planned(settled).requeue_after_s == 5


def refused_pod() -> ObservedPod:
    """One that a kubelet did not take a moment ago."""
    return ObservedPod(
        name="r",
        uid="uid-r",
        revision_hash=HASH,
        node="node-1",
        phase="Failed",
        created_at=NOW,
        failed_reason="UnexpectedAdmissionError",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"pods": (serving("a"), serving("b", unhealthy_cards=("c",), held_cards=("c",)))},
        {"pods": (serving("a"), serving("b"), refused_pod())},
    ],
    ids=["a sick card", "a refused pod"],
)
def test_what_time_decides_while_all_pods_serve_is_watched(changes: dict[str, Any]) -> None:
    first = planned(observed(status=rest_status(), **changes))
    made = planned(observed(status=first.status, **changes), now=NOW + 1)
    assert made.actions == ()
    assert made.requeue_after_s == 5


def test_an_invalid_spec_keeps_the_figures_of_what_serves() -> None:
    before = rest_status()
    made = statuses.invalid("spec.replicas: must be a whole number", before, generation=9, now=NOW)
    by_type = {item["type"]: item for item in made["conditions"]}
    assert by_type["Ready"]["reason"] == by_type["Progressing"]["reason"] == "InvalidSpec"
    assert by_type["Ready"]["message"] == (
        "spec.replicas: must be a whole number; correct it: what serves is left alone until then"
    )
    assert by_type["Available"]["status"] == "True"
    assert made["readyReplicas"] == 2
    assert made["observedGeneration"] == 9
    assert statuses.invalid("spec.replicas: must be a whole number", made, generation=9, now=NOW + 99) == made


@pytest.mark.parametrize(
    ("serves", "said"),
    [
        (True, {"Available": "Serving", "Ready": "AllPodsServe", "Progressing": "WriteRefused"}),
        (False, {"Available": "WriteRefused", "Ready": "WriteRefused", "Progressing": "WriteRefused"}),
    ],
)
def test_a_refused_write_is_said_where_the_pods_do_not_say_otherwise(serves: bool, said: dict[str, str]) -> None:
    before = dict(planned(observed() if serves else Observed()).status)
    made = statuses.refused("exceeded quota", before, {}, generation=3, now=NOW)
    found = {item["type"]: item["reason"] for item in made["conditions"]}
    assert {kind: found[kind] for kind in said} == said
    assert find(made, "Degraded")["message"] == (
        "exceeded quota; change what refuses it, or the field that it names: it is tried again at least every 2 minutes"
    )
    assert [item["type"] for item in made["conditions"]] == [item["type"] for item in before["conditions"]]
    assert statuses.refused("exceeded quota", before, made, generation=3, now=NOW + 99) == made
