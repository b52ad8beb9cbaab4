"""Raw objects become observed values; every field that Kubernetes may leave out is left out once."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.kube.parsing import epoch_s, foreign_owner, is_subset, parse_deployment, parse_pod, timestamp
from imageedit_operator.kube.warmz import NO_REPORT, parse_warm_report
from unit.operator_shell.builders import RESOURCE_UID, deployment, owner, pod, warm_body

T0 = 1796007600.0  # 2026-11-30T03:00:00Z


def server(**state: Any) -> dict[str, Any]:
    """Status of the server container."""
    return {"name": "server", "containerID": "containerd://c1", "restartCount": 2, **state}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("2026-11-30T03:00:00Z", T0),
        ("2026-11-30T04:00:00+01:00", T0),
        ("2026-11-30T03:00:00.500000Z", T0 + 0.5),
    ],
)
def test_times_are_utc_epoch_seconds(text: str | None, seconds: float) -> None:
    assert epoch_s(text) == seconds


def test_a_time_is_written_as_kubernetes_reads_it() -> None:
    assert timestamp(T0 + 0.9) == "2026-11-30T03:00:00Z"


@pytest.mark.parametrize(
    ("state", "since"),
    [({"running": {"startedAt": "2026-11-30T03:00:00Z"}}, T0), ({"running": {}}, 0.0), ({"waiting": {}}, 0.0)],
)
def test_a_container_that_runs_says_since_when(state: dict[str, Any], since: float) -> None:
    assert parse_pod(pod(containerStatuses=[server(state=state)])).started_at == since


def test_a_deployment_of_the_resource_is_owned() -> None:
    parsed = parse_deployment(deployment(replicas=3), owner_uid=RESOURCE_UID)
    assert (parsed.owned, parsed.foreign_owner) == (True, "")
    assert (parsed.name, parsed.uid, parsed.resource_version) == ("edit-abc", "uid-edit-abc", "7")
    assert (parsed.revision_hash, parsed.replicas, parsed.created_at) == ("abc", 3, T0)


def test_the_revision_of_a_deployment_is_that_of_its_selector_which_nobody_can_change() -> None:
    raw = deployment()
    raw["metadata"]["labels"] = {"imageedit.dev/revision": "by-hand"}
    raw["spec"]["selector"] = {"matchLabels": {"imageedit.dev/revision": "abc"}}
    assert parse_deployment(raw, owner_uid=RESOURCE_UID).revision_hash == "abc"


@pytest.mark.parametrize(
    ("owners", "foreign"),
    [
        ([owner()], ""),
        ([owner(uid="other")], "ImageEditDeployment edit"),
        ([{"kind": "Team", "name": "x", "uid": "t"}], "nobody"),
        ([{"kind": "Team", "name": "x", "uid": "t"}, owner()], ""),
        ([], "nobody"),
    ],
)
def test_only_the_controller_reference_says_whose_an_object_is(owners: Any, foreign: str) -> None:
    assert foreign_owner(deployment(owners=owners), owner_uid=RESOURCE_UID) == foreign


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": {"b": 1}}, {"a": 1}, False),
        ({"a": 1}, {}, False),
        ({"a": False, "b": "", "c": {}, "d": None}, {}, True),
        ({"a": False}, {"a": True}, False),
        ([{"a": 1}], [{"a": 1, "b": 2}], True),
        ([{"a": 1}], [{"a": 2}, {"a": 1, "b": 2}], True),
        ([{"a": 1}], [{"a": 2}], False),
        ([{"a": 1}], [], False),
        ([{"a": 1}], None, False),
        ([], [{"a": 1}], False),
        ([1, 2], [2, 1], False),
        ("ab", "ab", True),
        ("ab", ["a", "b"], False),
    ],
)
def test_a_live_object_matches_when_it_has_every_wanted_field(wanted: Any, live: Any, same: bool) -> None:
    assert is_subset(wanted, live) is same


def test_an_empty_pod_is_pending_and_nothing_else() -> None:
    parsed = parse_pod({"metadata": {"name": "p", "uid": "u"}})
    assert parsed == ObservedPod(name="p", uid="u", revision_hash="", cards={})


def test_a_pod_has_the_time_of_its_node_and_the_cards_that_it_asks_for() -> None:
    raw = pod()
    raw["spec"]["containers"] = [{"name": "server", "resources": {"limits": {"huawei.com/Ascend910": "2"}}}]
    raw["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T03:00:00Z"}
    ]
    parsed = parse_pod(raw)
    assert (parsed.scheduled_at, parsed.cards) == (T0, {"huawei.com/Ascend910": 2})


@pytest.mark.parametrize(("status", "at"), [("True", T0), ("False", 0.0)])
def test_a_pod_has_the_time_at_which_its_volumes_and_network_were_there(status: str, at: float) -> None:
    prepared = {"type": "PodReadyToStartContainers", "status": status, "lastTransitionTime": "2026-11-30T03:00:00Z"}
    assert parse_pod(pod(conditions=[prepared])).prepared_at == at


def test_a_terminating_pod_has_the_end_of_its_grace_period_and_the_containers_that_still_run() -> None:
    ended = server(state={"terminated": {"exitCode": 0}})
    sidecars = [{"name": "log", "state": {"running": {}}}, {"name": "init", "state": {"terminated": {}}}]
    raw = pod(containerStatuses=[ended, {"name": "mesh", "state": {"running": {}}}], initContainerStatuses=sidecars)
    assert parse_pod(raw).running == ()
    raw["metadata"]["deletionTimestamp"] = "2026-11-30T03:00:00Z"
    parsed = parse_pod(raw)
    assert (parsed.terminating, parsed.ends_by, parsed.running) == (True, T0, ("log", "mesh"))


def test_a_running_pod_has_its_container_and_its_place() -> None:
    parsed = parse_pod(pod())
    assert (parsed.node, parsed.ip, parsed.phase, parsed.created_at) == ("node-1", "10.0.0.7", "Running", T0)
    assert (parsed.started, parsed.container_id, parsed.revision_hash) == (True, "containerd://c1", "abc")


def test_a_container_that_does_not_run_has_no_id() -> None:
    parsed = parse_pod(pod(containerStatuses=[server(state={"waiting": {"reason": "CrashLoopBackOff"}})]))
    assert (parsed.started, parsed.container_id, parsed.restarts) == (False, "", 2)


def test_only_the_container_named_server_counts() -> None:
    sidecar = {"name": "log", "containerID": "x", "state": {"running": {}}}
    assert parse_pod(pod(containerStatuses=[sidecar])).started is False


@pytest.mark.parametrize(
    ("reason", "seen"),
    [
        ("ContainerCreating", ""),
        ("PodInitializing", ""),
        ("ImagePullBackOff", "ImagePullBackOff"),
        ("CrashLoopBackOff", "CrashLoopBackOff"),
        ("CreateContainerConfigError", "CreateContainerConfigError"),
    ],
)
def test_the_normal_way_of_starting_is_no_reason_to_wait(reason: str, seen: str) -> None:
    parsed = parse_pod(pod(containerStatuses=[server(state={"waiting": {"reason": reason, "message": "m"}})]))
    assert parsed.waiting_reason == seen
    assert parsed.waiting_message == ("m" if seen else "")


def test_an_init_container_that_cannot_start_is_seen() -> None:
    waiting = {"name": "fetch", "state": {"waiting": {"reason": "ErrImagePull"}}}
    assert parse_pod(pod(initContainerStatuses=[waiting])).waiting_reason == "ErrImagePull"


def test_the_last_exit_is_that_of_the_previous_process() -> None:
    last = {"terminated": {"exitCode": 65, "message": "ModelMissing: no checkpoint\n"}}
    parsed = parse_pod(pod(containerStatuses=[server(state={"running": {}}, lastState=last)]))
    assert (parsed.last_exit_code, parsed.last_exit_message) == (65, "ModelMissing: no checkpoint")


def test_the_runtimes_word_for_the_last_exit_is_read() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    assert parse_pod(pod(containerStatuses=[server(lastState=last)])).last_exit_reason == "OOMKilled"


def test_a_process_that_has_just_ended_is_the_last_exit() -> None:
    now, last = {"terminated": {"exitCode": 68}}, {"terminated": {"exitCode": 65}}
    assert parse_pod(pod(containerStatuses=[server(state=now, lastState=last)])).last_exit_code == 68


def test_a_first_process_has_no_last_exit() -> None:
    assert parse_pod(pod()).last_exit_code is None


def test_an_unschedulable_pod_says_since_when_and_why() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes: insufficient huawei.com/Ascend910",
        "lastTransitionTime": "2026-11-30T03:00:00Z",
    }
    parsed = parse_pod(pod(conditions=[condition]))
    assert (parsed.unschedulable, parsed.unschedulable_since) == (True, T0)
    assert "insufficient" in parsed.unschedulable_message


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [("ReplicaFailure", "True", "exceeded quota"), ("ReplicaFailure", "False", ""), ("Progressing", "True", "")],
)
def test_a_deployment_says_why_its_pods_are_refused(kind: str, status: str, expected: str) -> None:
    raw = deployment()
    raw["status"] = {"conditions": [{"type": kind, "status": status, "message": "exceeded quota"}]}
    assert parse_deployment(raw, owner_uid=RESOURCE_UID).refused == expected


def test_a_failed_pod_has_the_kubelets_words() -> None:
    parsed = parse_pod(pod(phase="Failed", reason="Evicted", message="low on memory"))
    assert (parsed.failed_reason, parsed.failed_message) == ("Evicted", "low on memory")
    assert parse_pod(pod(message="of a pod that runs")).failed_message == ""


@pytest.mark.parametrize("time", [{}, {"lastTransitionTime": None}], ids=["absent", "null"])
def test_a_pod_is_not_unschedulable_for_ever_because_its_condition_has_no_time(time: dict[str, Any]) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", **time}
    assert parse_pod(pod(conditions=[condition])).unschedulable_since == T0  # its creation


@pytest.mark.parametrize(("status", "reason"), [("False", "SchedulingGated"), ("True", "")])
def test_a_pod_that_waits_for_something_else_is_not_unschedulable(status: str, reason: str) -> None:
    condition = {"type": "PodScheduled", "status": status, "reason": reason, "message": "m"}
    parsed = parse_pod(pod(conditions=[condition]))
    assert (parsed.unschedulable, parsed.unschedulable_message) == (False, "")


def test_a_pod_names_each_claim_that_it_mounts_once() -> None:
    raw = pod()
    raw["spec"]["volumes"] = [
        {"name": "models", "persistentVolumeClaim": {"claimName": "share"}},
        {"name": "cache", "persistentVolumeClaim": {"claimName": "cache"}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "share"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert parse_pod(raw).claims == ("cache", "share")


def test_the_gate_is_none_until_somebody_wrote_it() -> None:
    assert parse_pod(pod(conditions=[{"type": "Ready", "status": "False"}])).gate is None


@pytest.mark.parametrize("value", [True, False])
def test_the_gate_has_value_reason_message_and_time(value: bool) -> None:
    condition = {
        "type": "imageedit.dev/warm",
        "status": str(value),
        "reason": "Warm",
        "message": "container c1: warm",
        "lastTransitionTime": "2026-11-30T03:00:00Z",
    }
    parsed = parse_pod(pod(conditions=[condition, {"type": "Ready", "status": "True"}]))
    assert (parsed.gate, parsed.gate_reason, parsed.gate_since) == (value, "Warm", T0)
    assert (parsed.gate_message, parsed.ready) == ("container c1: warm", True)


def test_a_failed_pod_has_the_reason_of_its_status() -> None:
    parsed = parse_pod(pod(phase="Failed", reason="UnexpectedAdmissionError"))
    assert (parsed.phase, parsed.failed_reason) == ("Failed", "UnexpectedAdmissionError")


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    assert parse_pod(pod(metadata={"deletionTimestamp": "2026-11-30T03:00:00Z"})).terminating is True


@pytest.mark.parametrize(("text", "cost"), [("-100", -100), ("0", 0), ("many", 0)])
def test_the_deletion_cost_is_a_number_or_nothing(text: str, cost: int) -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": text}
    assert parse_pod(pod(metadata={"annotations": annotations})).deletion_cost == cost


def test_a_warm_report_is_read_whole() -> None:
    report = parse_warm_report(warm_body(running=1, waiting=3))
    assert (report.warm, report.check_ok, report.revision_hash, report.digest) == (True, True, "abc", "sha256:9f")
    assert (report.warmup_s, report.edit_s_by_size) == (12.4, {"768x768": 21.3})
    assert (report.running, report.waiting, report.accepting, report.draining) == (1, 3, True, False)
    assert parse_pod(pod(), report=Known(value=report)).report == Known(value=report)


def test_a_cold_report_may_lack_digest_and_check() -> None:
    body = warm_body(warm=False, digest=None, check=None, warmupSeconds=None, sizes=None)
    report = parse_warm_report(body)
    assert (report.warm, report.check_ok, report.digest, report.warmup_s) == (False, False, "", 0.0)


def test_a_failed_warm_up_carries_its_reason() -> None:
    report = parse_warm_report(warm_body(warm=False, error={"reason": "WarmupFailed", "message": "768x768: NaN"}))
    assert (report.error_reason, report.error_message) == ("WarmupFailed", "768x768: NaN")


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        "warm",
        {key: value for key, value in warm_body().items() if key != "instance"},
        warm_body(warm="true"),
        warm_body(warm=1),
        warm_body(check={"ok": "yes"}),
        warm_body(running=None),
        warm_body(running="many"),
        warm_body(warmupSeconds="soon"),
        warm_body(warmupSeconds=float("inf")),
        warm_body(warmupSeconds=-1.0),
        warm_body(sizes={"768x768": float("nan")}),
        warm_body(running=float("inf")),
        warm_body(sizes=[1]),
        warm_body(draining=None),
    ],
)
def test_a_body_that_is_no_report_is_refused(body: Any) -> None:
    with pytest.raises(NO_REPORT):
        parse_warm_report(body)
