"""How many pods of which revision: the next step from the old revisions to the wanted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from imageedit_operator.core import drain, placement, relief
from imageedit_operator.core.actions import Action, SetDeletionCost, SetGate
from imageedit_operator.core.fleet import Fleet, first_trouble
from imageedit_operator.core.hold import Hold
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_live, is_serving
from imageedit_operator.core.relief import Relief
from imageedit_operator.core.resize import Group, remove, resize
from imageedit_operator.core.stand import settle, stand


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What a step goes by, besides the pods."""

    strategy: str
    cards_per_pod: int
    cards: Known[CardLedger] | Unknown
    resource_name: str = ""
    hold: Hold | None = None
    stepped_at: float = 0.0
    """When the rollout moved last, as the status remembers it."""
    relief: Relief | None = None
    """The pod on a sick card that gives way now."""
    whole: bool = True
    """The wanted revision's Deployment has all of its pod template."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What to do now, and which way the rollout goes."""

    actions: tuple[Action, ...]
    mode: str
    """Steady, Surge, InPlace, Recreate, Template, Stopped, Paused, Prefetch or Canary."""
    outage: bool = False
    """This step drains the last warm pod before its replacement is warm."""
    soon: bool = False
    """An old pod gives way to the replacement once that has found no card for the grace time."""


# | strategy | the replacement                          | old pods that may drain now                         |
# | any      | its Deployment lacks spec.template       | none, it stands without pods of the new revision    |
# | any      | in trouble while an old pod serves       | none, it stands (a lower total still drains)        |
# | any      | paused, copies missing, or canary holds  | none, it stands (a lower total still drains)        |
# | any      | (old pods that cannot serve)             | all of them, at once, without drain                 |
# | any      | (old pods on a lost node, others serve)  | all of them; nothing waits for their drain          |
# | Auto     | has or can have a card                   | as many as warm pods replace                        |
# | Auto     | unschedulable and no card is free        | one, when nothing else is leaving or starting       |
# | Auto     | unschedulable for a minute all the same  | one, when nothing else is leaving or starting       |
# | Auto     | the same, and a pod is missing already   | none for one or two minutes: a card may come        |
# | Auto     | the same, old pods hold no such card     | none: their place would not help                    |
# | Auto     | finds no place, whatever leaves          | none: it lacks a volume, or no node is for it       |
# | Surge    | any                                      | as many as warm pods replace; waits for the card    |
# | InPlace  | exists                                   | one, when nothing else is leaving                   |
# | InPlace  | finds no place, whatever leaves          | none: it lacks a volume, or no node is for it       |
# | Recreate | is created after the last old pod left   | all                                                 |
# Where nothing is older, a pod on a sick card is replaced: see relief.
# In every row but the last the replacement is created first, one at a time, and there are
# never more than wanted + 1 pods. With a canary the rows apply up to its number of pods, and
# as many old pods stay as are wanted beside it.
def step(fleet: Fleet, terms: Terms, *, wanted: int, now: float) -> Step:
    """The next actions towards `wanted` pods, all of the wanted revision."""
    hold = terms.hold
    if not terms.whole:
        return Step(actions=stand(fleet, wanted=wanted, most_new=0, keep_old=0, now=now), mode="Template")
    if _is_stopped(fleet):
        keep = hold.old_pods(wanted) if hold is not None else 0
        return Step(actions=stand(fleet, wanted=wanted, most_new=wanted, keep_old=keep, now=now), mode="Stopped")
    if hold is not None and _is_held(fleet, hold, wanted):
        most = hold.new_pods(wanted) if fleet.old_serving else wanted
        actions = stand(fleet, wanted=wanted, most_new=most, keep_old=hold.old_pods(wanted), now=now)
        return Step(actions=actions, mode=_HELD[hold.reason])
    return _advance(fleet, terms, wanted=wanted, now=now)


_HELD = {"Paused": "Paused", "Prefetching": "Prefetch", "CanaryHold": "Canary"}


def stands(fleet: Fleet | None, terms: Terms, *, wanted: int) -> bool:
    """Whether no pod is replaced by one of another revision for now: a template, a bad pod, a pause, a canary."""
    if fleet is None:
        return False
    held = terms.hold is not None and _is_held(fleet, terms.hold, wanted)
    return not terms.whole or _is_stopped(fleet) or held


def _is_stopped(fleet: Fleet) -> bool:
    return first_trouble(fleet) is not None and bool(fleet.old_serving)


def _is_held(fleet: Fleet, hold: Hold, wanted: int) -> bool:
    return hold.pods is None or fleet.serving >= hold.new_pods(wanted)


