"""Which Services and budgets a pass need not read again."""

from __future__ import annotations

import pytest

from imageedit_operator.core.resource import parse
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kept import LONGEST_S, Kept
from imageedit_operator.kube.kinds import SERVICES
from imageedit_operator.kube.versions import Family
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import custom_resource, owner

RESOURCE = parse(custom_resource())
KEY = Key("team", "edit")


def service(uid: str = RESOURCE.uid, *, labels: dict[str, str] | None = None) -> Manifest:
    about = {
        "name": "edit",
        "namespace": "team",
        "uid": "uid-s",
        "resourceVersion": "3",
        "ownerReferences": [owner(uid)],
    }
    return {"metadata": {**about, "labels": {"imageedit.dev/deployment": "edit"} if labels is None else labels}}


@pytest.mark.parametrize(
    ("owned_by", "age_s", "known"),
    [
        (RESOURCE.uid, 0.0, True),
        (RESOURCE.uid, LONGEST_S - 1, True),
        (RESOURCE.uid, LONGEST_S, False),
        ("uid-of-another", 0.0, False),
    ],
)
def test_an_own_object_is_known_for_a_while(owned_by: str, age_s: float, known: bool) -> None:
    now = 100.0
    kept = Kept(clock=lambda: now)
    kept.given(SERVICES, KEY, service(owned_by))
    now += age_s
    assert (kept.get(SERVICES, RESOURCE) is not None) == known


def test_what_was_never_given_is_not_known() -> None:
    assert Kept(clock=lambda: 0.0).get(SERVICES, RESOURCE) is None


def test_a_doubt_that_comes_in_a_pass_holds_for_what_that_pass_reads_later() -> None:
    """Its read may have been answered before the change that a list told of."""
    kept = Kept(clock=lambda: 0.0)
    kept.begin(KEY)
    kept.doubt(KEY)
    kept.given(SERVICES, KEY, service())
    kept.begin(KEY)
    assert kept.get(SERVICES, RESOURCE) is None


@pytest.mark.parametrize("told_first", [True, False])
@pytest.mark.parametrize(
    ("uid", "version", "known"),
    [
        pytest.param("uid-s", "3", True, id="at this version"),
        pytest.param("uid-s", "4", False, id="at another version"),
        pytest.param("uid-s", "", False, id="gone"),
        pytest.param("uid-of-another", "4", False, id="another object of its name"),
        pytest.param("uid-of-another", "", True, id="the end of another object"),
    ],
)
def test_what_the_watch_tells_otherwise_is_not_known_in_whatever_order(
    uid: str, version: str, known: bool, told_first: bool
) -> None:
    """An event may come before the answer to the write that it echoes."""
    kept = Kept(clock=lambda: 0.0)
    if told_first:
        kept.told(SERVICES, KEY, uid, version)
    kept.given(SERVICES, KEY, service())
    if not told_first:
        kept.told(SERVICES, KEY, uid, version)
    kept.begin(KEY)
    assert (kept.get(SERVICES, RESOURCE) is not None) == known


def test_what_is_read_after_an_event_is_known_again() -> None:
    kept = Kept(clock=lambda: 0.0)
    kept.told(SERVICES, KEY, "uid-s", "4")
    kept.begin(KEY)
    kept.given(SERVICES, KEY, service())
    kept.begin(KEY)
    assert kept.get(SERVICES, RESOURCE) == service()


def test_what_is_read_after_the_doubt_is_known_again() -> None:
    kept = Kept(clock=lambda: 0.0)
    kept.doubt(KEY)
    for _ in range(2):
        kept.begin(KEY)
        kept.given(SERVICES, KEY, service())
    kept.begin(KEY)
    assert kept.get(SERVICES, RESOURCE) == service()


@pytest.mark.parametrize(
    ("labels", "listed", "lost"),
    [
        (None, {KEY: frozenset({("uid-s", "7")})}, set()),
        (None, {KEY: frozenset({("uid-of-a-pod", "7")})}, {KEY}),
        (None, {}, set()),
        ({}, {KEY: frozenset({("uid-of-a-pod", "7")})}, set()),
    ],
)
def test_what_is_kept_and_not_listed_is_lost(
    labels: dict[str, str] | None, listed: dict[Key, Family], lost: set[Key]
) -> None:
    """It may have been made and deleted between two lists, of which then neither tells."""
    kept = Kept(clock=lambda: 0.0)
    kept.given(SERVICES, KEY, service(labels=labels))
    assert kept.lost(listed) == lost


def test_what_is_too_old_is_forgotten_with_a_list() -> None:
    now = 0.0
    kept = Kept(clock=lambda: now)
    kept.given(SERVICES, KEY, service())
    now = LONGEST_S
    assert kept.lost({KEY: frozenset()}) == {KEY}
    assert kept.lost({KEY: frozenset()}) == set()
