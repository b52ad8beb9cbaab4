"""What a pod that no node takes asks of a person, row by row, in words that kube-scheduler 1.34 gives."""

from __future__ import annotations

import pytest

from imageedit_operator.core.place_advice import next_steps, short
from imageedit_operator.core.pod_words import place_words
from unit.operator_core.builders import CARD, pending_pod

NOT_HELPFUL = "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
OWN_STATE = "which a node sets for its own state: kubectl describe nodes says why"


def of(part: str) -> str:
    """The scheduler's words for four nodes that all lack the same."""
    return f"0/4 nodes are available: 4 {part}. no new claims to deallocate, {NOT_HELPFUL}"


def advice(words: str) -> str:
    return "; ".join(next_steps(words, pod="p", claims=("cache", "models"), labels={"zone": "mars", "npu": "910b"}))


@pytest.mark.parametrize(
    ("part", "begins"),
    [
        (
            "node(s) were unschedulable",
            "cordoned nodes take no pods: kubectl get nodes shows which are SchedulingDisabled",
        ),
        ("node(s) had untolerated taint {team: lab}", "tolerate the taint team=lab in spec.accelerator.tolerations"),
        ("node(s) had untolerated taint {team: }", "tolerate the taint team in spec.accelerator.tolerations"),
        (
            "node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }",
            f"pods do not tolerate the taint node.kubernetes.io/disk-pressure, {OWN_STATE}",
        ),
        (
            "node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }",
            "nodes of the control plane take no such pods: add a node",
        ),
        ("node(s) had untolerated taint(s)", "tolerate a taint of the nodes in spec.accelerator.tolerations"),
        (
            "node(s) didn't match Pod's node affinity/selector",
            "no node has the labels npu=910b, zone=mars of spec.accelerator.nodeSelector",
        ),
        ("Insufficient cpu", "no node has the cpu left that spec.server.resources and spec.template ask for"),
        ("Insufficient memory", "no node has the memory left that spec.server.resources and spec.template ask for"),
        ("Insufficient ephemeral-storage", "no node has the ephemeral-storage left that spec.server.resources"),
        (f"Insufficient {CARD}", f"no node has as many {CARD} left as the pod asks for"),
        ("pod has unbound immediate PersistentVolumeClaims", "kubectl get pvc must show the claim, and as Bound"),
        ('persistentvolumeclaim "models" not found', "kubectl get pvc must show the claim, and as Bound"),
        ("node(s) had volume node affinity conflict", "the volume of a claim (cache, models) lies on other nodes"),
        (
            "node(s) didn't match PersistentVolume's node affinity",
            "the volume of a claim (cache, models) lies on other",
        ),
        ("node(s) had no available volume zone", "the volume of a claim (cache, models) lies on other nodes"),
        ("node(s) exceed max volume count", "the nodes have attached as many volumes as they can"),
        ("Too many pods", "the nodes run as many pods as their kubelets take"),
        ("node(s) didn't have free ports for the requested pod ports", "a hostPort of spec.template is taken"),
        ("node(s) didn't match pod topology spread constraints", "see topologySpreadConstraints in spec.template"),
        ("node(s) didn't match pod anti-affinity rules", "see affinity in spec.template"),
        ("node(s) are on the moon", "kubectl describe pod p says more"),
    ],
)
def test_a_phrase_of_the_scheduler_names_the_field_or_object_to_look_at(part: str, begins: str) -> None:
    assert advice(of(part)).startswith(begins)


@pytest.mark.parametrize("words", ["", "words of another scheduler"])
def test_words_that_nobody_knows_send_to_the_pods_events(words: str) -> None:
    assert advice(words) == "kubectl describe pod p says more"


def test_what_is_said_of_preemption_is_no_reason_of_its_own() -> None:
    assert (
        advice(f"0/1 nodes are available: 1 odd. {NOT_HELPFUL} Insufficient cpu") == "kubectl describe pod p says more"
    )


def test_labels_that_are_not_known_are_not_named() -> None:
    (said,) = next_steps(of("node(s) didn't match Pod's node affinity/selector"), pod="p")
    assert said.startswith("no node has the labels of spec.accelerator.nodeSelector")


MIXED = (
    "0/9 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable, "
    "3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
    "3 node(s) had untolerated taint {team: lab}. preemption: 0/9 nodes are available: none."
)

MIXED_REASONS = (
    "Insufficient memory",
    "node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }",
    "node(s) had untolerated taint {team: lab}",
    "node(s) were unschedulable",
)

MIXED_REASONS = (
    "Insufficient memory",
    "node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }",
    "node(s) had untolerated taint {team: lab}",
    "node(s) were unschedulable",
)


def test_three_steps_are_enough_and_those_that_help_the_pod_come_first() -> None:
    said = advice(MIXED).split("; ")
    assert [words.split()[0] for words in said] == ["cordoned", "tolerate", "no"]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (of("Insufficient memory"), "Insufficient memory"),
        (MIXED, ", ".join(MIXED_REASONS)),
        ("0/1 nodes are unavailable: 1 Insufficient cpu.", "Insufficient cpu"),
        (
            '0/1 nodes are available: persistentvolumeclaim "m" not found. preemption: none',
            'persistentvolumeclaim "m" not found',
        ),
        ("words of another scheduler", "words of another scheduler"),
    ],
)
def test_the_schedulers_words_are_kept_without_counts_of_nodes(words: str, kept: str) -> None:
    assert short(words) == kept


def test_counts_of_nodes_that_change_leave_the_words_as_they_are() -> None:
    fewer, more = (
        pending_pod(unschedulable_message=f"0/{nodes} nodes are available: {nodes - 1} Insufficient memory, 1 {other}.")
        for nodes, other in ((2, "Too many pods"), (40, "Too many pods"))
    )
    assert place_words(fewer) == place_words(more)


def test_a_pod_without_a_place_is_told_with_the_schedulers_words_and_a_next_step() -> None:
    pod = pending_pod("edit-x", unschedulable_message=of("Too many pods"))
    assert place_words(pod) == (
        "pod edit-x: the scheduler says: Too many pods; "
        "the nodes run as many pods as their kubelets take: let some end, or add a node"
    )


def test_a_scheduler_that_gives_no_reason_is_said_to_give_none() -> None:
    said = place_words(pending_pod("edit-x", unschedulable_message=""))
    assert said == (
        "pod edit-x: the scheduler finds no node for it, and does not say why; kubectl describe pod edit-x says more"
    )
