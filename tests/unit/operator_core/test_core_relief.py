"""How a pod on a sick card gives way, how many pods are wanted meanwhile, and what is remembered; row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core import relief
from imageedit_operator.core.fleet import Fleet
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger, SickNode
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.relief import PLUGIN_S, REPEAT_S, SETTLE_S, Case, Relief, find_way, follow, goal
from imageedit_operator.core.resize import Group
from unit.operator_core.builders import OLD, deployment, draining_pod, pending_pod, serving_pod, starting_pod

NOW = 1_000_000.0
UNKNOWN = Unknown(reason="Forbidden", message="nodes may not be read")


def cards(*, free: int = 0, room: bool = False, allocatable: int = 3) -> Known[CardLedger]:
    """Three of four cards are well; `room` says whether one comes free with the pod on the fourth."""
    node = SickNode(sick={"c0": "fault"}, capacity=4, allocatable=allocatable, requested=3 if room else 4, sick_held=1)
    return Known(value=CardLedger(allocatable=8, requested=8 - free, sick_nodes={"node-1": node}))


def sick(name: str = "s", **changes: Any) -> ObservedPod:
    return serving_pod(name, held_cards=("c0",), sick_card="c0", sick_words="fault", **changes)


def idle_sick(name: str = "s", **changes: Any) -> ObservedPod:
    """It crashes on its card, so it works on nothing."""
    return sick(name, ready=False, started=False, container_id="", gate=None, **changes)


def fleet(pods: Sequence[ObservedPod], olds: Sequence[ObservedPod] = (), *, replicas: int | None = None) -> Fleet:
    size = len(pods) if replicas is None else replicas
    old = (Group(deployment=deployment(len(olds), OLD), pods=tuple(olds)),) if olds else ()
    return Fleet(wanted=Group(deployment=deployment(size), pods=tuple(pods)), old=old)


GOOD, EXTRA = serving_pod("g"), starting_pod("x")
WAITS, UNSEEN = pending_pod("x"), pending_pod("x", unschedulable=False)
STEADY = fleet([sick(), GOOD])
OLDS = [serving_pod("o", revision_hash=OLD)]


@pytest.mark.parametrize(
    ("pod", "found", "ledger", "stands", "expected"),
    [
        (draining_pod("s"), fleet([draining_pod("s"), GOOD]), cards(), False, "InPlace"),
        (idle_sick(), fleet([idle_sick(), GOOD]), cards(free=1), False, "AtOnce"),
        (idle_sick(), fleet([idle_sick(), GOOD]), cards(room=True), False, "AtOnce"),
        (idle_sick(), fleet([idle_sick()], OLDS), cards(free=1), False, "AtOnce"),
        (idle_sick(), fleet([idle_sick(), GOOD]), cards(), False, "Wait"),
        (idle_sick(), fleet([idle_sick(), GOOD]), UNKNOWN, False, "Surge"),
        (idle_sick(revision_hash=OLD), fleet([EXTRA], [idle_sick(revision_hash=OLD)]), cards(free=1), True, "AtOnce"),
        (idle_sick(revision_hash=OLD), fleet([EXTRA], [idle_sick(revision_hash=OLD)]), cards(free=1), False, "Wait"),
        (sick(revision_hash=OLD), fleet([GOOD], [sick(revision_hash=OLD)]), cards(free=1), True, "Wait"),
        (sick(), fleet([sick()], OLDS), cards(free=1), False, "Wait"),
        (sick(), STEADY, cards(free=1), False, "Surge"),
        (sick(), STEADY, UNKNOWN, False, "Surge"),
        (sick(), fleet([sick(), GOOD, EXTRA]), cards(), False, "Surge"),
        (sick(), fleet([sick(), GOOD, UNSEEN]), cards(), False, "Surge"),
        (sick(), fleet([sick(), GOOD, WAITS]), cards(free=1), False, "Surge"),
        (sick(), fleet([sick(), GOOD, WAITS]), cards(), False, "Wait"),
        (sick(), STEADY, cards(room=True), False, "InPlace"),
        (sick(), fleet([sick(), starting_pod("g")]), cards(room=True), False, "Wait"),
        (sick(), STEADY, cards(), False, "Wait"),
    ],
)
def test_a_pod_on_a_sick_card_gives_way_by_the_table(
    pod: ObservedPod, found: Fleet, ledger: Known[CardLedger] | Unknown, stands: bool, expected: str
) -> None:
    assert find_way(pod, found, ledger, cards_per_pod=1, wanted=2, stands=stands) == expected


@pytest.mark.parametrize(
    ("pods", "way", "expected"),
    [
        ([sick(), GOOD], None, (2, 2)),
        ([sick(), GOOD], "Surge", (3, 3)),
        ([sick(), GOOD, EXTRA], "Surge", (3, 3)),
        ([sick(), GOOD, serving_pod("x")], "Surge", (2, 2)),
        ([sick(), GOOD, draining_pod("d")], "Surge", (3, 4)),
        ([sick(), GOOD], "InPlace", (2, 2)),
        ([sick(), GOOD], "Wait", (2, 2)),
        ([sick(), GOOD], "AtOnce", (2, 2)),
        ([draining_pod("s"), GOOD], "InPlace", (2, 2)),
        ([draining_pod("s"), GOOD], None, (2, 3)),
    ],
)
def test_as_many_pods_are_wanted_as_the_table_says(
    pods: list[ObservedPod], way: str | None, expected: tuple[int, int]
) -> None:
    found = None if way is None else Relief(pod=pods[0], way=way)
    assert goal(fleet(pods), found, 2) == expected


def test_where_no_pods_are_wanted_none_is_added() -> None:
    assert goal(fleet([sick()]), Relief(pod=sick(), way="Surge"), 0) == (0, 0)


SEEN = Case(node="node-1", card="c0", pod="s", since=NOW - 60)
CHOSEN = replace(SEEN, replaced_at=NOW - 30)


@pytest.mark.parametrize(
    ("cases", "pods", "chosen", "expected"),
    [
        ([], [sick()], False, [replace(SEEN, since=NOW)]),
        ([SEEN], [sick()], False, [SEEN]),
        ([SEEN], [sick("t")], False, [replace(SEEN, pod="t")]),
        ([SEEN], [serving_pod("s")], False, []),
        ([SEEN], [], False, []),
        ([SEEN], [sick()], True, [replace(SEEN, replaced_at=NOW)]),
        ([CHOSEN], [serving_pod("s")], False, [replace(CHOSEN, pod="")]),
        ([CHOSEN], [sick()], False, [CHOSEN]),
        ([CHOSEN], [], False, [CHOSEN]),
        ([CHOSEN], [sick("t")], False, [CHOSEN]),
        ([replace(CHOSEN, replaced_at=NOW - REPEAT_S)], [], False, []),
        ([replace(CHOSEN, replaced_at=NOW - REPEAT_S)], [sick()], False, [replace(CHOSEN, replaced_at=NOW - REPEAT_S)]),
        ([replace(CHOSEN, replaced_at=NOW - REPEAT_S)], [sick("t")], False, [replace(SEEN, pod="t")]),
    ],
)
def test_the_status_remembers_by_the_table(
    cases: list[Case], pods: list[ObservedPod], chosen: bool, expected: list[Case]
) -> None:
    assert list(follow(cases, pods, {}, chosen=pods[0] if chosen else None, known=True, now=NOW)) == expected


@pytest.mark.parametrize("case", [SEEN, CHOSEN])
def test_while_nobody_knows_the_cards_nothing_is_forgotten(case: Case) -> None:
    assert follow([case], [serving_pod("s")], {}, chosen=None, known=False, now=NOW) == (case,)


def test_a_suspicion_has_no_card() -> None:
    (case,) = follow([], [serving_pod("a")], {"node-1": [serving_pod("a")]}, chosen=None, known=True, now=NOW)
    assert case == Case(node="node-1", card="", pod="a", since=NOW)


@pytest.mark.parametrize(
    ("case", "ledger", "expected"),
    [
        (replace(SEEN, since=NOW - SETTLE_S), cards(), True),
        (replace(SEEN, since=NOW - SETTLE_S + 1), cards(), False),
        (replace(SEEN, since=NOW - SETTLE_S), cards(allocatable=0), False),
        (replace(SEEN, since=NOW - PLUGIN_S), cards(allocatable=0), True),
        (CHOSEN, cards(), False),
        (replace(SEEN, card="c1"), cards(), False),
    ],
)
def test_a_pod_may_be_chosen_once_its_card_has_been_sick_for_long_enough(
    case: Case, ledger: Known[CardLedger], expected: bool
) -> None:
    assert relief.may_be_chosen(sick(), [case], ledger, now=NOW) is expected


@pytest.mark.parametrize("stored", [None, 7, "x", [7], [{}], [{"node": "n", "card": "c", "pod": "p", "since": "then"}]])
def test_a_stored_case_that_cannot_be_read_is_none(stored: Any) -> None:
    assert relief.read({"sickCards": stored}) == ()


names = st.sampled_from(["", "a", "b"])
seconds = st.integers(min_value=0, max_value=2_000_000_000).map(float)


@given(st.lists(st.builds(Case, node=names, card=names, pod=names, since=seconds, replaced_at=st.none() | seconds)))
def test_cases_are_read_back_as_they_were_written(cases: list[Case]) -> None:
    assert relief.read(relief.write(cases)) == tuple(cases)
