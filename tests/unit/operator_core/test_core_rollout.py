"""The rollout table, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from imageedit_operator.core.actions import Action, ScaleDeployment, SetGate
from imageedit_operator.core.fleet import Fleet, assemble, first_trouble
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.resize import Group
from imageedit_operator.core.rollout import Step, Terms, step
from unit.operator_core.builders import (
    CARD,
    OLD,
    SILENT,
    deployment,
    draining_pod,
    known,
    pending_pod,
    serving_pod,
    starting_pod,
)

NOW = 1100.0
UNKNOWN = Unknown(reason="Forbidden", message="nodes may not be read")
UNFINISHED = known(draining=True, accepting=False, running=1, revision_hash=OLD)


def free(count: int) -> Known[CardLedger]:
    return Known(value=CardLedger(allocatable=8, requested=8 - count))


def old(name: str = "old-1", **changes: object) -> ObservedPod:
    return serving_pod(name, revision_hash=OLD, **changes)


BOTH = [old("a"), old("b")]
LEAVING = draining_pod("b", revision_hash=OLD, report=UNFINISHED)


def fleet(new: Sequence[ObservedPod], olds: Sequence[ObservedPod], **changes: int) -> Fleet:
    return Fleet(
        wanted=Group(deployment=deployment(changes.get("new_replicas", len(new))), pods=tuple(new)),
        old=(Group(deployment=deployment(len(olds), OLD), pods=tuple(olds)),) if olds else (),
    )


def stepped(
    found: Fleet,
    *,
    wanted: int = 2,
    strategy: str = "Auto",
    cards: Known[CardLedger] | Unknown = UNKNOWN,
    hold: Hold | None = None,
    stepped_at: float = 0.0,
) -> Step:
    terms = Terms(strategy=strategy, cards_per_pod=1, cards=cards, resource_name=CARD, hold=hold, stepped_at=stepped_at)
    return step(found, terms, wanted=wanted, now=NOW)


def drains(made: Step) -> list[str]:
    return [action.pod for action in made.actions if isinstance(action, SetGate) and action.reason == "Draining"]


def scales(actions: Sequence[Action]) -> dict[str, int]:
    return {
        action.uid.removeprefix("uid-"): action.replicas for action in actions if isinstance(action, ScaleDeployment)
    }


NEW = "aaaaaaaaaa"


def waiting(since: float = NOW - 1) -> ObservedPod:
    return pending_pod("new-1", unschedulable_since=since)


def no_volume() -> ObservedPod:
    return replace(waiting(NOW - 999), unschedulable_message='persistentvolumeclaim "models" not found')


def test_the_first_revision_starts_all_its_pods() -> None:
    assert scales(stepped(fleet([], []), wanted=3).actions) == {NEW: 3}


@pytest.mark.parametrize("strategy", ["Auto", "Surge", "InPlace"])
def test_one_replacement_is_created_before_any_drain(strategy: str) -> None:
    made = stepped(fleet([], [old("a"), old("b")]), strategy=strategy)
    assert scales(made.actions) == {NEW: 1}
    assert drains(made) == []


@pytest.mark.parametrize("strategy", ["Auto", "Surge", "InPlace"])
def test_the_next_replacement_waits_for_the_one_before(strategy: str) -> None:
    made = stepped(fleet([starting_pod("n")], [old("a"), LEAVING]), strategy=strategy)
    assert scales(made.actions) == {}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One look at a rollout of two pods and what follows."""

    strategy: str = "Auto"
    new: Sequence[ObservedPod] = ()
    olds: Sequence[ObservedPod] = (old("a"), old("b"))
    cards: Known[CardLedger] | Unknown = UNKNOWN
    hold: Hold | None = None
    leaving: int
    mode: str


