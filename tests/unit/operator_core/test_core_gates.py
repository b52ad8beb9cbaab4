"""The warm gate, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core import gates
from imageedit_operator.core.actions import SetGate
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import gate_container, gate_message
from unit.operator_core.builders import HASH, OLD, SILENT, draining_pod, known, serving_pod, starting_pod

ROWS = [
    ("1 draining is sticky", draining_pod(report=known()), None),
    ("2 terminating", starting_pod(terminating=True, report=known()), None),
    ("2 over", starting_pod(phase="Failed", report=known()), None),
    ("3 container gone, open", serving_pod(started=False, container_id=""), (False, "ContainerRestarted")),
    ("4 container gone, closed", starting_pod(started=False, container_id=""), None),
    ("5 another container", serving_pod(container_id="c-2"), (False, "ContainerRestarted")),
    ("6 open, silent", serving_pod(report=SILENT), None),
    ("6 closed, silent", starting_pod(report=SILENT), None),
    ("7 another revision, open", serving_pod(report=known(revision_hash=OLD)), (False, "WrongRevision")),
    ("7 another revision, closed", starting_pod(report=known(revision_hash=OLD)), (False, "WrongRevision")),
    ("8 drains by itself", serving_pod(report=known(draining=True)), (False, "Draining")),
    ("9 check failed", starting_pod(report=known(check_ok=False)), (False, "CheckFailed")),
    ("10 no longer warm", serving_pod(report=known(warm=False)), (False, "NotWarm")),
    ("11 not warm yet", starting_pod(), None),
    ("12 other files", starting_pod(report=known(), expected_digest="sha256:cd"), (False, "DigestMismatch")),
    ("12 other files, but it serves", serving_pod(expected_digest="sha256:cd"), (True, "Warm")),
    ("13 the same files", starting_pod(report=known(), expected_digest="sha256:ab"), (True, "Warm")),
    ("13 no digest reported", starting_pod(report=known(digest=""), expected_digest="sha256:cd"), (True, "Warm")),
    ("13 warm", starting_pod(report=known()), (True, "Warm")),
]


@pytest.mark.parametrize(("pod", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_gate_follows_the_table(pod: ObservedPod, expected: tuple[bool, str] | None) -> None:
    wanted = gates.decide(pod)
    assert (None if wanted is None else (wanted.value, wanted.reason)) == expected


def changes(*pods: ObservedPod, **overrides: frozenset[str]) -> tuple[SetGate, ...]:
    arguments = {"revisions": frozenset({HASH}), "leaving": frozenset[str](), "settling": frozenset[str](), **overrides}
    return gates.changes(pods, **arguments)


def test_an_open_gate_is_not_written_again() -> None:
    assert changes(serving_pod()) == ()


def test_a_closed_gate_is_not_written_again() -> None:
    pod = starting_pod(
        report=known(check_ok=False), gate=False, gate_reason="CheckFailed", gate_message="container c-1: flat"
    )
    assert changes(pod) == ()


def test_the_message_names_the_container_the_seconds_and_the_digest() -> None:
    (write,) = changes(starting_pod(report=known()))
    assert write.message == "container c-1: warm in 12.4 s, digest sha256:ab"


def test_a_pod_of_an_unknown_revision_is_left_alone() -> None:
    assert changes(starting_pod(report=known()), revisions=frozenset({OLD})) == ()


def test_a_pod_that_leaves_gets_no_gate() -> None:
    assert changes(starting_pod(report=known()), leaving=frozenset({"uid-pod-1"})) == ()


def test_no_gate_opens_while_the_replica_set_removes_pods() -> None:
    assert changes(starting_pod(report=known()), settling=frozenset({HASH})) == ()


def test_a_gate_closes_while_the_replica_set_removes_pods() -> None:
    (write,) = changes(serving_pod(container_id="c-2"), settling=frozenset({HASH}))
    assert not write.value


@given(st.text(alphabet="abcdef0123456789:/-", min_size=1).filter(lambda text: ": " not in text), st.text())
def test_the_container_is_read_back_from_the_message(container: str, words: str) -> None:
    assert gate_container(gate_message(container, words)) == container


@pytest.mark.parametrize("message", ["", "warm", "pod x: y"])
def test_a_message_of_another_form_proves_nothing(message: str) -> None:
    assert gate_container(message) == ""
