"""How many pods of which revision: the next step from the old revisions to the wanted one."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_operator.core import drain
from imageedit_operator.core.actions import Action
from imageedit_operator.core.observed import CardLedger, Known, ObservedPod, Unknown
from imageedit_operator.core.pods import Trouble, is_serving, trouble
from imageedit_operator.core.resize import Group, remove, resize

UNSCHEDULABLE_GRACE_S = 60.0
"""How long a replacement may stay unschedulable while cards seem free, before an old pod gives way."""


LEAVING_PATIENCE_S = drain.DRAIN_TIMEOUT_S + 90.0
"""How long a replacement waits for the card of a pod that is on its way out. A pod on a lost
node never gets there, and must not hold up the rollout for ever."""


LAST_POD_GRACE_S = 120.0
"""How long the last warm pod of several keeps its card while another card, gone or sick, may come back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The pods of a resource, ordered by revision."""

    wanted: Group
    """The wanted revision; its Deployment exists."""
    old: tuple[Group, ...]
    """Other revisions that still have replicas or pods."""
    terminating: tuple[ObservedPod, ...] = ()
    """Pods on their way out that still hold a card."""

    @property
    def serving(self) -> int:
        """Warm, ready pods of the wanted revision."""
        return sum(is_serving(pod) for pod in self.wanted.live)

    @property
    def old_live(self) -> tuple[ObservedPod, ...]:
        """Old pods that serve or may serve again; the ones that cannot are removed outside the budget."""
        return tuple(pod for group in self.old for pod in group.live if not drain.removable_at_once(pod))

    @property
    def old_total(self) -> int:
        """Old pods that count against the ceiling of pods."""
        return sum(max(len(group.pods), group.deployment.replicas) for group in self.old)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What to do now, and which way the rollout goes."""

    actions: tuple[Action, ...]
    mode: str
    """Steady, Surge, InPlace, Recreate or Stopped."""
    outage: bool = False
    """This step drains the last warm pod before its replacement is warm."""


# | strategy | the replacement                          | old pods that may drain now                         |
# | any      | in trouble while an old pod serves       | none, it stops (a lower total still drains)         |
# | any      | (old pods that cannot serve)             | all of them, at once, without drain                 |
# | Auto     | has or can have a card                   | as many as warm pods replace                        |
# | Auto     | unschedulable and no card is free        | one, when nothing else is leaving or starting       |
# | Auto     | unschedulable for a minute all the same  | one, when nothing else is leaving or starting       |
# | Auto     | the same, and one of several is warm     | none before two minutes: a card may come back       |
# | Surge    | any                                      | as many as warm pods replace; waits for the card    |
# | InPlace  | exists                                   | one, when nothing else is leaving                   |
# | Recreate | is created after the last old pod left   | all                                                 |
# In every row but the last the replacement is created first, one at a time, and there are
# never more than wanted + 1 pods.
def step(
    fleet: Fleet, *, wanted: int, strategy: str, cards_per_pod: int, cards: Known[CardLedger] | Unknown, now: float
) -> Step:
    """The next actions towards `wanted` pods, all of the wanted revision."""
    blocked = is_blocked(fleet, cards_per_pod=cards_per_pod, cards=cards, now=now)
    stopped = first_trouble(fleet) is not None and any(is_serving(pod) for pod in fleet.old_live)
    leaving = _may_drain(fleet, wanted=wanted, strategy=strategy, blocked=blocked, stopped=stopped, now=now)
    victims = sorted(fleet.old_live, key=drain.victim_rank)[:leaving]
    actions = [action for group in fleet.old for action in _remove_old(group, victims, now=now)]
    goal, limit = _goal(fleet, wanted=wanted, strategy=strategy, stopped=stopped)
    actions += resize(fleet.wanted, goal, limit=limit, now=now)
    mode = _mode(fleet, wanted=wanted, strategy=strategy, blocked=blocked, stopped=stopped)
    serving = [pod for pod in fleet.old_live if is_serving(pod)]
    goes_dark = fleet.serving == 0 and bool(serving) and all(pod in victims for pod in serving)
    return Step(
        actions=tuple(actions),
        mode=mode,
        outage=wanted > 0 and goes_dark,
    )


def first_trouble(fleet: Fleet) -> Trouble | None:
    """The first pod of the wanted revision that waiting does not cure, by name."""
    found = (trouble(pod) for pod in sorted(fleet.wanted.live, key=lambda pod: pod.name))
    return next((item for item in found if item is not None), None)


