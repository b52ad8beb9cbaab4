"""What the status remembers of a rollout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from imageedit_operator.core import record
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.record import Record
from imageedit_operator.core.resize import Group
from unit.operator_core.builders import HASH, OLD, SILENT, deployment, serving_pod, starting_pod

NOW = 10_000.0
BEFORE = Record(revision=HASH, started_at=100.0, stepped_at=200.0, old_pods=1, placed_pods=1, warm_pods=0)
TROUBLE = Trouble(reason="CheckFailed", message="flat")


def fleet(*new: ObservedPod, leaving: int = 0) -> Fleet:
    return Fleet(
        wanted=Group(deployment=deployment(len(new)), pods=new),
        old=(Group(deployment=deployment(1, OLD), pods=(serving_pod("o", revision_hash=OLD),)),),
        terminating=tuple(serving_pod(f"t{n}", revision_hash=OLD, terminating=True) for n in range(leaving)),
    )


def follow(
    found: Fleet | None, before: Record | None = BEFORE, *, trouble: Trouble | None = None, canary: int | None = None
) -> Record:
    return record.follow(before, HASH, found, trouble=trouble, canary=canary, now=NOW)


def test_it_is_read_back_as_it_was_written() -> None:
    whole = replace(BEFORE, trouble_since=300.0, held_since=400.0)
    assert record.read({"rollout": record.write(whole)}) == whole
    assert record.read({"rollout": record.write(BEFORE)}) == BEFORE


@pytest.mark.parametrize("stored", [None, "x", {}, {"revision": "a", "startedAt": "soon", "steppedAt": "later"}])
def test_what_cannot_be_read_is_no_record(stored: object) -> None:
    assert record.read({"rollout": stored}) is None


@pytest.mark.parametrize("before", [None, replace(BEFORE, revision="other", trouble_since=1.0, held_since=1.0)])
def test_another_revision_begins_anew(before: Record | None) -> None:
    begun = follow(fleet(starting_pod()), before)
    assert (begun.started_at, begun.stepped_at, begun.trouble_since, begun.held_since) == (NOW, NOW, None, None)


@pytest.mark.parametrize(
    ("found", "stepped_at"),
    [
        (fleet(starting_pod()), 200.0),
        (None, 200.0),
        (fleet(serving_pod()), NOW),
        (fleet(starting_pod(), starting_pod("b")), NOW),
        (fleet(starting_pod(), leaving=1), NOW),
    ],
)
def test_a_step_is_a_change_of_old_placed_or_warm_pods(found: Fleet | None, stepped_at: float) -> None:
    assert follow(found).stepped_at == stepped_at


@pytest.mark.parametrize(
    ("since", "pod", "trouble", "expected"),
    [
        (None, starting_pod(), TROUBLE, NOW),
        (300.0, starting_pod(), TROUBLE, 300.0),
        (300.0, starting_pod(report=SILENT), None, 300.0),
        (300.0, starting_pod(), None, None),
        (None, starting_pod(report=SILENT), None, None),
    ],
)
def test_trouble_lasts_until_a_pod_answers_without_it(
    since: float | None, pod: ObservedPod, trouble: Trouble | None, expected: float | None
) -> None:
    assert follow(fleet(pod), replace(BEFORE, trouble_since=since), trouble=trouble).trouble_since == expected


def test_a_canary_is_reached_once() -> None:
    assert follow(fleet(starting_pod()), canary=1).held_since is None
    reached = follow(fleet(serving_pod()), canary=1)
    assert reached.held_since == NOW
    assert follow(fleet(starting_pod()), replace(reached, held_since=500.0), canary=1).held_since == 500.0