PAUSED = Hold(reason="Paused", message="")
CANARY = Hold(reason="CanaryHold", message="", pods=1)
BAD = starting_pod("n", report=known(check_ok=False))
ROWS = {
    "surge, starts": Row(new=[starting_pod("n")], cards=free(0), leaving=0, mode="Surge"),
    "surge, warm": Row(new=[serving_pod("n")], cards=free(0), leaving=1, mode="Surge"),
    "no card": Row(new=[waiting()], cards=free(0), leaving=1, mode="InPlace"),
    "no card, one leaves": Row(new=[waiting()], olds=[old("a"), LEAVING], cards=free(0), leaving=0, mode="InPlace"),
    "no card, one of two is left": Row(new=[waiting()], olds=[old("a")], cards=free(0), leaving=0, mode="InPlace"),
    "one of two is left, long": Row(
        new=[waiting(NOW - 120)], olds=[old("a")], cards=free(0), leaving=1, mode="InPlace"
    ),
    "card free": Row(new=[waiting()], cards=free(1), leaving=0, mode="Surge"),
    "card free, in vain": Row(new=[waiting(NOW - 60)], cards=free(1), leaving=1, mode="InPlace"),
    "cards unknown": Row(new=[waiting()], leaving=0, mode="Surge"),
    "cards unknown, long": Row(new=[waiting(NOW - 60)], leaving=1, mode="InPlace"),
    "no card, one starts": Row(new=[starting_pod("n"), waiting()], cards=free(0), leaving=0, mode="InPlace"),
    "Surge waits": Row(strategy="Surge", new=[waiting(NOW - 999)], cards=free(0), leaving=0, mode="Surge"),
    "Surge, warm": Row(strategy="Surge", new=[serving_pod("n")], cards=free(0), leaving=1, mode="Surge"),
    "InPlace at once": Row(strategy="InPlace", new=[starting_pod("n")], cards=free(3), leaving=1, mode="InPlace"),
    "InPlace, one leaves": Row(
        strategy="InPlace", new=[starting_pod("n")], olds=[old("a"), LEAVING], cards=free(3), leaving=0, mode="InPlace"
    ),
    "Recreate": Row(strategy="Recreate", cards=free(3), leaving=2, mode="Recreate"),
    "no card, and none that old pods could give": Row(
        new=[waiting(NOW - 999)], olds=[old("a", cards={"other/card": 1})], cards=free(0), leaving=0, mode="InPlace"
    ),
    "no card, and old pods, all there, could give none": Row(
        new=[waiting(NOW - 999)], olds=[old(name, cards={"other/card": 1}) for name in "ab"], leaving=0, mode="Surge"
    ),
    "no volume": Row(new=[no_volume()], cards=free(0), leaving=0, mode="Surge"),
    "no volume, InPlace": Row(strategy="InPlace", new=[no_volume()], cards=free(0), leaving=0, mode="InPlace"),
    "no card, a pod is missing": Row(new=[waiting()], olds=[old("a")], cards=free(0), leaving=0, mode="InPlace"),
    "paused": Row(hold=PAUSED, new=[serving_pod("n")], olds=[old("a")], leaving=0, mode="Paused"),
    "paused, the warm one replaces": Row(hold=PAUSED, new=[serving_pod("n")], leaving=1, mode="Paused"),
    "paused, no card": Row(hold=PAUSED, new=[waiting()], cards=free(0), leaving=0, mode="Paused"),
    "canary, starts": Row(hold=CANARY, new=[starting_pod("n")], leaving=0, mode="Surge"),
    "canary, no card": Row(hold=CANARY, new=[waiting()], cards=free(0), leaving=1, mode="InPlace"),
    "canary, warm": Row(hold=CANARY, new=[serving_pod("n")], leaving=1, mode="Canary"),
    "canary, holds": Row(hold=CANARY, new=[serving_pod("n")], olds=[old("a")], leaving=0, mode="Canary"),
    "canary, bad": Row(hold=CANARY, new=[BAD], leaving=0, mode="Stopped"),
    "Recreate, bad new pod": Row(strategy="Recreate", new=[BAD], leaving=0, mode="Stopped"),
    "bad new pod": Row(new=[BAD], cards=free(3), leaving=0, mode="Stopped"),
    "bad new pod, no card": Row(strategy="InPlace", new=[BAD], cards=free(0), leaving=0, mode="Stopped"),
    "bad beside a warm one": Row(new=[serving_pod("m"), BAD], cards=free(0), leaving=1, mode="Stopped"),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_old_pods_drain_by_the_table(row: Row) -> None:
    made = stepped(fleet(row.new, row.olds), strategy=row.strategy, cards=row.cards, hold=row.hold)
    assert (len(drains(made)), made.mode) == (row.leaving, row.mode)


@pytest.mark.parametrize(
    ("row", "soon"),
    [
        (Row(new=[waiting()], cards=UNKNOWN, leaving=0, mode=""), True),
        (Row(new=[waiting()], cards=free(1), leaving=0, mode=""), True),
        (Row(new=[waiting()], cards=free(0), leaving=1, mode=""), False),
        (Row(new=[waiting(NOW - 60)], leaving=1, mode=""), False),
        (Row(new=[waiting()], olds=[old("a"), LEAVING], leaving=0, mode=""), False),
        (Row(new=[waiting()], olds=[old("a")], leaving=0, mode=""), False),
        (Row(new=[waiting()], olds=[old(n, cards={"other/card": 1}) for n in "ab"], leaving=0, mode=""), False),
        (Row(new=[no_volume()], leaving=0, mode=""), False),
        (Row(new=[starting_pod("n")], leaving=0, mode=""), False),
        (Row(new=[pending_pod("n", unschedulable=False)], leaving=0, mode=""), False),
        (Row(strategy="Surge", new=[waiting()], leaving=0, mode=""), False),
    ],
)
def test_an_old_pod_gives_way_soon_by_the_table(row: Row, soon: bool) -> None:
    assert stepped(fleet(row.new, row.olds), strategy=row.strategy, cards=row.cards).soon is soon


def test_a_step_just_made_gives_the_replacement_time_to_take_the_card() -> None:
    seen = fleet([waiting(NOW - 900)], BOTH)
    assert drains(stepped(seen, cards=free(1), stepped_at=NOW - 59)) == []
    assert len(drains(stepped(seen, cards=free(1), stepped_at=NOW - 60))) == 1


def test_paused_grows_the_revision_that_serves() -> None:
    assert scales(stepped(fleet([], BOTH), wanted=3, hold=PAUSED).actions) == {OLD: 3}


def test_paused_shrinks_old_pods_first_and_leaves_one_of_several() -> None:
    assert drains(stepped(fleet([serving_pod("n")], [old("a"), old("b", ready=False)]), hold=PAUSED)) == ["b"]
    assert drains(stepped(fleet([serving_pod("n"), serving_pod("m")], [old("a")]), hold=PAUSED)) == ["m"]
    assert drains(stepped(fleet([serving_pod("n")], [old("a")]), wanted=1, hold=PAUSED)) == ["a"]


def test_an_old_pod_that_restarts_while_a_rollout_stands_is_left_to_heal() -> None:
    cold = starting_pod("a", revision_hash=OLD)
    assert scales(stepped(fleet([BAD], [cold, old("b")])).actions) == {}
    assert scales(stepped(fleet([], [cold, old("b")]), hold=PAUSED).actions) == {}


def test_a_canary_grows_old_pods_even_before_it_is_warm() -> None:
    assert scales(stepped(fleet([starting_pod("n")], BOTH), wanted=5, hold=CANARY).actions) == {OLD: 4}


def test_recreate_starts_nothing_before_the_last_old_pod_left() -> None:
    assert NEW not in scales(stepped(fleet([], [LEAVING]), strategy="Recreate").actions)
    assert scales(stepped(fleet([], []), strategy="Recreate").actions) == {NEW: 2}


def test_a_terminating_pod_is_waited_for_because_it_holds_a_card() -> None:
    found = fleet([waiting()], BOTH)
    leaving = (old("gone", terminating=True),)
    assert drains(stepped(replace(found, terminating=leaving), cards=free(0))) == []


def test_a_pod_that_never_gets_away_does_not_hold_up_a_rollout_for_ever() -> None:
    leaving = (old("lost", terminating=True),)
    almost = replace(fleet([waiting(NOW - 689)], BOTH), terminating=leaving)
    assert drains(stepped(almost, cards=free(0))) == []
    long = replace(fleet([waiting(NOW - 690)], BOTH), terminating=leaving)
    assert len(drains(stepped(long, cards=free(0)))) == 1


def test_a_stopped_rollout_adds_pods_only_of_the_revision_that_serves() -> None:
    assert scales(stepped(fleet([BAD], [old("a"), old("b")])).actions) == {}
    assert scales(stepped(fleet([BAD], [old("a")]), wanted=4).actions) == {OLD: 3}


def test_old_pods_that_do_not_exist_yet_are_no_longer_wanted() -> None:
    olds = Group(deployment=deployment(3, OLD), pods=(old("a"), old("b")))
    found = Fleet(wanted=Group(deployment=deployment(0), pods=()), old=(olds,))
    assert scales(stepped(found).actions)[OLD] == 2


@pytest.mark.parametrize(
    "pod",
    [
        old(
            "x",
            gate=None,
            ready=False,
            started=False,
            container_id="",
            report=SILENT,
            waiting_reason="CrashLoopBackOff",
        ),
        pending_pod("x", revision_hash=OLD),
        starting_pod("x", revision_hash=OLD),
    ],
)
def test_an_old_pod_that_cannot_serve_goes_at_once_outside_the_budget(pod: ObservedPod) -> None:
    made = stepped(fleet([starting_pod("n")], [pod, old("a")]))
    assert scales(made.actions)[OLD] == 1
    assert drains(made) == []


def test_a_fix_rolls_although_nothing_old_serves() -> None:
    dead = [starting_pod("x", revision_hash=OLD, last_exit_code=1), starting_pod("y", revision_hash=OLD)]
    assert scales(stepped(fleet([], dead)).actions)[OLD] == 0


def test_an_old_pod_that_is_not_ready_just_now_is_not_drained_before_its_replacement_is_warm() -> None:
    glitch = old("a", ready=False)
    assert drains(stepped(fleet([starting_pod("n")], [glitch, old("b")]))) == []
    assert drains(stepped(fleet([serving_pod("n")], [glitch, old("b")]))) == ["a"]


def test_a_lower_total_drains_old_pods_without_waiting() -> None:
    made = stepped(fleet([starting_pod("n", last_exit_code=1)], [old("a"), old("b"), old("c")]), wanted=1)
    assert len(drains(made)) == 2


def test_a_higher_total_grows_the_wanted_revision() -> None:
    made = stepped(fleet([serving_pod("n")], [old("a")]), wanted=4)
    assert scales(made.actions) == {NEW: 3}


def test_the_last_warm_pod_by_plan_is_an_outage() -> None:
    assert stepped(fleet([waiting()], [old("a")]), wanted=1, cards=free(0)).outage
    assert not stepped(fleet([waiting()], BOTH), wanted=2, cards=free(0)).outage
    assert not stepped(fleet([serving_pod("n")], [old("a")]), wanted=1).outage


def test_the_first_trouble_is_the_same_in_any_order() -> None:
    pods = [starting_pod("b", last_exit_code=1), starting_pod("a", last_exit_code=2)]
    found = first_trouble(fleet(pods, []))
    assert found is not None
    assert found == first_trouble(fleet(pods[::-1], []))


LOST: dict[str, object] = {"ready": False, "report": SILENT, "lost": True}


def test_an_old_pod_on_a_lost_node_leaves_outside_the_budget_while_another_one_serves() -> None:
    made = stepped(fleet([starting_pod("n")], [old("a", **LOST), old("b")]))
    assert drains(made) == ["a"]


def test_old_pods_stay_when_every_node_seems_lost() -> None:
    made = stepped(fleet([waiting(NOW - 500)], [old("a", **LOST), old("b", **LOST)]), cards=free(0))
    assert drains(made) == []


def test_an_old_pod_on_a_lost_node_is_replaced_by_a_warm_one_elsewhere() -> None:
    made = stepped(fleet([serving_pod("n")], [old("a", **LOST)]), wanted=1, cards=free(0))
    assert drains(made) == ["a"]


def test_a_card_on_a_lost_node_is_not_waited_for() -> None:
    found = fleet([waiting()], BOTH)
    leaving = (old("gone", terminating=True, **LOST),)
    assembled = assemble(NEW, (found.wanted, *found.old), leaving)
    assert assembled is not None
    assert assembled.terminating == ()
