"""Copies of the model before pods need them: where, by which Jobs, and what is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from imageedit_operator.core import prefetch
from imageedit_operator.core.actions import CreateJob, DeleteJob
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.manifests import deployment
from imageedit_operator.core.observed import Observed, ObservedJob
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.prefetch import AT_ONCE, Copies
from imageedit_operator.core.prefetch_job import HOPELESS_EXITS, job_name
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.core.revision import copy_key, copy_name, files_key, revision_hash
from imageedit_server.prefetch.failures import EXIT_CODES, Failure
from unit.operator_core.builders import CARD, HASH, OLD, resource, serving_pod

SOURCE = {"pvc": {"claimName": "models", "path": "qwen"}}
ON_NODES = {"hostPath": {"path": "/data/copies"}}
IN_CLAIM = {"pvc": {"claimName": "fast"}}
NOT_KNOWN = Unknown(reason="Forbidden", message="nodes may not be read")
HISTORY = ({"hash": OLD, "files": "f0"}, {"hash": HASH, "files": "f1"})


def wanting(where: dict[str, Any] | None = None, **spec: Any) -> ImageEditDeployment:
    """A resource with copies, by default on nodes."""
    model = {"name": "qwen", "revision": "a", "source": SOURCE, "prefetch": ON_NODES if where is None else where}
    return resource(model=model, **spec)


def nodes(*names: str) -> Known[Mapping[str, str]]:
    return Known(value={name: f"uid-{name}" for name in names})


def observed_job(place: str = "n1", state: str = "Complete", **changes: Any) -> ObservedJob:
    made = ObservedJob(
        name=job_name(wanting(), place),
        uid=f"uid-{place}",
        revision_hash=HASH,
        copy_key=copy_key(wanting()),
        place=place,
        node_uid=f"uid-{place}",
        state=state,
    )
    return replace(made, **changes)


def look(
    made: ImageEditDeployment,
    *jobs: ObservedJob,
    on: Known[Mapping[str, str]] | Unknown | None = None,
    pods: tuple[ObservedPod, ...] = (),
    **changes: Any,
) -> Copies:
    observed = Observed(jobs=jobs, nodes=nodes("n1", "n2") if on is None else on)
    arguments: dict[str, Any] = {"hash_": HASH, "given_up": False, "good": False, **changes}
    return prefetch.look(made, observed, pods, HISTORY, **arguments)


def created(copies: Copies) -> list[str]:
    return [action.place for action in copies.actions if isinstance(action, CreateJob)]


def deleted(copies: Copies) -> list[str]:
    return [action.name for action in copies.actions if isinstance(action, DeleteJob)]


# --- where


@pytest.mark.parametrize(
    ("where", "known", "pod_nodes", "places"),
    [
        (IN_CLAIM, nodes("n1"), {"n2": HASH}, [""]),
        (IN_CLAIM, NOT_KNOWN, {}, [""]),
        (ON_NODES, nodes("n2", "n1"), {}, ["n1", "n2"]),
        (ON_NODES, nodes("n1"), {"n3": HASH}, ["n3", "n1"]),
        (ON_NODES, nodes("n1"), {"n3": OLD}, ["n1"]),
        (ON_NODES, nodes("n1", "n2"), {"n2": OLD}, ["n2", "n1"]),
        (ON_NODES, NOT_KNOWN, {"n3": OLD, "n4": HASH}, ["n3", "n4"]),
        (ON_NODES, NOT_KNOWN, {}, []),
    ],
)
def test_a_copy_is_wanted_where_pods_may_land_and_first_where_they_are(
    where: dict[str, Any], known: Known[Mapping[str, str]] | Unknown, pod_nodes: dict[str, str], places: list[str]
) -> None:
    pods = tuple(serving_pod(f"p-{node}", node=node, revision_hash=hash_) for node, hash_ in pod_nodes.items())
    copies = look(wanting(where), on=known, pods=pods)
    assert created(copies) == places
    assert copies.wanted == len(places)


def test_a_pod_that_is_over_or_leaves_asks_for_no_copy() -> None:
    pods = (serving_pod(node="n3", terminating=True), serving_pod("q", node="n4", phase="Failed"))
    assert created(look(wanting(), on=NOT_KNOWN, pods=pods)) == []


def test_without_the_field_nothing_is_wanted_and_every_job_of_ours_goes() -> None:
    copies = look(resource(), observed_job(), observed_job("n2", owned=False, name="foreign"))
    assert (copies.wanted, copies.words, copies.status()) == (0, "", {})
    assert deleted(copies) == [observed_job().name]


def test_a_revision_that_was_given_up_is_not_copied_further() -> None:
    copies = look(wanting(), observed_job("n1"), observed_job("n2", "Active"), given_up=True)
    assert (copies.wanted, created(copies)) == (0, [])
    assert deleted(copies) == [observed_job("n2").name]


# --- which Jobs stay


@pytest.mark.parametrize(
    ("changes", "good", "known", "stays"),
    [
        ({"state": "Complete", "revision_hash": OLD}, False, True, True),
        ({"state": "Active"}, False, True, True),
        ({"state": "Failed"}, True, True, True),
        ({"state": "Active", "revision_hash": OLD}, False, True, False),
        ({"state": "Failed", "revision_hash": OLD}, False, True, False),
        ({"state": "Complete", "place": "gone"}, True, True, True),
        ({"state": "Active", "place": "gone"}, False, True, False),
        ({"state": "Failed", "place": "gone"}, False, True, False),
        ({"state": "Complete", "copy_key": "other"}, False, True, True),
        ({"state": "Complete", "copy_key": "other", "revision_hash": "forgotten"}, False, True, False),
        ({"state": "Complete", "node_uid": "the machine before"}, True, True, False),
        ({"state": "Active", "node_uid": "the machine before"}, False, True, False),
        ({"state": "Complete", "node_uid": "the machine before"}, True, False, True),
        ({"state": "Complete", "node_uid": ""}, True, True, True),
        ({"state": "Complete", "copy_key": "other"}, True, True, False),
        ({"state": "Active", "copy_key": "other"}, False, True, False),
        ({"state": "Failed", "copy_key": "other"}, False, True, False),
        ({"state": "Leaving", "revision_hash": OLD}, True, True, True),
        ({"state": "Active"}, False, False, True),
        ({"state": "Failed", "revision_hash": OLD}, False, False, False),
        ({"state": "Complete", "owned": False, "copy_key": "other"}, True, True, True),
    ],
)
def test_a_job_stays_while_it_is_of_use(changes: dict[str, Any], good: bool, known: bool, stays: bool) -> None:
    found = replace(observed_job(), **changes)
    pods = () if known else (serving_pod(node="n1"),)
    copies = look(wanting(), found, on=nodes("n1", "n2") if known else NOT_KNOWN, pods=pods, good=good)
    assert deleted(copies) == ([] if stays else [found.name])


def test_a_job_that_is_deleted_is_made_anew_only_when_its_name_is_free() -> None:
    copies = look(wanting(), observed_job("n1", "Failed", revision_hash=OLD), observed_job("n2"))
    assert created(copies) == []
    assert created(look(wanting(), observed_job("n2"))) == ["n1"]
    assert created(look(wanting(), observed_job("n1", "Leaving"), observed_job("n2"))) == []


def test_no_more_than_eight_jobs_copy_at_once() -> None:
    many = nodes(*(f"n{number:02}" for number in range(20)))
    assert len(created(look(wanting(), on=many))) == AT_ONCE
    busy = [observed_job(f"n{number:02}", "Active") for number in range(7)]
    assert created(look(wanting(), *busy, on=many)) == ["n07"]


# --- what is said


def test_the_words_count_the_nodes_and_say_what_the_first_one_waits_for() -> None:
    copies = look(wanting(), observed_job("n1"), observed_job("n2", "Active", message="Unschedulable: no room"))
    assert copies.missing
    assert copies.words == (
        "copies of the model are made before any pod is replaced: 1 of 2 nodes have theirs;"
        " node n2: Unschedulable: no room"
    )
    assert copies.trouble is None
    assert copies.status() == {
        "prefetch": {"wanted": 2, "ready": 1, "failed": 0, "message": "node n2: Unschedulable: no room"}
    }


def test_a_failed_job_is_a_trouble_with_its_words_and_what_to_do() -> None:
    failed = observed_job("n2", "Failed", message="DiskFull: /copies has 1.0 GB free; free 54 GB on this disk")
    copies = look(wanting(), observed_job("n1", "Active", message="waits"), failed)
    assert copies.trouble is not None
    assert (copies.trouble.reason, copies.failed) == ("PrefetchFailed", 1)
    assert copies.trouble.message == (
        f"node n2: DiskFull: /copies has 1.0 GB free; free 54 GB on this disk; then delete Job {failed.name}"
        " to try again"
    )


def test_nothing_is_said_when_every_copy_is_there() -> None:
    copies = look(wanting(), observed_job("n1"), observed_job("n2"))
    assert (copies.words, copies.actions, copies.missing) == ("", (), False)
    assert copies.status() == {"prefetch": {"wanted": 2, "ready": 2, "failed": 0}}


def test_the_claim_is_named_where_copies_lie_in_one() -> None:
    assert look(wanting(IN_CLAIM)).words.endswith("the claim has none yet")


def test_a_pod_has_its_files_from_the_end_of_its_nodes_job_on() -> None:
    pods = (
        serving_pod("p1", node="n1"),
        serving_pod("p2", node="n2"),
        serving_pod("old", node="n1", revision_hash=OLD),
        serving_pod("waiting", node=""),
    )
    copies = look(wanting(), observed_job("n1", ended_at=70.0), observed_job("n2", "Active"), pods=pods)
    assert copies.files_at == {"uid-p1": 70.0, "uid-p2": inf}
    assert look(wanting(IN_CLAIM), pods=pods).files_at == {}


# --- what the Job is


def made_job(where: dict[str, Any] | None = None, history: Any = HISTORY, **spec: Any) -> dict[str, Any]:
    observed = Observed(nodes=nodes("n1"))
    copies = prefetch.look(wanting(where, **spec), observed, (), history, hash_=HASH, given_up=False, good=False)
    (action,) = copies.actions
    assert isinstance(action, CreateJob)
    return dict(action.manifest)


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    return dict(job["spec"]["template"]["spec"])


def test_the_job_asks_for_no_card_and_lands_where_the_servers_pods_may() -> None:
    pod = pod_of(made_job(accelerator={"nodeSelector": {"pool": "npu"}, "tolerations": [{"operator": "Exists"}]}))
    (container,) = pod["containers"]
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "limits" not in container["resources"]
    assert pod["nodeSelector"] == {"pool": "npu"}
    assert {"key": CARD, "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    ((term,),) = (term["nodeSelectorTerms"] for term in pod["affinity"]["nodeAffinity"].values())
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def test_the_job_knows_its_node_by_name_and_uid() -> None:
    annotations = made_job()["metadata"]["annotations"]
    assert annotations == {"imageedit.dev/node": "n1", "imageedit.dev/node-uid": "uid-n1"}
    assert made_job(IN_CLAIM)["metadata"]["annotations"] == {"imageedit.dev/node": "", "imageedit.dev/node-uid": ""}


def test_the_jobs_pods_carry_no_label_that_a_server_pod_is_found_by() -> None:
    labels = made_job()["spec"]["template"]["metadata"]["labels"]
    server = deployment(wanting(), HASH)
    assert labels["app.kubernetes.io/component"] == "prefetch"
    assert labels["app.kubernetes.io/name"] == "imageedit-prefetch"
    assert not set(server["spec"]["selector"]["matchLabels"]) & set(labels)


def test_the_job_goes_with_the_resource_and_tries_again_only_where_that_helps() -> None:
    job = made_job()
    (reference,) = job["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["controller"]) == ("ImageEditDeployment", True)
    assert job["spec"]["backoffLimit"] == 3
    assert job["spec"]["activeDeadlineSeconds"] == 4 * 3600
    (exits, _) = job["spec"]["podFailurePolicy"]["rules"]
    assert exits["onExitCodes"]["values"] == list(HOPELESS_EXITS)


def test_the_exit_codes_that_end_a_job_are_the_commands_own() -> None:
    assert set(HOPELESS_EXITS) == {code for failure, code in EXIT_CODES.items() if failure is not Failure.COPY_FAILED}


def test_the_job_copies_the_folder_that_the_servers_pods_mount() -> None:
    pod = pod_of(made_job())
    (container,) = pod["containers"]
    name = copy_name(wanting())
    assert name == f"team.edit.{files_key(wanting())}"
    assert container["args"][:3] == ["prefetch", "/models/qwen", f"/copies/{name}"]
    assert [volume for volume in pod["volumes"] if "hostPath" in volume] == [
        {"name": "copies", "hostPath": {"path": "/data/copies", "type": "DirectoryOrCreate"}}
    ]
    server = deployment(wanting(), HASH)["spec"]["template"]["spec"]
    (models,) = (volume for volume in server["volumes"] if volume["name"] == "models")
    assert models["hostPath"] == {"path": f"/data/copies/{name}", "type": "Directory"}
    assert "--model-dir=/models" in server["containers"][0]["args"]
    assert {"name": "models", "mountPath": "/models", "readOnly": True} in server["containers"][0]["volumeMounts"]


def test_a_copy_in_a_claim_is_written_by_the_servers_user_and_read_only_for_the_server() -> None:
    pod = pod_of(made_job(IN_CLAIM))
    assert pod["securityContext"]["fsGroup"] == 65532
    assert "runAsUser" not in pod["containers"][0]["securityContext"]
    assert "affinity" not in pod
    server = deployment(wanting(IN_CLAIM), HASH)["spec"]["template"]["spec"]
    (models,) = (volume for volume in server["volumes"] if volume["name"] == "models")
    assert models["persistentVolumeClaim"] == {"claimName": "fast", "readOnly": True}
    assert f"--model-dir=/models/{copy_name(wanting(IN_CLAIM))}" in server["containers"][0]["args"]


def test_copies_that_no_revision_of_the_history_reads_are_removed() -> None:
    args = pod_of(made_job())["containers"][0]["args"]
    assert args[-2:] == ["--remove-others=team.edit.", "--keep=team.edit.f0,team.edit.f1"]


@pytest.mark.parametrize("history", [(), ({"hash": OLD}, {"hash": HASH, "files": "f1"})])
def test_nothing_is_removed_where_the_history_does_not_tell_what_it_reads(history: Any) -> None:
    args = pod_of(made_job(history=history))["containers"][0]["args"]
    assert not [text for text in args if text.startswith(("--remove-others", "--keep="))]


def test_the_digest_and_a_part_of_a_nodes_disk_are_asked_for() -> None:
    digest = "sha256:" + "0" * 64
    model = {"name": "q", "revision": "a", "source": SOURCE, "manifestDigest": digest}
    on_nodes = prefetch.look(
        resource(model={**model, "prefetch": ON_NODES}),
        Observed(nodes=nodes("n1")), (), (), hash_=HASH, given_up=False, good=False,
    )  # fmt: skip
    (action,) = on_nodes.actions
    assert isinstance(action, CreateJob)
    args = action.manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[3:] == [f"--manifest-digest={digest}", "--keep-free=10"]


# --- the revision


def test_another_place_for_copies_is_another_revision_and_other_jobs_but_the_same_files() -> None:
    elsewhere = wanting({"hostPath": {"path": "/nvme"}})
    assert revision_hash(elsewhere) != revision_hash(wanting())
    assert job_name(elsewhere, "n1") != job_name(wanting(), "n1")
    assert files_key(elsewhere) == files_key(wanting())


def test_a_resource_without_copies_is_the_revision_that_it_was() -> None:
    plain = resource(model={"name": "qwen", "revision": "a", "source": SOURCE})
    assert plain.model.prefetch is None
    assert "prefetch" not in plain.model.manifest()
    assert copy_key(plain) == ""


@pytest.mark.parametrize(
    ("source", "where", "words"),
    [
        ({"demo": {}}, ON_NODES, "leave prefetch out"),
        (SOURCE, {}, "set exactly one of hostPath and pvc"),
        (SOURCE, {**ON_NODES, **IN_CLAIM}, "set exactly one of hostPath and pvc"),
        (SOURCE, {"hostPath": {"path": "data"}}, r"spec\.model\.prefetch\.hostPath\.path"),
        (SOURCE, {"hostPath": {"path": "//"}}, "not the node's whole disk"),
        (SOURCE, {"pvc": {"claimName": "models"}}, "is the source itself"),
        ({"hostPath": {"path": "/m/"}}, {"hostPath": {"path": "/m/c"}}, "lies inside the source"),
    ],
)
def test_a_place_that_makes_no_sense_is_refused(source: dict[str, Any], where: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        resource(model={"name": "q", "revision": "a", "source": source, "prefetch": where})
