"""What is kept of each revision."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core import history
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import HASH, OLD, SILENT, deployment, known, serving_pod, starting_pod

THEN = "1970-01-01T00:00:00Z"
NEWEST = {"hash": HASH, "model": "b", "files": "f2"}
OWNED = (deployment(1, HASH, created_at=2.0), deployment(1, OLD, created_at=1.0))


def entries(*pods: ObservedPod, stored: list[dict[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
    made = history.revisions({"revisions": stored or []}, OWNED, pods, NEWEST)
    return {entry["hash"]: entry for entry in made}


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "today", "", None, 7])
def test_a_time_that_nobody_can_read_ends_no_pass(at: object) -> None:
    assert history.completed([{"hash": HASH, "completedAt": at}, {"hash": OLD, "completedAt": THEN}]) == {OLD: 0.0}


def test_there_is_one_entry_for_each_deployment_oldest_first() -> None:
    made = history.revisions({"revisions": [{"hash": "gone", "digest": "x"}]}, OWNED, (), NEWEST)
    assert made == [{"hash": OLD}, NEWEST]


@pytest.mark.parametrize(
    ("pods", "digest"),
    [
        ((serving_pod(report=known(digest="sha256:1")),), "sha256:1"),
        ((starting_pod(report=known(digest="sha256:1")),), "sha256:1"),
        ((starting_pod("a", report=known(digest="sha256:1")), serving_pod("b", report=known(digest="2"))), "2"),
        ((starting_pod(report=known(digest="sha256:1", check_ok=False)),), None),
        ((starting_pod(report=known(digest="sha256:1", warm=False)),), None),
        ((starting_pod(report=known(digest="sha256:1", revision_hash=OLD)),), None),
        ((serving_pod(report=known(digest="")),), None),
        ((serving_pod(report=SILENT),), None),
        ((), None),
    ],
)
def test_a_digest_comes_from_the_first_warm_pod(pods: tuple[ObservedPod, ...], digest: str | None) -> None:
    assert entries(*pods)[HASH].get("digest") == digest


def test_a_digest_never_changes() -> None:
    stored = [{"hash": HASH, "model": "b", "files": "f2", "digest": "first"}]
    assert entries(serving_pod(report=known(digest="second")), stored=stored)[HASH]["digest"] == "first"


def test_the_digest_of_the_specs_revision_outlives_its_deployment() -> None:
    stored = [{"hash": HASH, "model": "b", "files": "f2", "digest": "first"}]
    assert history.revisions({"revisions": stored}, OWNED[1:], (), NEWEST) == [{"hash": OLD}, *stored]


def test_the_same_files_have_the_same_digest_in_every_revision() -> None:
    stored = [{"hash": OLD, "model": "b", "files": "f2", "digest": "first"}]
    assert entries(starting_pod(report=known(digest="second")), stored=stored)[HASH]["digest"] == "first"
    other = [{"hash": OLD, "model": "a", "files": "f1", "digest": "first"}]
    assert entries(starting_pod(report=known(digest="second")), stored=other)[HASH]["digest"] == "second"


def test_digests_are_those_that_are_known() -> None:
    assert history.digests([{"hash": "a", "digest": "1"}, {"hash": "b"}]) == {"a": "1"}


MARK, EARLIER = "1970-01-01T00:16:40Z", "1970-01-01T00:05:00Z"


@pytest.mark.parametrize(
    ("stored", "before", "good", "marks"),
    [
        ({}, OLD, HASH, {OLD: EARLIER, HASH: MARK}),
        ({OLD: "1970-01-01T00:00:09Z"}, OLD, HASH, {OLD: "1970-01-01T00:00:09Z", HASH: MARK}),
        ({HASH: "1970-01-01T00:00:09Z"}, OLD, HASH, {OLD: EARLIER, HASH: MARK}),
        ({}, "", HASH, {HASH: MARK}),
        ({}, HASH, HASH, {}),
        ({HASH: "1970-01-01T00:00:09Z"}, HASH, HASH, {HASH: "1970-01-01T00:00:09Z"}),
        ({}, "", "", {}),
    ],
)
def test_a_revision_is_marked_when_it_comes_to_be_the_last_good_one(
    stored: dict[str, str], before: str, good: str, marks: dict[str, str]
) -> None:
    found = [{"hash": hash_} | ({"completedAt": stored[hash_]} if hash_ in stored else {}) for hash_ in (OLD, HASH)]
    made = history.mark(found, good=good, before=before, began_at=300.0, now=1000.0)
    assert {entry["hash"]: entry["completedAt"] for entry in made if "completedAt" in entry} == marks


@pytest.mark.parametrize("mark", [None, "", "yesterday", 3])
def test_a_mark_that_cannot_be_read_is_none(mark: Any) -> None:
    assert history.completed([{"hash": HASH, "completedAt": mark}, {"hash": OLD}]) == {}


@pytest.mark.parametrize(
    ("limit", "keep", "pods", "forgotten"),
    [
        (3, set(), (), []),
        (1, set(), (), ["r1", "r0"]),
        (0, {"r2"}, (), ["r1", "r0"]),
        (0, set(), (serving_pod(revision_hash="r0", terminating=True),), ["r2", "r1"]),
    ],
)
def test_what_is_beyond_the_limit_and_not_needed_is_forgotten(
    limit: int, keep: set[str], pods: tuple[ObservedPod, ...], forgotten: list[str]
) -> None:
    owned = [deployment(0, f"r{number}", created_at=float(number)) for number in range(3)]
    owned.append(deployment(1, "busy", created_at=0.0))
    made = history.forget(owned, pods, entries=(), keep=keep, limit=limit)
    assert [action.name.removeprefix("edit-") for action in made] == forgotten


@pytest.mark.parametrize(
    ("marks", "kept"),
    [
        ({"first": MARK, "second": EARLIER}, "first"),
        ({"first": EARLIER}, "first"),
        ({}, "second"),
    ],
)
def test_of_two_revisions_the_one_that_was_complete_last_is_kept(marks: dict[str, str], kept: str) -> None:
    owned = (deployment(0, "first", created_at=1.0), deployment(0, "second", created_at=2.0))
    found = [{"hash": hash_, "completedAt": at} for hash_, at in marks.items()]
    (gone,) = history.forget(owned, (), entries=found, keep=(), limit=1)
    assert gone.name != f"edit-{kept}"
