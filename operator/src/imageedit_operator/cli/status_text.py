"""A status view as a tree that is read in five seconds. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from imageedit_operator.cli import once
from imageedit_operator.cli.condition_view import ConditionView
from imageedit_operator.cli.pod_view import PodView, tone
from imageedit_operator.cli.roles import TONES
from imageedit_operator.cli.screen import Branch, Cell, Screen, aligned, duration, tree
from imageedit_operator.cli.status_view import CardsView, RevisionView, StatusView


def text(views: Iterable[StatusView], screen: Screen) -> str:
    """One tree for each resource, an empty line between."""
    return "\n\n".join("\n".join(tree(_root(once.shortened(view)), screen)) for view in views)


def _root(view: StatusView) -> Branch:
    bad = any(condition.level == "bad" for condition in view.conditions)
    told = "good" if view.ready else "bad" if bad else "warn"
    wanted = "?" if view.desired_pods is None else view.desired_pods
    head = (
        Cell(f"{view.namespace}/{view.name}", "bold"),
        Cell(view.phase, told),
        Cell(f"{view.warm_pods} of {wanted} pods warm"),
    )
    below = [
        *_not_fine(view.conditions),
        *aligned(_revision(revision) for revision in view.revisions),
        _cards(view.cards),
        *_decisions(view),
        *_fine(view.conditions),
    ]
    return Branch(cells=head, words=view.summary, below=tuple(below))


def _not_fine(conditions: Iterable[ConditionView]) -> tuple[Branch, ...]:
    """Bad conditions in full. What is only on the way is in the summary already, except where it waits."""
    shown = [view for view in conditions if view.level == "bad"]
    return aligned(
        Branch(
            cells=(
                Cell(f"! {view.type} {view.status}", "bad"),
                Cell("" if view.since_s is None else duration(view.since_s), "dim"),
            ),
            words=f"{view.reason}: {view.message}",
        )
        for view in shown
    )


def _fine(conditions: Iterable[ConditionView]) -> tuple[Branch, ...]:
    others = [view for view in conditions if view.level != "bad"]
    words = ", ".join(f"{view.type} {view.status} ({view.reason})" for view in others)
    return (Branch(cells=(Cell("conditions", "dim"),), words=words, tone="dim"),) if others else ()


def _revision(view: RevisionView) -> Branch:
    count = "no pods" if not view.pods else "1 pod" if len(view.pods) == 1 else f"{len(view.pods)} pods"
    cells = (Cell(view.role, TONES[view.role]), Cell(view.model, "bold"), Cell(view.hash, "dim"), Cell(count))
    return Branch(cells=cells, below=aligned(_pod(pod) for pod in view.pods))


def _pod(view: PodView) -> Branch:
    work = "" if view.running is None or view.waiting is None else f"{view.running} running, {view.waiting} waiting"
    cards = "".join(f"{count}x {name.rpartition('/')[2]}" for name, count in view.cards.items())
    restarts = "" if not view.restarts else "1 restart" if view.restarts == 1 else f"{view.restarts} restarts"
    cells = (
        Cell(view.name),
        Cell(view.state, tone(view)),
        Cell(view.node or "no node", "" if view.node else "dim"),
        Cell(cards, "dim"),
        Cell(work),
        Cell(restarts, "warn"),
        Cell(duration(view.age_s), "dim"),
    )
    below = (Branch(words=view.trouble, tone="bad"),) if view.trouble else ()
    return Branch(cells=cells, below=below)


def _cards(view: CardsView) -> Branch:
    if not view.resource_name:
        return Branch(cells=(Cell("cards", "dim"),), words="pods ask for none")
    free = f"{view.free} free of {view.allocatable}" if view.free is not None else f"free ones unknown ({view.message})"
    free = view.nowhere or free
    missing = f"{view.missing} missing, " if view.missing else ""
    words = f"{view.resource_name}: {view.needed} needed, {view.held} held, {missing}{free}"
    return Branch(cells=(Cell("cards", "dim"),), words=words, tone="bad" if view.missing and not view.free else "")


def _decisions(view: StatusView) -> tuple[Branch, ...]:
    if not view.decisions:
        return ()
    below = aligned(
        Branch(
            cells=(Cell(f"{duration(item.age_s)} ago", "dim"), Cell(item.reason, "warn" if item.warning else "")),
            words=item.message,
        )
        for item in view.decisions
    )
    return (Branch(cells=(Cell("last decisions", "dim"),), below=below),)
