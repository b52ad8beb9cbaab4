"""What one fault says in many places is shown in full once; row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from imageedit_operator.cli import once
from imageedit_operator.cli.documents import as_text
from imageedit_operator.cli.screen import Screen
from imageedit_operator.cli.status_text import text
from imageedit_operator.cli.status_view import StatusView, build
from imageedit_operator.core.known import Unknown
from unit.operator_cli.builders import NOW, children, condition, event, resource

FAULT = "pod edit-x: /models/qwen has no model_index.json; check spec.model.source: the checkpoint must lie there"
STOPPED = f"{FAULT}; the rollout stops here and the old revision serves on"


def broken(summary: str = STOPPED) -> StatusView:
    """Every condition that can tell of the fault does."""
    conditions = [
        condition("Progressing", "False", "ModelMissing", summary),
        condition("Degraded", "True", "ModelMissing", FAULT),
        condition("RolloutStuck", "True", "ModelMissing", FAULT),
    ]
    status = {"observedGeneration": 3, "conditions": conditions}
    told = [event("ModelMissing", FAULT, age_s=5), event("RevisionFailed", f"revision b is given up: {FAULT}", age_s=9)]
    there = children(deployments=[], pods=[], events=told)
    return build(resource("b", status=status), there, {}, Unknown(reason="Forbidden", message="x"), now=NOW)


def test_a_fault_is_told_in_full_once() -> None:
    shown = text([broken()], Screen())
    assert shown.count(FAULT) == 1
    assert "RolloutStuck True" in shown
    assert "ModelMissing: as above" in shown


def test_each_resource_tells_its_own_fault() -> None:
    shown = text([broken(), replace(broken(), name="other")], Screen())
    assert shown.count(FAULT) == 2


def test_documents_keep_every_message_whole() -> None:
    assert as_text(broken()).count(FAULT) >= 5


@pytest.mark.parametrize(
    ("first", "then", "shown"),
    [
        ("no", "no", "no"),
        (FAULT, "another fault that has nothing to do with the one before", None),
        (FAULT, FAULT, "as above"),
        (STOPPED, FAULT, "as above"),
        (FAULT, STOPPED, "as above; the rollout stops here and the old revision serves on"),
    ],
)
def test_what_was_said_before_follows_the_table(first: str, then: str, shown: str | None) -> None:
    view = replace(broken(), summary=first)
    degraded = replace(view.conditions[0], message=then, level="bad")
    made = once.shortened(replace(view, conditions=(degraded,)))
    assert made.summary == first
    assert made.conditions[0].message == (then if shown is None else shown)
