"""docs/kubectl-plugin.md holds what the program has: commands, exit codes, fields of its documents."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from imageedit_operator.cli import arguments
from imageedit_operator.cli.children_view import Child
from imageedit_operator.cli.condition_view import ConditionView
from imageedit_operator.cli.decision_view import DecisionView
from imageedit_operator.cli.documents import document
from imageedit_operator.cli.edit import Made
from imageedit_operator.cli.exits import Exit
from imageedit_operator.cli.forecast import Step
from imageedit_operator.cli.history_view import PastRevision
from imageedit_operator.cli.plan_view import PlanCards, PlanView
from imageedit_operator.cli.pod_view import PodView
from imageedit_operator.cli.recipes import Change
from imageedit_operator.cli.roles import TONES
from imageedit_operator.cli.status_view import CardsView, RevisionView, StatusView
from imageedit_operator.cli.written import Written

PAGE = (Path(__file__).resolve().parents[2] / "docs/kubectl-plugin.md").read_text()


def commands() -> dict[str, argparse.ArgumentParser]:
    """Each command with its parser."""
    (found,) = (item for item in arguments.parser()._actions if isinstance(item, argparse._SubParsersAction))
    return dict(found.choices)


def fields(kind: type[Any]) -> list[str]:
    """The fields as they stand in JSON."""
    made = document(kind(**{field.name: "" for field in dataclasses.fields(kind)}))
    assert isinstance(made, dict)
    return list(made)


def test_the_page_has_every_command() -> None:
    table = PAGE.partition("| command | does |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z]+) ?[^`]*`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:])))
    assert named == commands().keys()


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_examples_that_its_parser_takes(name: str) -> None:
    words = commands()[name].format_help()
    assert "examples:" in words
    assert f"kubectl imageedit {name}" in words


def test_the_page_has_every_exit_code() -> None:
    table = PAGE.partition("| code | means |")[2].partition("\n\n")[0]
    assert [int(code) for code in re.findall(r"^\| (\d) \|", table, re.M)] == list(Exit)


def test_the_page_has_every_role() -> None:
    table = PAGE.partition("| role | the revision |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z ]+)` \|", table, re.M)) == TONES.keys()


@pytest.mark.parametrize(
    "kind",
    [
        StatusView,
        ConditionView,
        RevisionView,
        PodView,
        CardsView,
        DecisionView,
        PastRevision,
        Change,
        Written,
        Made,
        PlanView,
        Child,
        PlanCards,
        Step,
    ],
)
def test_the_page_has_every_field_of_a_document(kind: type[Any]) -> None:
    rows = [set(re.findall(r"`([A-Za-z]+)`", line)) for line in PAGE.partition("## JSON")[2].splitlines()]
    assert any(set(fields(kind)) <= row for row in rows), fields(kind)
