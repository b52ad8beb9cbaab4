"""A plan view for people: what changes, how, for how long. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from imageedit_operator.cli.history_view import change_words
from imageedit_operator.cli.plan_view import PlanView
from imageedit_operator.cli.screen import Branch, Cell, Screen, aligned, duration, tree

MOST_STEPS = 12
"""Steps that are shown; JSON has all of them."""

SIGNS = {
    "create": ("+", "good"),
    "change": ("~", "warn"),
    "reuse": ("~", "warn"),
    "keep": ("=", "dim"),
    "delete": ("-", "bad"),
}

WAYS = {
    "None": "no pod is replaced",
    "Surge": "each replacement is warm before an old pod drains",
    "InPlace": "an old pod drains and gives its card to its replacement",
    "Recreate": "all old pods leave before the new ones start",
}


def text(views: Iterable[PlanView], screen: Screen) -> str:
    """One tree for each resource, with the diff of its pods below."""
    return "\n\n".join("\n".join([*tree(_root(view), screen), *_diff(view, screen)]) for view in views)


def _root(view: PlanView) -> Branch:
    what = "is created" if not view.exists else "changes" if view.changes or view.rolls else "does not change"
    if view.exists and view.rolls:
        what = "rolls out a revision"
    below = [
        *_listed("spec", [Branch(words=change_words(change)) for change in view.changes] if view.exists else []),
        _revision(view),
        *_listed("children", aligned(_child(view, at) for at in range(len(view.children)))),
        *_template(view),
        Branch(cells=(Cell("strategy"),), words=_strategy(view)),
        Branch(cells=(Cell("cards"),), words=_cards(view), tone="warn" if _short(view) else ""),
        Branch(cells=(Cell("outage"),), words=_outage(view), tone="bad" if view.outage_s else "good"),
        Branch(cells=(Cell("ends"),), words=_end(view), tone="" if view.outcome == "Complete" else "warn"),
        *_listed("warnings", [Branch(words=words, tone="warn") for words in view.warnings]),
        *_listed("steps", _steps(view)),
        *_listed("not seen", [Branch(words=words, tone="dim") for words in view.assumed]),
    ]
    return Branch(cells=(Cell(f"{view.namespace}/{view.name}", "bold"),), words=what, below=tuple(below))


def _listed(title: str, branches: Iterable[Branch]) -> tuple[Branch, ...]:
    below = tuple(branches)
    return (Branch(cells=(Cell(title),), below=below),) if below else ()


def _revision(view: PlanView) -> Branch:
    words = f"{view.revision}, in place of {view.revision_before}" if view.revision_before else view.revision
    if not view.rolls:
        words = f"{view.revision}, as before"
        words += ": what changes takes effect on the pods that run" if view.changes else ""
    return Branch(cells=(Cell("revision"),), words=words)


TEMPLATE = {
    "Fits": ("the apiserver takes it", "good"),
    "NotTried": ("not tried: no Deployment of this resource is there, or may be patched by you", "warn"),
    "TemplateConflict": ("sets what the operator sets", "bad"),
    "TemplateInvalid": ("the apiserver refuses it", "bad"),
}


def _template(view: PlanView) -> tuple[Branch, ...]:
    if not view.template:
        return ()
    words, tone = TEMPLATE[view.template]
    return (Branch(cells=(Cell("template"),), words=words, tone=tone),)


def _child(view: PlanView, at: int) -> Branch:
    child = view.children[at]
    sign, tone = SIGNS[child.action]
    return Branch(cells=(Cell(sign, tone), Cell(child.action, tone), Cell(f"{child.kind} {child.name}")))


def _strategy(view: PlanView) -> str:
    name = view.chosen if view.chosen in ("None", view.strategy) else f"{view.strategy} decides on {view.chosen}"
    return WAYS["None"] if view.chosen == "None" else f"{name}: {WAYS[view.chosen]}"


def _short(view: PlanView) -> bool:
    return view.cards.free is not None and view.cards.more > view.cards.free


def _cards(view: PlanView) -> str:
    cards = view.cards
    if not cards.resource_name:
        return "pods ask for none"
    if cards.nowhere:
        return f"{cards.resource_name}: {cards.held} held, {cards.more} more needed at one time; {cards.nowhere}"
    free = (
        f"{cards.free} free" if cards.free is not None else f"free ones unknown, the worst is assumed ({cards.message})"
    )
    return f"{cards.resource_name}: {cards.held} held, {cards.more} more needed at one time, {free}"


def _outage(view: PlanView) -> str:
    if view.outage_s is None:
        return "no pod is warm now" if view.exists else "it serves for the first time"
    if not view.outage_s:
        return f"none, at least {view.fewest_warm} of {view.pods} pods stay warm" if view.fewest_warm else "none"
    return f"about {view.outage_s:.0f} s without a warm pod"


def _end(view: PlanView) -> str:
    measured = f"{view.warmup_s:.0f} s a warm-up" + ("" if view.warmup_measured else " assumed, none was measured yet")
    if view.outcome == "Complete":
        return f"complete after about {duration(view.seconds)} ({measured})"
    return f"{view.outcome}: {view.message}"


def _steps(view: PlanView) -> tuple[Branch, ...]:
    shown = [
        Branch(cells=(Cell(f"+{duration(step.at_s)}", "dim"),), words=step.what) for step in view.steps[:MOST_STEPS]
    ]
    if len(view.steps) > MOST_STEPS:
        shown.append(Branch(words=f"and {len(view.steps) - MOST_STEPS} more; -o json has all of them", tone="dim"))
    return aligned(shown)


def _diff(view: PlanView, screen: Screen) -> list[str]:
    if not view.pod_diff:
        return []
    tones = {"+": "good", "-": "bad", "@": "dim"}
    return ["", "pods:", *(screen.paint(line, tones.get(line[0], "")) for line in view.pod_diff)]