def _advance(fleet: Fleet, terms: Terms, *, wanted: int, now: float) -> Step:
    keep = terms.hold.old_pods(wanted) if terms.hold is not None else 0
    blocked = placement.is_blocked(
        fleet.wanted.live,
        cards_per_pod=terms.cards_per_pod,
        cards=terms.cards,
        stepped_at=terms.stepped_at,
        now=now,
    )
    # A mode tells how pods are replaced: not by a place that would not help.
    blocked = blocked and placement.gives_way(fleet.old_live, resource_name=terms.resource_name)
    spare = max(0, len(fleet.old_pods) - keep)
    useless = sorted(fleet.useless, key=drain.victim_rank)[:spare]
    leaving = min(spare - len(useless), _may_drain(fleet, terms, wanted=wanted, blocked=blocked, now=now))
    victims = sorted(fleet.old_live, key=drain.victim_rank)[:leaving]
    if fleet.old_usable < keep:
        actions = [*settle(fleet.old, keep, limit=max(0, wanted + 1 - fleet.wanted.usable), now=now)]
    else:
        actions = [action for group in fleet.old for action in _remove_old(group, [*useless, *victims], keep, now=now)]
    goal, limit = _goal(fleet, terms, wanted=wanted)
    actions += resize(fleet.wanted, goal, limit=limit, now=now)
    actions += _give_way(terms.relief, actions)
    goes_dark = fleet.serving == 0 and bool(fleet.old_serving) and all(pod in victims for pod in fleet.old_serving)
    return Step(
        actions=tuple(actions),
        mode=_mode(fleet, terms.strategy, wanted=wanted, blocked=blocked),
        outage=wanted > 0 and goes_dark,
        soon=not blocked and _gives_way_soon(fleet, terms, wanted=wanted),
    )


def _may_drain(fleet: Fleet, terms: Terms, *, wanted: int, blocked: bool, now: float) -> int:
    """How many old pods may begin to drain now."""
    old = len(fleet.old_live)
    if terms.strategy == "Recreate":
        return old
    replaced = min(old, max(0, fleet.serving + old - wanted))
    if replaced or terms.strategy == "Surge" or fleet.draining or (fleet.terminating and not _waited_long(fleet, now)):
        return replaced
    if not placement.gives_way(fleet.old_live, resource_name=terms.resource_name):
        return 0
    warm = fleet.serving + len(fleet.old_serving)
    spent = placement.budget_spent(fleet.wanted.live, warm=warm, wanted=wanted, stepped_at=terms.stepped_at, now=now)
    in_place = blocked and not spent and not placement.starting(fleet.wanted.live)
    if terms.strategy == "InPlace":
        exists = fleet.wanted.usable > 0 and placement.may_be_placed(fleet.wanted.live)
        in_place = in_place or (exists and fleet.wanted.usable + old > wanted)
    return min(old, 1) if in_place else 0


# | strategy | the replacement                       | old pods                                 | soon |
# | Auto     | finds no place, its grace time runs   | one could give way, and none is missing  | yes  |
# | Auto     | finds no place, its grace time runs   | one leaves, or is missing, or none helps | no   |
# | Auto     | has its place, or nobody looked       | any                                      | no   |
# | other    | any                                   | any                                      | no   |
# Where one is missing already the next one stays as long as it can: somebody had better free a card.
def _gives_way_soon(fleet: Fleet, terms: Terms, *, wanted: int) -> bool:
    """Whether an old pod gives way to the replacement that seeks a place, once its grace time is over."""
    if terms.strategy != "Auto" or placement.unschedulable_since(fleet.wanted.live) is None:
        return False
    if fleet.draining or fleet.terminating or placement.starting(fleet.wanted.live):
        return False
    missing = fleet.serving + len(fleet.old_serving) < wanted
    return not missing and placement.gives_way(fleet.old_live, resource_name=terms.resource_name)


def _goal(fleet: Fleet, terms: Terms, *, wanted: int) -> tuple[int, int]:
    """Live pods of the wanted revision, and the most replicas that its Deployment may have for it."""
    usable, old = fleet.wanted.usable, len(fleet.old_live)
    if fleet.old_total == 0:
        return relief.goal(fleet, terms.relief, wanted)
    if terms.strategy == "Recreate":
        return min(usable, wanted), 0
    goal = max(usable, wanted - old)
    if old and usable == fleet.serving:
        goal = max(goal, usable + 1)
    most = wanted if terms.hold is None else min(wanted, terms.hold.new_pods(wanted))
    return min(goal, most), max(0, wanted + 1 - fleet.old_total)


def _give_way(found: Relief | None, decided: Sequence[Action]) -> tuple[Action, ...]:
    """Drain a pod whose replacement can only run in its place; a pod that leaves anyway needs nothing."""
    if found is None or found.way != "InPlace" or not is_live(found.pod):
        return ()
    leaves = any(isinstance(action, SetGate | SetDeletionCost) and action.uid == found.pod.uid for action in decided)
    return () if leaves else drain.begin(found.pod)


def _mode(fleet: Fleet, strategy: str, *, wanted: int, blocked: bool) -> str:
    if not fleet.old:
        return "Steady"
    if strategy != "Auto":
        return strategy
    dipped = fleet.serving + len(fleet.old_live) < wanted
    return "InPlace" if blocked or dipped else "Surge"


def _remove_old(group: Group, victims: list[ObservedPod], keep: int, *, now: float) -> tuple[Action, ...]:
    chosen = [pod for pod in group.live if pod in victims]
    return remove(group, chosen, absent=0 if keep else group.missing, now=now)


def _waited_long(fleet: Fleet, now: float) -> bool:
    since = placement.unschedulable_since(fleet.wanted.live)
    patience_s = fleet.wanted.drain_timeout_s + placement.LEAVING_MARGIN_S
    return since is not None and now - since >= patience_s


def is_steady(fleet: Fleet, wanted: int) -> bool:
    """All wanted pods serve, all of the wanted revision, and nothing else is there."""
    pods = fleet.wanted.pods
    return not fleet.old and len(pods) == wanted == fleet.wanted.deployment.replicas and all(map(is_serving, pods))