def free_pods(cards: Known[CardLedger] | Unknown, cards_per_pod: int) -> int | None:
    """How many more pods could get their cards now; None when nobody knows, or no card is asked for."""
    if cards_per_pod == 0 or isinstance(cards, Unknown):
        return None
    return cards.value.free // cards_per_pod


# | unschedulable pod of the wanted revision | free cards | blocked              |
# | none                                     | any        | no                   |
# | yes                                      | known, 0   | yes                  |
# | yes                                      | >= 1       | after the grace time |
# | yes                                      | unknown    | after the grace time |
# | yes                                      | none asked | after the grace time |
def is_blocked(fleet: Fleet, *, cards_per_pod: int, cards: Known[CardLedger] | Unknown, now: float) -> bool:
    """Whether the replacement can only run in the place of an old pod."""
    since = _unschedulable_since(fleet)
    if since is None:
        return False
    return free_pods(cards, cards_per_pod) == 0 or now - since >= UNSCHEDULABLE_GRACE_S


def _may_drain(fleet: Fleet, *, wanted: int, strategy: str, blocked: bool, stopped: bool, now: float) -> int:
    """How many old pods may begin to drain now."""
    old = len(fleet.old_live)
    if strategy == "Recreate":
        return old
    if stopped:
        return max(0, old - wanted)
    replaced = min(old, max(0, fleet.serving + old - wanted))
    if replaced or strategy == "Surge" or _draining(fleet) or (fleet.terminating and not _waited_long(fleet, now)):
        return replaced
    in_place = blocked and not _starting(fleet) and not _last_of_several(fleet, wanted=wanted, now=now)
    if strategy == "InPlace":
        in_place = in_place or (fleet.wanted.usable > 0 and fleet.wanted.usable + old > wanted)
    return min(old, 1) if in_place else 0


def _last_of_several(fleet: Fleet, *, wanted: int, now: float) -> bool:
    """One warm pod is left of more that are wanted, and its replacement has not waited long."""
    warm = fleet.serving + sum(is_serving(pod) for pod in fleet.old_live)
    since = _unschedulable_since(fleet)
    return wanted > 1 and warm == 1 and since is not None and now - since < LAST_POD_GRACE_S


def _goal(fleet: Fleet, *, wanted: int, strategy: str, stopped: bool) -> tuple[int, int]:
    """Live pods of the wanted revision, and the most replicas that its Deployment may have for it."""
    usable, old = fleet.wanted.usable, len(fleet.old_live)
    if fleet.old_total == 0:
        return wanted, wanted + len(fleet.wanted.draining)
    if strategy == "Recreate" or stopped:
        return min(usable, wanted), 0
    goal = max(usable, wanted - old)
    if old and usable == fleet.serving:
        goal = max(goal, usable + 1)
    return min(goal, wanted), max(0, wanted + 1 - fleet.old_total)


def _mode(fleet: Fleet, *, wanted: int, strategy: str, blocked: bool, stopped: bool) -> str:
    if not fleet.old:
        return "Steady"
    if strategy in ("Recreate", "InPlace", "Surge"):
        return "Stopped" if stopped and strategy != "Recreate" else strategy
    if stopped:
        return "Stopped"
    dipped = fleet.serving + len(fleet.old_live) < wanted
    return "InPlace" if blocked or dipped else "Surge"


def _remove_old(group: Group, victims: list[ObservedPod], *, now: float) -> tuple[Action, ...]:
    useless = [pod for pod in group.live if drain.removable_at_once(pod)]
    chosen = [pod for pod in group.live if pod in victims]
    return remove(group, [*useless, *chosen], absent=group.missing, now=now)


def _unschedulable_since(fleet: Fleet) -> float | None:
    since = [pod.unschedulable_since for pod in fleet.wanted.live if not pod.node and pod.unschedulable]
    return min(since, default=None)


def _waited_long(fleet: Fleet, now: float) -> bool:
    since = _unschedulable_since(fleet)
    return since is not None and now - since >= LEAVING_PATIENCE_S


def _starting(fleet: Fleet) -> bool:
    return any(pod.node and not is_serving(pod) for pod in fleet.wanted.live)


def _draining(fleet: Fleet) -> bool:
    groups = (fleet.wanted, *fleet.old)
    return any(group.draining for group in groups)
